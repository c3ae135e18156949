// The 64-byte line, the unit in which NICs and CPUs move memory, and access to the words in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/runtime.h"

namespace gannet {

inline constexpr size_t kLineBytes = 64;
inline constexpr size_t kWordBytes = 8;

constexpr size_t RoundUp(size_t n, size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Shared memory is accessed in aligned 8-byte words through these two, by every thread and every backend, so a race
// between a one-sided reader and a writer is never undefined behaviour. A load is an acquire and a store a release:
// loads stay in program order with later loads, stores with earlier stores. On x86-64 both are plain moves.
//
// A simulation may preempt the thread before any atomic and, in a build with GANNET_PREEMPT_WORDS, before any load or
// store. Other builds leave this out, because a test per load is too expensive.
inline void PreemptionPointOfWord() {
#ifdef GANNET_PREEMPT_WORDS
  PreemptionPoint();
#endif
}
inline uint64_t LoadWord(const void* word) {
  PreemptionPointOfWord();
  return std::atomic_ref<uint64_t>(*static_cast<uint64_t*>(const_cast<void*>(word))).load(std::memory_order_acquire);
}
// Four or two words from an address that is a multiple of their size, each as by LoadWord. A CPU that has vectors of
// this size loads each aligned word of one whole, and in program order with other loads. The language has no name for
// that, so what checks programs by its rules gets four loads.
using FourWords = uint64_t __attribute__((vector_size(4 * kWordBytes)));
inline FourWords LoadFourWords(const void* words) {
#if defined(__SANITIZE_THREAD__) || defined(GANNET_PREEMPT_WORDS)
  const auto* at = static_cast<const uint64_t*>(words);
  return FourWords{LoadWord(at), LoadWord(at + 1), LoadWord(at + 2), LoadWord(at + 3)};
#else
  const FourWords loaded = *static_cast<const volatile FourWords*>(words);
  std::atomic_signal_fence(std::memory_order_acquire);
  return loaded;
#endif
}
using TwoWords = uint64_t __attribute__((vector_size(2 * kWordBytes)));
inline TwoWords LoadTwoWords(const void* words) {
#if defined(__SANITIZE_THREAD__) || defined(GANNET_PREEMPT_WORDS)
  const auto* at = static_cast<const uint64_t*>(words);
  return TwoWords{LoadWord(at), LoadWord(at + 1)};
#else
  const TwoWords loaded = *static_cast<const volatile TwoWords*>(words);
  std::atomic_signal_fence(std::memory_order_acquire);
  return loaded;
#endif
}
inline void StoreWord(void* word, uint64_t value) {
  PreemptionPointOfWord();
  std::atomic_ref<uint64_t>(*static_cast<uint64_t*>(word)).store(value, std::memory_order_release);
}
// Returns the value found; the swap happened if that equals `expected`.
inline uint64_t CompareAndSwapWord(void* word, uint64_t expected, uint64_t desired) {
  PreemptionPoint();
  std::atomic_ref<uint64_t>(*static_cast<uint64_t*>(word)).compare_exchange_strong(expected, desired);
  return expected;
}
inline uint64_t FetchAndAddWord(void* word, uint64_t addend) {
  PreemptionPoint();
  return std::atomic_ref<uint64_t>(*static_cast<uint64_t*>(word)).fetch_add(addend);
}

// Bring the line of `address` into the cache without waiting for it. No other file may use the builtin: g++ takes a
// function that only prefetches for one without effect, and removes calls of it. The empty statement is an effect.
inline void Prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}
// Prefetches a line that will be written.
inline void PrefetchToWrite(const void* address) {
  __builtin_prefetch(address, 1);
  asm volatile("");
}
// Prefetches a line that will be read once.
inline void PrefetchToReadOnce(const void* address) {
  __builtin_prefetch(address, 0, 0);
  asm volatile("");
}

// Called in every iteration of a loop that waits for another thread.
inline void CpuRelax() {
  if (Runtime* runtime = Runtime::Current()) [[unlikely]]
    return runtime->Relax();
  __builtin_ia32_pause();
}

}  // namespace gannet
