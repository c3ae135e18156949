#include "rdma/versioned.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/mutant.h"

namespace gannet::rdma {
namespace {

// Copies `size` bytes within one line's data from shared memory, whole words at a time.
void LoadBytes(const std::byte* from, std::byte* to, size_t size) {
  const size_t skip = reinterpret_cast<uintptr_t>(from) % kWordBytes;
  if (skip != 0) [[unlikely]] {
    const uint64_t word = LoadWord(from - skip);
    const size_t n = std::min(size, kWordBytes - skip);
    std::memcpy(to, reinterpret_cast<const std::byte*>(&word) + skip, n);
    from += n, to += n, size -= n;
  }
  for (; size >= kWordBytes; from += kWordBytes, to += kWordBytes, size -= kWordBytes) {
    const uint64_t word = LoadWord(from);
    std::memcpy(to, &word, kWordBytes);
  }
  if (size > 0) {
    const uint64_t word = LoadWord(from);
    std::memcpy(to, &word, size);
  }
}

// The reverse. The other bytes of a partial word are kept; nothing is lost, because only the holder of the lock writes.
void StoreBytes(std::byte* to, const std::byte* from, size_t size) {
  const size_t skip = reinterpret_cast<uintptr_t>(to) % kWordBytes;
  if (skip != 0) [[unlikely]] {
    uint64_t word = LoadWord(to - skip);
    const size_t n = std::min(size, kWordBytes - skip);
    std::memcpy(reinterpret_cast<std::byte*>(&word) + skip, from, n);
    StoreWord(to - skip, word);
    from += n, to += n, size -= n;
  }
  for (; size >= kWordBytes; from += kWordBytes, to += kWordBytes, size -= kWordBytes) {
    uint64_t word;
    std::memcpy(&word, from, kWordBytes);
    StoreWord(to, word);
  }
  if (size > 0) {
    uint64_t word = LoadWord(to);
    std::memcpy(&word, from, size);
    StoreWord(to, word);
  }
}

// The first word of a line other than the first.
uint64_t Stamp(uint64_t state) {
  return GANNET_MUTANT(kNoMarks) ? state : VersionWord(state);
}

}  // namespace

void CopyOut(const std::byte* object, size_t data_offset, std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const size_t at = data_offset + done;
    const size_t n = std::min(out.size() - done, kLineDataBytes - at % kLineDataBytes);
    LoadBytes(object + PlaceOf(at), out.data() + done, n);
    done += n;
    if (done < out.size()) PreemptionPoint();
  }
}

void CopyIn(std::byte* object, size_t data_offset, std::span<const std::byte> data) {
  size_t done = 0;
  while (done < data.size()) {
    const size_t at = data_offset + done;
    const size_t n = std::min(data.size() - done, kLineDataBytes - at % kLineDataBytes);
    if (!GANNET_MUTANT(kLoseSecondLine) || done == 0) StoreBytes(object + PlaceOf(at), data.data() + done, n);
    done += n;
    PreemptionPoint();
  }
}

void BeginWrite(std::byte* object, size_t lines) {
  for (size_t i = 1; i < lines; ++i) StoreWord(object + i * kLineBytes, kLineBusy);
  PreemptionPoint();
}

void StoreVersions(std::byte* object, size_t lines, uint64_t state) {
  for (size_t i = 1; i < lines; ++i) StoreWord(object + i * kLineBytes, Stamp(state));
}

void EndWrite(std::byte* object, size_t lines, uint64_t state) {
  GANNET_CHECK((state & kLockBit) == 0, "a write of %d lines would end with the locked state %x", lines, state);
  StoreVersions(object, lines, state);
  PreemptionPoint();
  StoreWord(object, state);
}

void StampImage(std::byte* image, size_t lines, uint64_t state, uint64_t version) {
  const uint64_t word = Stamp(version);
  std::memcpy(image, &state, kWordBytes);
  for (size_t i = 1; i < lines; ++i) std::memcpy(image + i * kLineBytes, &word, kWordBytes);
}

bool IsConsistentImage(const std::byte* image, size_t lines) {
  uint64_t state;
  std::memcpy(&state, image, kWordBytes);
  if ((state & kLockBit) != 0) return false;
  const uint64_t version = VersionWord(state);
  for (size_t i = 1; i < lines; ++i) {
    uint64_t word;
    std::memcpy(&word, image + i * kLineBytes, kWordBytes);
    if (GANNET_MUTANT(kNoMarks)) word |= kNotAState;
    if (word != version) return false;
  }
  return true;
}

void ContinueVersions(std::byte* object, size_t lines) {
  uint64_t newest = 0;
  for (size_t i = 0; i < lines; ++i) {
    const uint64_t word = LoadWord(object + i * kLineBytes);
    GANNET_CHECK(!IsLineBusy(word), "line %d of a free block is being written", i);
    newest = std::max(newest, word & kVersionMask);
  }
  StoreWord(object, newest | kNotAState);
}

void AbandonObject(std::byte* object, size_t lines) {
  for (size_t line = 0; line < lines; ++line) {
    std::byte* const at = object + line * kLineBytes;
    if (IsLineBusy(LoadWord(at))) StoreWord(at, kNotAState);
  }
  ContinueVersions(object, lines);
}

}  // namespace gannet::rdma
