#include "index/rolex/leaf_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace gannet::index::rolex {
namespace {

using shared_leaf::CommonBytes;
using shared_leaf::NumberFrom;

}  // namespace

uint32_t LineHint::PartOf(uint64_t key, uint64_t low, uint64_t high) {
  if (key <= low) return 0;
  if (key >= high) return 63;
  return static_cast<uint32_t>(static_cast<unsigned __int128>(key - low) * 64 /
                               (static_cast<unsigned __int128>(high - low) + 1));
}

LineHint::LineHint(const LeafImage& leaf, uint64_t low, uint64_t high) {
  // Slots are filled from the first on when a leaf is made, in the order of keys. What was inserted later is behind.
  std::array<uint64_t, kBounds> first_keys;
  first_keys.fill(high);
  int known_lines = 0;  // bounds that are set
  int ordered = 0;
  uint64_t before = 0;
  for (uint64_t used = leaf.used<IntegerEntry>(); used != 0; used &= used - 1) {
    const int slot = std::countr_zero(used);
    const uint64_t key = leaf.entry<IntegerEntry>(slot).key;
    if (ordered > 0 && key <= before) break;
    for (const int line = slot / IntegerEntry::kPerLine; known_lines < line; ++known_lines) {
      first_keys[static_cast<size_t>(known_lines)] = key;
    }
    before = key;
    ++ordered;
  }
  if (ordered == 0 || ordered < leaf.count<IntegerEntry>() * 3 / 4) return;
  bits_ = kKnown;
  for (int i = 0; i < kBounds; ++i) bits_ |= PartOf(first_keys[static_cast<size_t>(i)], low, high) << (6 * i);
}

int LineHint::LineOf(uint64_t key, uint64_t low, uint64_t high) const {
  if ((bits_ & kKnown) == 0) return kUnknown;
  const uint32_t part = PartOf(key, low, high);
  int line = 0;
  for (int i = 0; i < kBounds; ++i) line += (bits_ >> (6 * i) & 63) <= part ? 1 : 0;
  return line;
}

IntegerLeafTable::IntegerLeafTable(std::span<const TrainedLeaf> leaves, uint64_t first, std::optional<uint64_t> next) {
  // Units of the leaves' range, not of the keys': the last model of an index covers all keys up to the greatest there
  // are.
  const uint64_t range = std::max(leaves.back().low, first) - first;
  shift_ = static_cast<uint32_t>(std::max(0, 64 - std::countl_zero(range) - 32));
  entries_.reserve(leaves.size());
  for (const TrainedLeaf& leaf : leaves) {
    const uint64_t low = std::max(leaf.low, first);
    entries_.push_back({.block = static_cast<uint32_t>(leaf.offset / kLineBytes),
                        .low = static_cast<uint32_t>((low - first) >> shift_)});
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    entries_[i].lines = LineHint(leaves[i].image, LowOf(i, first), HighOf(i, first, next)).bits();
  }
}

void IntegerLeafTable::Encode(uint64_t first, std::optional<uint64_t> next, TableHeader* header,
                              std::span<std::byte> out) const {
  header->leaves = static_cast<uint16_t>(entries_.size());
  header->shift = static_cast<uint8_t>(shift_);
  header->keys = {first, next.has_value() ? *next - 1 : UINT64_MAX};
  std::memcpy(out.data(), entries_.data(), out.size());
}

bool IntegerLeafTable::Decode(const TableHeader& header, std::span<const std::byte> in, uint64_t* first,
                              std::optional<uint64_t>* next) {
  const auto [low, high] = header.keys;
  entries_.resize(header.leaves);
  std::memcpy(entries_.data(), in.data(), in.size());
  shift_ = header.shift;
  if (low > high || shift_ > 32 || entries_[0].low != 0) return false;
  for (size_t i = 1; i < entries_.size(); ++i) {
    if (entries_[i].low < entries_[i - 1].low || uint64_t{entries_[i].low} > (high - low) >> shift_) return false;
  }
  *first = low;
  next->reset();
  if (high != UINT64_MAX) *next = high + 1;
  return true;
}

