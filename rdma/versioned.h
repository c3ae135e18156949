// Versioned objects: how an object of several lines is written by one CPU or NIC and read, untorn, by others.
//
// An object is a whole number of 64-byte lines. The first 8-byte word of every line is a version; the other 56 bytes of
// all lines, in order, are the object's data ("data offset" below counts only those):
//
//   line 0   | state word | data   0 ..  55 |     state = lock bit, kNotAState, owner, version (index/lock_word.h)
//   line 1   | version    | data  56 .. 111 |     version = the state word, with kNotAState
//   line 2   | version    | data 112 .. 167 |
//
// The invariant: while the state word is not locked, every line's version equals the state word, except that versions
// always have kNotAState. A writer (1) locks the state word (CAS), (2) per line: stores kLineBusy, the data, the new
// version, (3) stores the new state. A NIC may do (2) with WRITEs of whole lines. It needs no kLineBusy, because the
// fabric accesses a line at one instant.
//
// A racing one-sided reader: each line that it READs is a snapshot of that line (fabric.h, 2). If the state word is not
// locked and all lines carry the same version, every line is from the same write, because a line gets each version only
// once: versions grow across reuse, also where a line becomes part of an object of another size (slab.h). Otherwise the
// reader READs again. A reader with a stale address may READ from the middle of another object. The word that it reads
// as the state word then has kNotAState, which a state word has only while there is nothing to read (a removed record).
// So data that looks like an object, including its lines, is never taken for one. A racing CPU of the owner loads the
// state, copies, and loads the state again. If both are equal and unlocked, no writer was active in between, because
// every writer locks first. It need not check the lines' versions.
//
// Only this header races on purpose; all its racing accesses go through LoadWord and StoreWord.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/cache_line.h"
#include "rdma/fabric.h"

namespace gannet::rdma {

inline constexpr size_t kLineDataBytes = kLineBytes - kWordBytes;  // 56
inline constexpr uint64_t kLockBit = uint64_t{1} << 63;
inline constexpr uint64_t kNotAState = uint64_t{1} << 62;
// The part of a state word that only grows: by one with every write of an object that other nodes may WRITE.
inline constexpr uint64_t kVersionMask = (uint64_t{1} << 40) - 1;

// First word of each later line of an object whose state word is `state`.
constexpr uint64_t VersionWord(uint64_t state) {
  return state | kNotAState;
}

// Lines, and bytes in memory, of an object with `data_bytes` of data.
constexpr size_t LinesFor(size_t data_bytes) {
  return data_bytes == 0 ? 1 : (data_bytes + kLineDataBytes - 1) / kLineDataBytes;
}
constexpr size_t ObjectBytesFor(size_t data_bytes) {
  return LinesFor(data_bytes) * kLineBytes;
}

// Offset of the data byte `data_offset` from the start of the object.
constexpr size_t PlaceOf(size_t data_offset) {
  return data_offset / kLineDataBytes * kLineBytes + kWordBytes + data_offset % kLineDataBytes;
}

// Copies data [data_offset, data_offset + out.size()) of the object at `object` (shared memory or a READ's buffer).
// No consistency by itself.
void CopyOut(const std::byte* object, size_t data_offset, std::span<std::byte> out);

// Does what CopyOut does, for a thread that holds the object's lock, so that nothing writes the object. Copies `size`
// bytes of data from kOffset on, in whole lines. Up to kLineDataBytes - 1 bytes after them in `out` are overwritten
// with undefined content. For objects of few lines it takes half the time.
template <size_t kOffset>
void CopyOutHeld(const std::byte* object, std::byte* out, size_t size) {
  static_assert(kOffset < kLineDataBytes);
  constexpr size_t kInFirst = kLineDataBytes - kOffset;
  std::memcpy(out, object + PlaceOf(kOffset), kInFirst);
  for (size_t done = kInFirst; done < size; done += kLineDataBytes) {
    object += kLineBytes;
    std::memcpy(out + done, object + kWordBytes, kLineDataBytes);
  }
}

// Writes data into an object: in shared memory, if the caller holds its lock, or in a private image. Does not change
// versions. In shared memory, call it between BeginWrite and EndWrite.
void CopyIn(std::byte* object, size_t data_offset, std::span<const std::byte> data);

// The writer's steps (2) and (3) for a CPU that holds the lock. BeginWrite makes every line from the second on busy
// (the first is locked); EndWrite gives lines [1, lines) the version of `state` and then stores it as the state word.
void BeginWrite(std::byte* object, size_t lines);
void EndWrite(std::byte* object, size_t lines, uint64_t state);
// Does what EndWrite does, without the last step.
void StoreVersions(std::byte* object, size_t lines, uint64_t state);

// Stamps a private image before its WRITE: the first word becomes `state`, the later lines get the version of
// `version`.
void StampImage(std::byte* image, size_t lines, uint64_t state, uint64_t version);

// Turns `lines` lines of free memory into an object without content (slab.h, b): its state word gets kNotAState and the
// largest version of its lines.
void ContinueVersions(std::byte* object, size_t lines);

// Does what ContinueVersions does, for memory whose writer has died, possibly in the middle of a WRITE: it makes lines
// whole that are busy.
void AbandonObject(std::byte* object, size_t lines);

// True if an image that a READ returned is untorn and unlocked (see above). Its state word is LoadWord(image).
bool IsConsistentImage(const std::byte* image, size_t lines);

// Copies data out of a live object by the owner's CPU. True if the copy is consistent; *state is then its state word.
// False if the object was locked or changed during the copy; *state is then the last state word seen.
inline bool TryReadLocal(const std::byte* object, size_t data_offset, std::span<std::byte> out, uint64_t* state) {
  *state = LoadWord(object);
  if ((*state & kLockBit) != 0) [[unlikely]]
    return false;
  CopyOut(object, data_offset, out);
  PreemptionPoint();
  const uint64_t after = LoadWord(object);
  if (after != *state) [[unlikely]] {
    *state = after;
    return false;
  }
  return true;
}

}  // namespace gannet::rdma
