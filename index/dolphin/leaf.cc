#include "index/dolphin/leaf.h"

#include "base/mutant.h"
#include "index/dolphin/byte_leaf.h"

namespace gannet::index::dolphin {

uint64_t LeafImage::used() const {
  uint64_t used = 0;
  for (int slot = 0; slot < slots(); ++slot) {
    const uint64_t word = key_word(slot);
    used |= uint64_t{IsKeyWord(word) && word - 1 <= head.high - head.low && target(slot) != 0} << slot;
  }
  return used;
}

int LeafImage::SlotOf(uint64_t word) const {
  uint64_t equal = 0;
  for (int slot = 0; slot < slots(); ++slot) equal |= uint64_t{key_word(slot) == word} << slot;
  return equal == 0 ? -1 : std::countr_zero(equal);
}

template <class Leaf>
bool IsOfOneNumber(const Leaf& leaf, uint64_t generation_of, Part part) {
  const uint64_t number = leaf.head.number;
  bool agree = (number & ~uint64_t{kVersionMask}) == kAbsentBit &&
               (IsGenerationOf(generation_of, number) || GANNET_MUTANT(kNoGeneration));
  agree &= leaf.HasRange();
  for (size_t i = 0; i < leaf.LinesIn(part); ++i) agree &= leaf.lines[i].number == number || GANNET_MUTANT(kNoNumbers);
  return agree;
}

template <class Leaf>
LeafLook LookAtLeaf(Leaf* leaf, size_t shape_lines, Part part) {
  leaf->SetShape(shape_lines);
  const uint64_t state = leaf->lock.state;
  if (IsLocked(state)) return LeafLook::kLocked;
  if (IsAbsent(state)) return LeafLook::kDead;
  return IsOfOneNumber(*leaf, state, part) ? LeafLook::kWhole : LeafLook::kTorn;
}

template <class Leaf>
LeafLook ReadOwnLeaf(const std::byte* leaf, Leaf* image, size_t shape_lines, bool locked_too) {
  auto* to = reinterpret_cast<std::byte*>(image);
  for (size_t at = 0; at < Leaf::BytesOf(Part::kWhole, shape_lines); at += kWordBytes) {
    const uint64_t word = LoadWord(leaf + at);
    std::memcpy(to + at, &word, kWordBytes);
  }
  PreemptionPoint();
  const uint64_t state = image->lock.state;
  if (LoadWord(leaf) != state) return LeafLook::kTorn;
  if (!IsLocked(state) || IsAbsent(state) || !locked_too) return LookAtLeaf(image, shape_lines, Part::kWhole);
  image->SetShape(shape_lines);
  image->lock.state = UnlockedState(state, image->head.number);
  return IsOfOneNumber(*image, image->lock.state, Part::kWhole) ? LeafLook::kWhole : LeafLook::kTorn;
}

void BeginBlock(std::byte* block) {
  StoreWord(block + offsetof(LockLine, constant), kNoRecord);
  StoreWord(block + kHoldersOffset, 0);
  StoreWord(block + kReverseOffset, 0);
}

template <class Leaf>
void StoreLeaf(Leaf image, std::byte* block) {
  const uint64_t version = VersionOf(NextLife(LoadWord(block)));
  image.head.number = rdma::VersionWord(version);
  for (SlotLine& line : image.lines) line.number = image.head.number;
  for (size_t at = kLineBytes; at < image.bytes(); at += kWordBytes) {
    uint64_t word;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(&image) + at, kWordBytes);
    StoreWord(block + at, word);
  }
}

#define GANNET_INSTANTIATE(Leaf)                                                          \
  template LeafLook LookAtLeaf<Leaf>(Leaf * leaf, size_t shape_lines, Part part);         \
  template bool IsOfOneNumber<Leaf>(const Leaf& leaf, uint64_t generation_of, Part part); \
  template LeafLook ReadOwnLeaf<Leaf>(const std::byte* leaf, Leaf* image, size_t, bool);  \
  template void StoreLeaf<Leaf>(Leaf image, std::byte * block);
GANNET_INSTANTIATE(LeafImage)
GANNET_INSTANTIATE(ByteLeafImage)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::dolphin
