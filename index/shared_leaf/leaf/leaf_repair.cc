#include "index/shared_leaf/leaf/leaf_repair.h"

#include <algorithm>

#include "base/mutant.h"
#include "index/shared_leaf/leaf/tagged_leaf.h"

namespace gannet::index::shared_leaf {
namespace {

template <class Head>
void Repair(std::byte* leaf, bool is_linked, size_t lines) {
  Head head;
  for (size_t at = 0; at < kLineBytes; at += kWordBytes) {
    const uint64_t word = LoadWord(leaf + at);
    std::memcpy(reinterpret_cast<std::byte*>(&head) + at, &word, kWordBytes);
  }
  // The caller saw the lock. A client that does not keep the rules may have taken it away since.
  if (!IsLocked(head.state) || rdma::IsLineBusy(head.state)) return;
  uint64_t version = VersionOf(head.state);
  for (size_t i = 1; i <= lines; ++i) version = std::max(version, VersionOf(LoadWord(leaf + i * kLineBytes)));
  version = GANNET_MUTANT(kOldStamp) ? VersionOf(head.state) : VersionOf(NextState(version, false));
  if (!is_linked) {
    StoreWord(leaf, version | kAbsentBit);
    return;
  }
  // Line 0 gets the version of each line as it is: a line has had each of its versions with one content only. So an
  // image from before and after the repair is judged like any other. The state word comes last, because line 0 is no
  // single store.
  for (size_t i = 0; i < lines; ++i) {
    head.versions[i] = static_cast<uint32_t>(VersionOf(LoadWord(leaf + (1 + i) * kLineBytes)));
  }
  for (size_t at = offsetof(Head, versions); at < kLineBytes; at += kWordBytes) {
    uint64_t word;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(&head) + at, kWordBytes);
    StoreWord(leaf + at, word);
  }
  StoreWord(leaf, version);
}

}  // namespace

void RepairLeaf(std::byte* leaf, bool is_linked) {
  Repair<LeafHead>(leaf, is_linked, kSlotLines);
}

void RepairTaggedLeaf(std::byte* leaf, bool is_linked, size_t fence_lines) {
  Repair<TaggedHead>(leaf, is_linked, fence_lines + kSlotLines);
}

}  // namespace gannet::index::shared_leaf
