// ArtCache (index/dolphin/art_cache.h) against a map of what it was told: random nodes that come, change and go, in
// memory below and above the first 8 GiB, with and without a bound; and what it takes of memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/dolphin/art_cache.h"
#include "index/dolphin/art_copy.h"
#include "index/dolphin/inner_node.h"
#include "index/lock_word.h"

namespace gannet::index {
namespace dolphin_cache_test {

using dolphin::ArtCache;
using dolphin::ArtCopy;
using dolphin::ByteKey;
using dolphin::kLargestNode;
using dolphin::kMostByte;
using dolphin::kMostPrefix;
using dolphin::kSmallestNode;
using dolphin::NodeImage;
using dolphin::NodeRef;
using dolphin::NodeType;
using rdma::GlobalAddress;

constexpr rdma::NodeId kOwner = 3;
constexpr uint64_t kNodes = 1500;
constexpr uint64_t kFarLines = uint64_t{1} << 41;
constexpr uint64_t kNearLines = (uint64_t{8} << 30) / kLineBytes;

struct ModelNode {
  NodeType type = kSmallestNode;
  std::string prefix;
  uint64_t version = 0;
  std::map<int, uint64_t> entries;  // by byte
};

class Model {
 public:
  // `far`: some lines need more than 27 bits.
  Model(uint64_t seed, size_t max_bytes, bool far) : random_(seed), far_(far), cache_(max_bytes), most_(max_bytes) {}

  void Step() {
    const uint64_t line = 1 + random_.Below(kNodes);
    const GlobalAddress address(kOwner, NodeLine(line) * kLineBytes);
    switch (random_.Below(8)) {
      case 0:
      case 1:
        Put(line, address);
        break;
      case 2:
        nodes_.erase(line);
        cache_.Drop(address);
        break;
      case 3: {
        const uint64_t entry = EntryOf(line);
        Note(line, address, entry);
        break;
      }
      case 4:
        NoteNone(line, address, EntryOf(line));
        break;
      default:
        Note(line, address, NewEntry());
    }
    Compare(line, address);
    ASSERT_LE(cache_.bytes(), most_);
  }
  void CompareAll() {
    size_t known = 0;
    for (uint64_t line = 1; line <= kNodes; ++line) {
      const GlobalAddress address(kOwner, NodeLine(line) * kLineBytes);
      Compare(line, address);
      known += cache_.Find(address).has_value() ? 1 : 0;
    }
    EXPECT_EQ(known, cache_.nodes());
  }
  // What the copies of all nodes take, if the cache gives none up.
  size_t BytesOfCopies() const {
    size_t bytes = 0;
    for (const auto& [line, node] : nodes_) {
      const bool is_wide = std::ranges::any_of(
          node.entries, [](const auto& of) { return dolphin::OffsetOf(of.second) / kLineBytes >= kNearLines; });
      bytes += ArtCopy::BytesFor(node.prefix.size(), node.entries.size(), is_wide);
    }
    return bytes;
  }
  const ArtCache& cache() const { return cache_; }
  size_t nodes() const { return nodes_.size(); }
  uint64_t replaced() const { return replaced_; }

