#include "index/dolphin/leaf.h"

#include "base/mutant.h"

namespace gannet::index::dolphin {

uint64_t LeafImage::used() const {
  uint64_t used = 0;
  for (int slot = 0; slot < slots(); ++slot) {
    const uint64_t word = key_word(slot);
    used |= uint64_t{IsKeyWord(word) && word - 1 <= head.high - head.low && target(slot) != 0} << slot;
  }
  return used;
}

int LeafImage::FreeSlot(int from) const {
  for (int slot = from; slot < slots(); ++slot) {
    if (key_word(slot) == 0) return slot;
  }
  return -1;
}

int LeafImage::SlotOf(uint64_t word) const {
  uint64_t equal = 0;
  for (int slot = 0; slot < slots(); ++slot) equal |= uint64_t{key_word(slot) == word} << slot;
  return equal == 0 ? -1 : std::countr_zero(equal);
}

bool IsOfOneNumber(const LeafImage& leaf, uint64_t generation_of, Part part) {
  const uint64_t number = leaf.head.number;
  bool agree = (number & ~uint64_t{kVersionMask}) == kAbsentBit &&
               (IsGenerationOf(generation_of, number) || GANNET_MUTANT(kNoGeneration));
  agree &= leaf.head.low <= leaf.head.high && leaf.head.high - leaf.head.low < kMostRange;
  const size_t lines = leaf.key_lines() * (part == Part::kKeys ? 1 : 2);
  for (size_t i = 0; i < lines; ++i) agree &= leaf.lines[i].number == number || GANNET_MUTANT(kNoNumbers);
  return agree;
}

LeafLook LookAtLeaf(LeafImage* leaf, size_t key_lines, Part part) {
  leaf->head.shape = key_lines;
  const uint64_t state = leaf->lock.state;
  if (IsLocked(state)) return LeafLook::kLocked;
  if (IsAbsent(state)) return LeafLook::kDead;
  return IsOfOneNumber(*leaf, state, part) ? LeafLook::kWhole : LeafLook::kTorn;
}

void BeginBlock(std::byte* block) {
  StoreWord(block + offsetof(LockLine, constant), kNoRecord);
  StoreWord(block + kHoldersOffset, 0);
  StoreWord(block + offsetof(LockLine, parent), 0);
}

void StoreLeaf(LeafImage image, std::byte* block) {
  const uint64_t version = VersionOf(NextState(LoadWord(block), false));
  image.head.number = rdma::VersionWord(version);
  for (SlotLine& line : image.lines) line.number = image.head.number;
  for (size_t at = kLineBytes; at < image.bytes(); at += kWordBytes) {
    uint64_t word;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(&image) + at, kWordBytes);
    StoreWord(block + at, word);
  }
  StoreWord(block, StateOfNumber(version));
}

}  // namespace gannet::index::dolphin