ByteLeafTable::ByteLeafTable(std::span<const TrainedLeafOf<ByteKeys>> leaves, const ByteKey& first,
                             const std::optional<ByteKey>& next)
    : key_bytes_(first.size() + (next.has_value() ? next->size() : 0)) {
  if (leaves.size() > 1) {
    common_ = CommonBytes(leaves[1].low.view(), leaves.back().low.view());  // they ascend
    text_ = leaves[1].low.view().substr(0, common_);
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (i > 0) text_ += leaves[i].low.view().substr(common_);
    blocks_.push_back(static_cast<uint32_t>(leaves[i].offset / kLineBytes));
    ends_.push_back(static_cast<uint16_t>(text_.size()));
  }
}

ByteKey ByteLeafTable::LowOf(size_t leaf, const ByteKey& first) const {
  if (leaf == 0) return first;
  const std::string_view own = FenceOf(leaf);
  std::array<char, kShortKeyBytes> bytes;
  std::memcpy(bytes.data(), text_.data(), common_);
  std::memcpy(bytes.data() + common_, own.data(), own.size());
  return ByteKey(std::string_view(bytes.data(), common_ + own.size()));
}

ByteLeafTable::Probe ByteLeafTable::ProbeOf(std::string_view key, bool below) const {
  const int order = key.substr(0, common_).compare(common());
  return {.side = order < 0 ? -1 : order > 0 ? 1 : 0, .own = order == 0 ? key.substr(common_) : "", .below = below};
}

uint64_t ByteLeafTable::NumberOf(const ByteKey& key) const {
  const Probe probe = ProbeOf(key.view(), false);
  if (probe.side != 0) return probe.side < 0 ? 0 : UINT64_MAX;
  return NumberFrom(probe.own);
}

void ByteLeafTable::Encode(const ByteKey& first, const std::optional<ByteKey>& next, TableHeader* header,
                           std::span<std::byte> out) const {
  header->leaves = static_cast<uint16_t>(blocks_.size());
  header->first_bytes = static_cast<uint8_t>(first.size());
  header->next_bytes = next.has_value() ? static_cast<uint8_t>(next->size()) : TableHeader::kNoKey;
  header->common_bytes = static_cast<uint8_t>(common_);
  header->text_bytes = static_cast<uint16_t>(key_bytes_ + text_.size());
  std::byte* at = out.data();
  const auto put = [&at](const void* from, size_t bytes) {
    std::memcpy(at, from, bytes);
    at += bytes;
  };
  put(blocks_.data(), blocks_.size() * sizeof(blocks_[0]));
  put(ends_.data(), ends_.size() * sizeof(ends_[0]));
  put(first.view().data(), first.size());
  if (next.has_value()) put(next->view().data(), next->size());
  put(text_.data(), text_.size());
  GANNET_CHECK(at == out.data() + out.size(), "a leaf table of %d bytes in %d", at - out.data(), out.size());
}

bool ByteLeafTable::Decode(const TableHeader& header, std::span<const std::byte> in, ByteKey* first,
                           std::optional<ByteKey>* next) {
  const size_t leaves = header.leaves;
  const bool has_next = header.next_bytes != TableHeader::kNoKey;
  key_bytes_ = header.first_bytes + (has_next ? size_t{header.next_bytes} : 0);
  common_ = header.common_bytes;
  if (header.first_bytes > kShortKeyBytes || (has_next && header.next_bytes > kShortKeyBytes) ||
      common_ > kShortKeyBytes || header.text_bytes < key_bytes_ + common_) {
    return false;
  }
  blocks_.resize(leaves);
  ends_.resize(leaves);
  const std::byte* at = in.data();
  const auto take = [&at](void* to, size_t bytes) {
    std::memcpy(to, at, bytes);
    at += bytes;
  };
  take(blocks_.data(), leaves * sizeof(blocks_[0]));
  take(ends_.data(), leaves * sizeof(ends_[0]));
  const std::string_view text(reinterpret_cast<const char*>(at), header.text_bytes);
  *first = ByteKey(text.substr(0, header.first_bytes));
  next->reset();
  if (has_next) *next = ByteKey(text.substr(header.first_bytes, header.next_bytes));
  text_ = text.substr(key_bytes_);
  if (ends_[0] != common_ || ends_.back() != text_.size()) return false;
  for (size_t i = 1; i < leaves; ++i) {
    if (ends_[i] < ends_[i - 1] || ends_[i] > text_.size() || common_ + ends_[i] - ends_[i - 1] > kShortKeyBytes) {
      return false;
    }
    // Two leaves are compared without what they have in common.
    if (i > 1 && FenceOf(i) < FenceOf(i - 1)) return false;
  }
  return !has_next || *first < **next;
}

}  // namespace gannet::index::rolex