 private:
  // Nodes are anywhere in the owner's memory.
  static uint64_t NodeLine(uint64_t line) { return line % 2 == 0 ? line : kFarLines + line; }
  uint64_t NewEntry() {
    const uint64_t line = random_.OneIn(10)           ? NodeLine(1 + random_.Below(kNodes))
                          : far_ && random_.OneIn(20) ? kFarLines
                                                      : 1 + random_.Below(kNearLines - 1);
    const auto type = static_cast<NodeType>(random_.Below(kLargestNode + 1));
    const auto byte = static_cast<int>(random_.Below(random_.OneIn(3) ? kMostByte + 1 : 8));
    const auto more = byte == 0 ? 0 : static_cast<int>(random_.Below(kMostByte + 1));
    return dolphin::EntryWord({GlobalAddress(kOwner, line * kLineBytes), type}, byte, more);
  }
  // One that the node has, if it has any.
  uint64_t EntryOf(uint64_t line) {
    const auto at = nodes_.find(line);
    if (at == nodes_.end() || at->second.entries.empty()) return NewEntry();
    return std::next(at->second.entries.begin(), static_cast<ptrdiff_t>(random_.Below(at->second.entries.size())))
        ->second;
  }
  void Put(uint64_t line, GlobalAddress address) {
    ModelNode node;
    node.type = static_cast<NodeType>(kSmallestNode + random_.Below(kLargestNode));
    node.prefix =
        std::string(random_.Below(random_.OneIn(3) ? kMostPrefix + 1 : 8), static_cast<char>('a' + line % 26));
    node.version = random_.OneIn(10) ? UINT32_MAX + random_.Below(3) : 2 + random_.Below(1000);
    NodeImage image;
    image.Make({address, node.type}, /*prefix_lines=*/1, kAbsentBit | (node.version - 1), node.prefix);
    const auto most = static_cast<uint64_t>(std::min(kMostByte + 1, image.slots()));
    for (uint64_t n = random_.Below(random_.OneIn(5) ? most + 1 : 5); n > 0; --n) {
      const uint64_t entry = NewEntry();
      const auto [at, is_new] = node.entries.try_emplace(dolphin::ByteOf(entry), entry);
      if (!is_new) continue;
      if (!image.Add(entry)) node.entries.erase(at);
    }
    const bool is_known = cache_.Find(address).has_value();
    cache_.Put(image);
    const ModelNode old = std::exchange(nodes_[line], node);
    // A node that a larger one has replaced is gone.
    for (const auto& [byte, entry] : old.entries) {
      const auto now = node.entries.find(byte);
      if (!is_known || dolphin::TypeOf(entry) == dolphin::kLeafType || now == node.entries.end() ||
          dolphin::TypeOf(now->second) <= dolphin::TypeOf(entry))
        continue;
      for (uint64_t child = 1; child <= kNodes; ++child) {
        if (NodeLine(child) * kLineBytes != dolphin::OffsetOf(entry)) continue;
        replaced_ += nodes_.erase(child);
        ASSERT_FALSE(cache_.Find({kOwner, dolphin::OffsetOf(entry)}).has_value());
      }
    }
  }
  void Note(uint64_t line, GlobalAddress address, uint64_t entry) {
    cache_.NoteEntry(address, entry);
    const auto at = nodes_.find(line);
    if (at != nodes_.end()) at->second.entries[dolphin::ByteOf(entry)] = entry;
  }
  void NoteNone(uint64_t line, GlobalAddress address, uint64_t entry) {
    cache_.NoteNoEntry(address, entry);
    const auto at = nodes_.find(line);
    if (at == nodes_.end()) return;
    const auto had = at->second.entries.find(dolphin::ByteOf(entry));
    if (had != at->second.entries.end() && had->second == entry) at->second.entries.erase(had);
  }
  // A cache with a bound may have given a node up.
  void Compare(uint64_t line, GlobalAddress address) {
    const std::optional<ArtCopy> copy = cache_.Find(address);
    const auto at = nodes_.find(line);
    if (at == nodes_.end()) {
      ASSERT_FALSE(copy.has_value());
      return;
    }
    if (!copy.has_value()) {
      ASSERT_LT(most_, size_t{1} << 30);
      nodes_.erase(at);
      return;
    }
    const ModelNode& node = at->second;
    ASSERT_EQ(copy->line(), address.offset() / kLineBytes);
    ASSERT_EQ(copy->type(), node.type);
    ASSERT_EQ(copy->prefix(), node.prefix);
    ASSERT_EQ(copy->version().has_value(), node.version <= UINT32_MAX);
    if (copy->version().has_value()) {
      ASSERT_EQ(*copy->version(), node.version);
    }
    ASSERT_EQ(copy->count(), node.entries.size());
    size_t i = 0;
    for (const auto& [byte, entry] : node.entries) ASSERT_EQ(copy->entry(i++), entry);
    const auto limit = static_cast<int>(random_.Below(kMostByte + 1));
    const auto behind = node.entries.upper_bound(limit);
    ASSERT_EQ(copy->EntryUpTo(limit), behind == node.entries.begin() ? 0 : std::prev(behind)->second);
    const auto from = node.entries.lower_bound(limit);
    ASSERT_EQ(copy->EntryFrom(limit), from == node.entries.end() ? 0 : from->second);
  }

  Random random_;
  const bool far_;
  ArtCache cache_;
  const size_t most_;
  std::map<uint64_t, ModelNode> nodes_;  // that the cache has, or had
  uint64_t replaced_ = 0;
};

TEST(DolphinCache, HasWhatItWasTold) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Model model(seed, size_t{1} << 40, /*far=*/seed % 2 == 0);
    for (int step = 0; step < 60'000; ++step) ASSERT_NO_FATAL_FAILURE(model.Step()) << "seed " << seed;
    model.CompareAll();
    EXPECT_EQ(model.cache().nodes(), model.nodes());
    EXPECT_GT(model.replaced(), 20u);
    // Gaps are at most a sixteenth and a chunk. What is left at the end of a chunk is less than a copy.
    EXPECT_LE(model.cache().bytes(), model.BytesOfCopies() * 9 / 8 + 3 * 8192 + 3000 * sizeof(uint32_t))
        << "seed " << seed;
  }
}

TEST(DolphinCache, HasItsBound) {
  for (const size_t most :
       {size_t{0}, size_t{16'000}, size_t{16'384}, size_t{20'000}, size_t{60'000}, size_t{150'000}}) {
    Model model(most, most, /*far=*/true);
    for (int step = 0; step < 60'000; ++step) ASSERT_NO_FATAL_FAILURE(model.Step()) << most << " bytes";
    model.CompareAll();
    std::printf("%zu copies in %zu bytes\n", model.cache().nodes(), most);
    EXPECT_GE(model.cache().nodes() * 260, most < 16'384 ? 0 : most - 8192);
    EXPECT_EQ(model.cache().nodes() == 0, most < 16'384);
  }
}

}  // namespace dolphin_cache_test
}  // namespace gannet::index
