#include "index/remote/leaf.h"

namespace gannet::index::remote {

LeafLook ReadOwnLeaf(const std::byte* leaf, LeafImage* image) {
  auto* to = reinterpret_cast<std::byte*>(image);
  for (size_t at = 0; at < kLeafBytes; at += kWordBytes) {
    const uint64_t word = LoadWord(leaf + at);
    std::memcpy(to + at, &word, kWordBytes);
  }
  PreemptionPoint();
  const uint64_t state = image->head.state;
  if (LoadWord(leaf) != state) return LeafLook::kTorn;
  if (rdma::IsLineBusy(state)) return LeafLook::kLocked;
  if (!IsLocked(state) || IsAbsent(state)) return LookAtLeaf(*image);
  for (size_t i = 0; i < kSlotLines; ++i) {
    const uint64_t word = image->lines[i].version;
    const auto newer = static_cast<int32_t>(static_cast<uint32_t>(word) - image->head.versions[i]);
    if ((word & ~uint64_t{kVersionMask}) != kAbsentBit || newer < 0) return LeafLook::kTorn;
    image->lines[i].version = word - static_cast<uint32_t>(newer);
  }
  image->head.state = VersionOf(state);
  return LookAtLeaf(*image);
}

void StoreLeaf(const LeafImage& image, std::byte* leaf) {
  const auto* from = reinterpret_cast<const std::byte*>(&image);
  for (size_t at = kLeafBytes; at > 0;) {
    at -= kWordBytes;
    uint64_t word;
    std::memcpy(&word, from + at, kWordBytes);
    StoreWord(leaf + at, word);
  }
}

}  // namespace gannet::index::remote
