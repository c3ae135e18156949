// SeparatorTable: the owner's copies of inner nodes of byte keys, with the separators, which the nodes themselves have
// not (index/shared_leaf/leaf/tagged_leaf.h). They lead a lookup of the owner to a leaf without a look at the children
// of each node on the way.
//
// All that is here are hints: the leaf's fences decide. So threads read and replace copies as they like, word by word;
// a mixture of two copies leads to a wrong leaf at worst, and the lookup then goes the long way. A copy is used while
// its node has the state word that it had when its children were read. Of two nodes with the same place in the table,
// the later one replaces the other.
//
// Thread-safe. At most 3.3 MB, if there are that many inner nodes: 1,000 lead to some 700,000 keys.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "index/blink/node.h"

namespace gannet::index::blink {

class SeparatorTable {
 public:
  using LeafCopy = shared_leaf::LeafCopyOf<ByteKeys>;
  using Point = ByteKeys::Point;

  ~SeparatorTable() {
    for (auto& copy : copies_) delete copy.load(std::memory_order_relaxed);
  }

  // A point in the form of the copies.
  class Words {
   public:
    explicit Words(const Point& point);

   private:
    friend class SeparatorTable;
    std::array<uint64_t, 9> key_;
    bool below_;
  };

  // The child of the node at `offset`, whose state word is `state` now, that leads to the point. 0: it is not known.
  // *level: of the node.
  uint64_t ChildOf(uint64_t offset, uint64_t state, const Words& point, uint8_t* level) const;
  // Copies an inner node, if all its keys are known.
  void Put(const LeafCopy& node);

  uint64_t bytes() const { return sizeof(*this) + made_.load(std::memory_order_relaxed) * sizeof(Copy); }

 private:
  static constexpr size_t kCopies = 1024;
  static constexpr size_t kKeyWords = 9;  // as those of a scan's position: padded bytes, then the length
  static constexpr uint64_t kBeingWritten = UINT64_MAX;

  using Word = std::atomic<uint64_t>;
  struct Copy {
    Word offset{0};
    Word state{0};
    Word size{0};  // | level 8 | entries 8 |
    std::array<Word, ByteKeys::kSlots> child{};
    std::array<std::array<Word, kKeyWords>, ByteKeys::kSlots> key{};  // ascending
  };

  static size_t IndexOf(uint64_t offset) {
    return static_cast<size_t>((offset / kLineBytes * 0x9E3779B97F4A7C15) >> 32) % kCopies;
  }
  static bool IsAtMost(const std::array<Word, kKeyWords>& separator, const Words& point);

  std::array<std::atomic<Copy*>, kCopies> copies_{};
  std::atomic<uint64_t> made_{0};
};

}  // namespace gannet::index::blink
