#include "index/shared_leaf/leaf/leaf.h"

#include "index/shared_leaf/claim/claim.h"
#include "index/shared_leaf/leaf/tagged_leaf.h"

namespace gannet::index::shared_leaf {

template <class Head>
LeafLook ReadOwnLeaf(const std::byte* leaf, BasicLeafImage<Head>* image, size_t fence_lines, bool locked_too) {
  auto* to = reinterpret_cast<std::byte*>(image);
  for (size_t at = 0; at < LeafBytesWith(fence_lines); at += kWordBytes) {
    const uint64_t word = LoadWord(leaf + at);
    std::memcpy(to + at, &word, kWordBytes);
  }
  PreemptionPoint();
  const uint64_t state = image->head.state;
  if (LoadWord(leaf) != state) return LeafLook::kTorn;
  if (rdma::IsLineBusy(state)) return LeafLook::kLocked;
  image->head.set_fence_lines(fence_lines);
  if (IsKept(state)) return LeafLook::kWhole;
  if (!IsLocked(state) || IsAbsent(state) || !locked_too) return LookAtLeaf(*image);
  for (size_t i = 0; i < image->line_count(); ++i) {
    const uint64_t word = image->lines[i].version;
    const auto newer = static_cast<int32_t>(static_cast<uint32_t>(word) - image->head.versions[i]);
    if ((word & ~uint64_t{kVersionMask}) != kAbsentBit || newer < 0) return LeafLook::kTorn;
    image->lines[i].version = word - static_cast<uint32_t>(newer);
  }
  image->head.state = VersionOf(state);
  return LookAtLeaf(*image);
}

template <class Head>
void StoreLeaf(const BasicLeafImage<Head>& image, std::byte* leaf) {
  const auto* from = reinterpret_cast<const std::byte*>(&image);
  for (size_t at = image.bytes(); at > 0;) {
    at -= kWordBytes;
    uint64_t word;
    std::memcpy(&word, from + at, kWordBytes);
    StoreWord(leaf + at, word);
  }
}

template LeafLook ReadOwnLeaf(const std::byte* leaf, LeafImage* image, size_t fence_lines, bool locked_too);
template LeafLook ReadOwnLeaf(const std::byte* leaf, TaggedImage* image, size_t fence_lines, bool locked_too);
template void StoreLeaf(const LeafImage& image, std::byte* leaf);
template void StoreLeaf(const TaggedImage& image, std::byte* leaf);

}  // namespace gannet::index::shared_leaf
