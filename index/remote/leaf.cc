#include "index/remote/leaf.h"

namespace gannet::index::remote {

void CopyLeaf(const std::byte* leaf, LeafImage* image) {
  auto* to = reinterpret_cast<std::byte*>(image);
  for (size_t at = 0; at < kLeafBytes; at += kWordBytes) {
    const uint64_t word = LoadWord(leaf + at);
    std::memcpy(to + at, &word, kWordBytes);
  }
  PreemptionPoint();
  const uint64_t state = image->head.state;
  if (LoadWord(leaf) != state) image->head.state = state | rdma::kLockBit;
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
