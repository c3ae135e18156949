#include "index/shared_leaf/leaf/leaf_draft.h"

#include <span>

#include "base/check.h"
#include "base/mutant.h"
#include "index/shared_leaf/claim/claim.h"

namespace gannet::index::shared_leaf {
namespace {

std::span<const std::byte> Bytes(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

uint64_t NameIn(uint64_t owner_bits) {
  return GANNET_MUTANT(kNamelessLock) ? 0 : owner_bits;
}

}  // namespace

template <class Head>
BasicLeafDraft<Head>::BasicLeafDraft(rdma::GlobalAddress address, const Image& image, uint64_t owner_bits)
    : LeafLock(address, image.head.state, NameIn(owner_bits)), image_(image) {
  GANNET_CHECK(LookAtLeaf(image) == LeafLook::kWhole, "leaf %s: state %x", address.ToString(), image.head.state);
}

template <class Head>
BasicLeafDraft<Head>::BasicLeafDraft(rdma::GlobalAddress address, uint64_t last_word, uint8_t level,
                                     uint64_t owner_bits, size_t fence_lines)
    : LeafLock(address, VersionOf(last_word), NameIn(owner_bits)) {
  GANNET_CHECK(IsAbsent(last_word) && !IsLocked(last_word), "block %s is in use: state %x", address.ToString(),
               last_word);
  image_ = {};
  image_.head.slots = LeafSlots{.level = level}.Pack();
  image_.head.set_fence_lines(fence_lines);
}

// The changed lines and line 0 get the version of `state`.
template <class Head>
void BasicLeafDraft<Head>::Stamp(uint64_t state) {
  for (size_t i = 0; i < image_.line_count(); ++i) {
    if ((changed_lines_ >> i & 1) == 0) continue;
    image_.lines[i].version = rdma::VersionWord(VersionOf(state));
    image_.head.versions[i] = static_cast<uint32_t>(VersionOf(state));
  }
  image_.head.state = state;
}

// Line 0 is the commit point, so it goes last. A client that dies before it has changed nothing that counts, and the
// owner finds the lock, by which it repairs the leaf.
template <class Head>
void BasicLeafDraft<Head>::AppendChange(Posting* posting, Then then) {
  GANNET_CHECK((changed_lines_ >> image_.line_count()) == 0, "leaf %s, version %x: lines %x of %d change",
               address_.ToString(), version_, changed_lines_, image_.line_count());
  const rdma::NodeId self = LockOwnerNode(owner_bits_);
  // Inner nodes are not claimed: the split of a root that is a leaf ends its claim.
  version_ = IsClaimedBy(self, version_) && image_.level() == 0 ? ClaimOf(version_, self) : NextState(version_, false);
  Stamp(then == Then::kKeepLock ? Locked(version_, owner_bits_) : version_);
  if (GANNET_MUTANT(kLineZeroFirst)) posting->Write(address_, Bytes(&image_.head, kLineBytes));
  // Neighbouring lines take one WRITE: all of them take effect before line 0 does.
  const size_t lines = image_.line_count();
  for (size_t i = 0; i < lines; ++i) {
    if ((changed_lines_ >> i & 1) == 0) continue;
    const size_t first = i;
    while (i + 1 < lines && (changed_lines_ >> (i + 1) & 1) != 0) ++i;
    posting->Write(address_ + (1 + first) * kLineBytes, Bytes(&image_.lines[first], (i - first + 1) * kLineBytes));
  }
  if (!GANNET_MUTANT(kLineZeroFirst)) posting->Write(address_, Bytes(&image_.head, kLineBytes));
  changed_lines_ = 0;
}

template <class Head>
void BasicLeafDraft<Head>::AppendNew(Posting* posting) {
  version_ = NextState(version_, false);
  changed_lines_ = (1u << image_.line_count()) - 1;
  Stamp(Locked(version_, owner_bits_));
  posting->Write(address_, Bytes(&image_, image_.bytes()));
  changed_lines_ = 0;
}

template <class Head>
void BasicLeafDraft<Head>::AppendNext(Posting* posting, bool dead) {
  const uint64_t held = Locked(version_, owner_bits_);
  version_ = NextState(version_, dead);
  image_.head.state = version_;
  posting->Add(rdma::Operation::CompareAndSwap(address_, held, version_));
}

template class BasicLeafDraft<LeafHead>;
template class BasicLeafDraft<TaggedHead>;

}  // namespace gannet::index::shared_leaf
