// READ and WRITE of one line, or of the part of one that an operation covers, by the caller's CPU.
//
// Why a line is consistent although a CPU copies it word by word: a WRITE that covers the first word and more words
// first stores a busy marker there, then the other words, then the first word's value. A READ that covers the first
// word loads it, then the other words, then the first word again. It repeats this while the first word is busy or has
// changed. So a READ returns a mixture of two WRITEs only if both leave the same first word. A part of a line without
// its first word is consistent only by word.
//
// The process may die during a WRITE. So the marker names the channel, and the channel first notes in shared memory
// what it is going to store. Other processes can then complete the store (torn_lines.h).
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/cache_line.h"
#include "rdma/fabric.h"
#include "rdma/shm/layout.h"

namespace gannet::rdma::shm {

inline constexpr size_t kLineWords = kLineBytes / kWordBytes;

// A line that is busy for longer than this (its writer was interrupted, or died in it) is returned as kLineBusy.
inline constexpr int kSpinsPerLine = 200;
inline constexpr int kYieldsPerLine = 50;

// Inlined and unrolled where `words` is a constant, as it is for whole lines.
[[gnu::always_inline]] inline void ReadWords(const std::byte* from, std::byte* to, size_t words) {
#pragma GCC unroll 8
  for (size_t i = 0; i < words; ++i) {
    const uint64_t word = LoadWord(from + i * kWordBytes);
    std::memcpy(to + i * kWordBytes, &word, kWordBytes);
  }
}

[[gnu::always_inline]] inline void WriteWords(std::byte* to, const std::byte* from, size_t words) {
#pragma GCC unroll 8
  for (size_t i = 0; i < words; ++i) {
    uint64_t word;
    std::memcpy(&word, from + i * kWordBytes, kWordBytes);
    StoreWord(to + i * kWordBytes, word);
  }
}

struct NoPause {
  void operator()() const {}
};

// Reads the first `words` words of the line at `line`. The adversary's `pause` is called in between.
template <class Pause = NoPause>
[[gnu::always_inline]] inline void ReadLineStart(const std::byte* line, std::byte* to, size_t words, Pause pause = {}) {
  for (int attempt = 0; attempt < kSpinsPerLine + kYieldsPerLine; ++attempt) {
    const uint64_t first = LoadWord(line);
    ReadWords(line + kWordBytes, to + kWordBytes, words / 2);
    pause();
    ReadWords(line + (words / 2 + 1) * kWordBytes, to + (words / 2 + 1) * kWordBytes, words - 1 - words / 2);
    if (!IsLineBusy(first) && (words == 1 || LoadWord(line) == first)) [[likely]] {
      std::memcpy(to, &first, kWordBytes);
      return;
    }
    if (attempt < kSpinsPerLine) {
      CpuRelax();
    } else {
      sched_yield();
    }
  }
  std::memcpy(to, &kLineBusy, kWordBytes);
}

// `at` is 8-byte aligned and [at, at + bytes) lies within one line.
template <class Pause = NoPause>
void ReadWithinLine(const std::byte* at, std::byte* to, size_t bytes, Pause pause = {}) {
  if (reinterpret_cast<uintptr_t>(at) % kLineBytes != 0) return ReadWords(at, to, bytes / kWordBytes);
  if (bytes == kLineBytes) return ReadLineStart(at, to, kLineWords, pause);
  ReadLineStart(at, to, bytes / kWordBytes, pause);
}

// Bytes of [at, at + bytes) that lie in `at`'s line.
inline size_t BytesInFirstLine(const std::byte* at, size_t bytes) {
  const size_t room = kLineBytes - reinterpret_cast<uintptr_t>(at) % kLineBytes;
  return bytes < room ? bytes : room;
}

inline void ReadLines(const std::byte* at, std::byte* to, size_t bytes) {
  while (bytes > 0) {
    const size_t n = BytesInFirstLine(at, bytes);
    ReadWithinLine(at, to, n);
    at += n, to += n, bytes -= n;
  }
}

// Performs one channel's WRITEs. `memory` is the begin of node 0's memory. `note` is null if the memory is private to
// this process: then no other process could complete a line.
class LineWriter {
 public:
  LineWriter(uint64_t marker, StoreNote* note, const std::byte* memory)
      : marker_(marker), note_(note), memory_(memory) {}

  void WriteLines(std::byte* at, const std::byte* from, size_t bytes) const {
    while (bytes > 0) {
      const size_t n = BytesInFirstLine(at, bytes);
      WriteWithinLine(at, from, n);
      at += n, from += n, bytes -= n;
    }
  }

  // `at` is 8-byte aligned and [at, at + bytes) lies within one line.
  template <class Pause = NoPause>
  void WriteWithinLine(std::byte* at, const std::byte* from, size_t bytes, Pause pause = {}) const {
    if (reinterpret_cast<uintptr_t>(at) % kLineBytes != 0) return WriteWords(at, from, bytes / kWordBytes);
    if (bytes == kLineBytes) return WriteLineStart(at, from, kLineWords, pause);
    WriteLineStart(at, from, bytes / kWordBytes, pause);
  }

 private:
  template <class Pause>
  [[gnu::always_inline]] void WriteLineStart(std::byte* line, const std::byte* from, size_t words, Pause pause) const {
    if (words > 1) {
      // All stores stay in this order. So a process that finds the marker finds a complete note of this line.
      if (note_ != nullptr) {
        std::atomic_signal_fence(std::memory_order_seq_cst);  // after the end of the line before
        std::memcpy(note_->image, from, words * kWordBytes);
        StoreWord(&note_->place, static_cast<uint64_t>(line - memory_) | words);
      }
      StoreWord(line, marker_);
      WriteWords(line + kWordBytes, from + kWordBytes, words / 2);
      pause();
      WriteWords(line + (words / 2 + 1) * kWordBytes, from + (words / 2 + 1) * kWordBytes, words - 1 - words / 2);
    }
    WriteWords(line, from, 1);
  }

  uint64_t marker_;
  StoreNote* note_;
  const std::byte* memory_;
};

}  // namespace gannet::rdma::shm
