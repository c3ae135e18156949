// A copy that bypasses the processor's caches: for bytes that go to the disk and are not read again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace gannet::log {

// `to` and `bytes` are multiples of 8. The copied bytes are visible to devices and other processors after
// FinishStreams().
inline void StreamCopy(std::byte* to, const std::byte* from, size_t bytes) {
#if defined(__SSE2__)
  const auto copy_word = [&] {
    int64_t word;
    std::memcpy(&word, from, sizeof word);
    _mm_stream_si64(reinterpret_cast<long long*>(to), word);
    to += sizeof word;
    from += sizeof word;
    bytes -= sizeof word;
  };
  if (bytes != 0 && reinterpret_cast<uintptr_t>(to) % sizeof(__m128i) != 0) copy_word();
  for (; bytes >= sizeof(__m128i); bytes -= sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    to += sizeof(__m128i);
    from += sizeof(__m128i);
  }
  if (bytes != 0) copy_word();
#else
  std::memcpy(to, from, bytes);
#endif
}

inline void FinishStreams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace gannet::log
