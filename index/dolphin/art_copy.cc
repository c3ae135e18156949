#include "index/dolphin/art_copy.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace gannet::index::dolphin {
namespace {

// An entry has a line in its lowest bits, and a mark, which is always set, in its highest one.
constexpr int kLineBits = 42;
constexpr int kNarrowLineBits = 27;
constexpr uint64_t kMark = uint64_t{1} << 63;
constexpr uint64_t LowBits(uint64_t word, int bits) {
  return word & ((uint64_t{1} << bits) - 1);
}
constexpr bool IsNarrow(uint64_t entry) {
  return LowBits(entry, kLineBits) == LowBits(entry, kNarrowLineBits);
}
constexpr uint64_t Narrow(uint64_t entry) {
  return (entry & ~kMark) >> kLineBits << kNarrowLineBits | LowBits(entry, kNarrowLineBits);
}
constexpr uint64_t Widen(uint64_t narrow) {
  return kMark | narrow >> kNarrowLineBits << kLineBits | LowBits(narrow, kNarrowLineBits);
}
constexpr uint64_t kExample = EntryWord({{0, uint64_t{0x7abcdef} * kLineBytes}, kLargestNode}, kMostByte, 0x155);
static_assert(Widen(Narrow(kExample)) == kExample && Narrow(kExample) >> 48 == 0);

}  // namespace

bool ArtCopy::Content::IsWide() const {
  return !std::ranges::all_of(std::span(entries).first(count), IsNarrow);
}

void ArtCopy::Store(const Content& content) {
  const std::string_view bytes = content.prefix.view();
  const bool is_wide = content.IsWide();
  const uint32_t halves[] = {static_cast<uint32_t>(content.line), content.version.value_or(0)};
  std::memcpy(memory_, halves, sizeof(halves));
  SetShape(static_cast<uint32_t>(content.line >> 32 | uint64_t{content.type} << 10 | bytes.size() << 13 |
                                 content.count << 19) |
           (is_wide ? kIsWide : 0) | (content.version.has_value() ? kHasVersion : 0) | (content.is_used ? kIsUsed : 0));
  std::byte* at = memory_ + kHeadBytes;
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  at += bytes.size();
  const size_t entry_bytes = is_wide ? kWordBytes : kNarrowBytes;
  for (const uint64_t entry : std::span(content.entries).first(content.count)) {
    const uint64_t word = is_wide ? entry : Narrow(entry);
    std::memcpy(at, &word, entry_bytes);
    at += entry_bytes;
  }
}

void ArtCopy::Load(Content* content) const {
  content->line = line();
  content->version = version();
  content->type = type();
  content->is_used = (Shape() & kIsUsed) != 0;
  content->prefix = ByteKey(prefix());
  content->count = count();
  for (size_t i = 0; i < content->count; ++i) content->entries[i] = entry(i);
}

void ArtCopy::CopyFrom(const ArtCopy& copy) {
  std::memcpy(memory_, copy.memory_, copy.bytes());
}

uint64_t ArtCopy::entry(size_t i) const {
  const std::byte* const entries = memory_ + kHeadBytes + prefix_bytes();
  uint64_t word = 0;
  if (is_wide()) {
    std::memcpy(&word, entries + i * kWordBytes, kWordBytes);
    return word;
  }
  std::memcpy(&word, entries + i * kNarrowBytes, kNarrowBytes);
  return Widen(word);
}

// The byte of an entry is in its last two bytes, below the type.
size_t ArtCopy::LowerBound(int byte) const {
  const uint32_t shape = Shape();
  const bool is_wide = (shape & kIsWide) != 0;
  const size_t entry_bytes = is_wide ? kWordBytes : kNarrowBytes;
  const int shift = is_wide ? 3 : 4;
  const std::byte* const last = memory_ + kHeadBytes + (shape >> 13 & 0x3f) + entry_bytes - sizeof(uint16_t);
  size_t low = 0;
  for (size_t left = shape >> 19 & 0x1ff; left > 0;) {
    const size_t half = left / 2;
    uint16_t bits;
    std::memcpy(&bits, last + (low + half) * entry_bytes, sizeof(bits));
    if ((bits >> shift & 0x1ff) < byte) {
      low += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  return low;
}

void ArtCopy::GiveUp() {
  const uint32_t none = 0;
  std::memcpy(memory_, &none, sizeof(none));
  SetShape(Shape() & ~uint32_t{0x3ff});
}

}  // namespace gannet::index::dolphin
