#include "index/remote/leaf_draft.h"

#include <span>

#include "base/check.h"

namespace gannet::index::remote {
namespace {

std::span<const std::byte> Bytes(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

}  // namespace

LeafDraft::LeafDraft(rdma::GlobalAddress address, const LeafImage& image, uint64_t owner_bits)
    : address_(address), owner_bits_(owner_bits), version_(image.head.state), image_(image) {
  GANNET_CHECK(LookAtLeaf(image) == LeafLook::kWhole, "leaf %s: state %x", address.ToString(), image.head.state);
}

LeafDraft::LeafDraft(rdma::GlobalAddress address, uint64_t last_word, uint8_t level, uint64_t owner_bits)
    : address_(address), owner_bits_(owner_bits), version_(VersionOf(last_word)) {
  GANNET_CHECK(IsAbsent(last_word) && !IsLocked(last_word), "block %s is in use: state %x", address.ToString(),
               last_word);
  image_ = {};
  image_.head.slots = LeafSlots{.level = level}.Pack();
}

// The changed lines and line 0 get the version of `state`.
void LeafDraft::Stamp(uint64_t state) {
  for (size_t i = 0; i < kSlotLines; ++i) {
    if ((changed_lines_ >> i & 1) == 0) continue;
    image_.lines[i].version = rdma::VersionWord(VersionOf(state));
    image_.head.versions[i] = static_cast<uint32_t>(VersionOf(state));
  }
  image_.head.state = state;
}

void LeafDraft::AppendChange(Posting* posting, Then then) {
  version_ = NextState(version_, false);
  Stamp(then == Then::kKeepLock ? Locked(version_, owner_bits_) : version_);
  // Neighbouring lines take one WRITE: all of them take effect before line 0 does.
  for (int i = 0; i < kSlotLines; ++i) {
    if ((changed_lines_ >> i & 1) == 0) continue;
    const int first = i;
    while (i + 1 < kSlotLines && (changed_lines_ >> (i + 1) & 1) != 0) ++i;
    posting->Write(address_ + static_cast<uint64_t>(1 + first) * kLineBytes,
                   Bytes(&image_.lines[static_cast<size_t>(first)], static_cast<size_t>(i - first + 1) * kLineBytes));
  }
  posting->Write(address_, Bytes(&image_.head, kLineBytes));
  changed_lines_ = 0;
}

void LeafDraft::AppendNew(Posting* posting) {
  version_ = NextState(version_, false);
  changed_lines_ = (1u << kSlotLines) - 1;
  Stamp(Locked(version_, owner_bits_));
  posting->Write(address_, Bytes(&image_, kLeafBytes));
  changed_lines_ = 0;
}

void LeafDraft::AppendUnlock(Posting* posting) {
  image_.head.state = version_;
  posting->Add(GiveBack());
}

void LeafDraft::AppendDead(Posting* posting) {
  const uint64_t held = Locked(version_, owner_bits_);
  version_ = NextState(version_, true);
  image_.head.state = version_;
  posting->Add(rdma::Operation::CompareAndSwap(address_, held, version_));
}

}  // namespace gannet::index::remote
