// ArtWay: the way through the inner nodes of Dolphin (MSST'24, III-B) to the leaf of a key, one node at a time. It
// decides which node to look at next; the reader has that in a cache, in its own memory, or by a READ.
//
//   ArtWay way(root, key);
//   while (way.step() == ArtWay::Step::kRead) {
//     <a copy of the node way.next(), unless way.must_read()>     way.Take(copy, /*is_fresh=*/false);
//     <the node itself; is it whole?>                             way.Take(node, /*is_fresh=*/true);
//     <it is not>                                                 way.Miss();
//   }
//
// The leaf of a key has the greatest low fence that is at most the key. A node whose prefix the key has leads on by the
// entry with the greatest byte that is at most the key's next one: to a child with that byte, or to the last leaf below
// one with a smaller byte. If the node has no such entry, or if its prefix is greater than the key, the way goes back
// to the entry before the one by which it came. A node whose prefix is less than the key leads to its last leaf.
//
// Entries may be missing or wrong. An entry for a leaf says what the leaf's low fence is (low()), so a reader knows a
// wrong one when it has READ the leaf; GoLeft() then leads to the leaf before it. A node must extend the prefix and the
// byte of the entry that leads to it. If it does not, the copies of both are stale, and the way asks for the nodes
// themselves. If they do not fit either, the entry is wrong, and the way goes on as if it were missing (misled()).
//
// The way is bounded in depth, because prefixes grow, and in steps. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "index/dolphin/inner_node.h"

namespace gannet::index::dolphin {

class ArtWay {
 public:
  enum class Step : uint8_t {
    kRead,   // look at next()
    kFound,  // leaf() is the one
    kNone,   // no entry leads to the key: the first leaf of the index and its right links do
  };

  // `root`: of the largest type. `below`: the leaf of the keys right below the key. The key is copied; at most
  // kShortKeyBytes.
  ArtWay(rdma::GlobalAddress root, std::string_view key, bool below = false)
      : key_(key), below_(below), next_{root, kLargestNode} {}

  Step step() const { return step_; }
  const NodeRef& next() const { return next_; }
  // A copy has led astray: it takes the node itself.
  bool must_read() const { return must_read_; }
  // Begins again, because the leaf was the wrong one: it ends before the key, or has another low fence. From now on
  // copies do only where the key's own byte leads on. If the nodes themselves lead to the same leaf, an entry is
  // missing or wrong in them.
  void Again();

  // `node`: what is known of next(). It has prefix(), EntryUpTo() and EntryFrom(), as NodeImage. `is_fresh`: it was
  // READ since the way began.
  template <class Node>
  void Take(const Node& node, bool is_fresh) {
    if (++steps_ > kMostSteps) {
      step_ = Step::kNone;
      return;
    }
    const std::string_view prefix = node.prefix();
    if (!Fits(prefix)) return Mismatch(is_fresh);
    if (distrusts_ && LeavesKey(prefix)) return ReadParent();
    const int limit = Arrive(prefix, is_fresh);
    uint64_t entry = 0;
    if (limit >= 0) entry = stack_.back().aim == Aim::kFrom ? node.EntryFrom(limit) : node.EntryUpTo(limit);
    if (BeginsBehind(entry)) entry = node.EntryUpTo(ByteOf(entry) - 1);
    if (distrusts_ && !is_fresh && !IsOfKey(entry)) {
      stack_.pop_back();
      must_read_ = true;
    } else {
      Follow(entry);
    }
  }
  // next() is dead, or torn for long, or no node is there.
  void Miss() {
    if (++steps_ > kMostSteps) {
      step_ = Step::kNone;
    } else {
      Mismatch(/*is_fresh=*/true);
    }
  }

  // The following: of a leaf that was found.
  rdma::GlobalAddress leaf() const { return leaf_; }
  // The low fence that it has, if the entry is right.
  ByteKey low() const;
  // The paper's special node: the one whose entry leads to the leaf. Its entry.
  const NodeRef& special() const { return stack_.back().node; }
  uint64_t entry() const { return stack_.back().entry; }
  // Goes on to the leaf of the keys right below low(). (Not the same as the last leaf before this one in a copy: what
  // is looked at on the way may be newer.)
  void GoLeft();
  // Goes on to the next leaf of the tree. For ways through copies: others follow the leaf's link.
  void GoRight() {
    steps_ = 0;
    Leave(/*forward=*/true);
  }

  // The last entry that was followed, was fresh, and led to no child.
  struct Misled {
    NodeRef node;
    uint64_t entry = 0;
  };
  const std::optional<Misled>& misled() const { return misled_; }

 private:
  static constexpr int kMostSteps = 1000;

  // kKey: where the key leads. kUpTo, kFrom: the greatest, or least, byte within a limit.
  enum class Aim : uint8_t { kKey, kUpTo, kFrom };
  struct Level {
    NodeRef node;
    uint64_t entry = 0;  // that was followed
    int16_t limit = 0;   // of kUpTo and kFrom
    Aim aim = Aim::kKey;
    uint8_t prefix_bytes = 0;
    bool is_fresh = false;
  };

  // The node may be a child of the last level, by its entry; or it is a level to which the way comes back.
  bool Fits(std::string_view prefix) const;
  // A copy of the last level leads by the key's byte to a node whose prefix the key does not have. There may be another
  // node between them by now.
  bool LeavesKey(std::string_view prefix) const {
    return aim_ == Aim::kKey && !stack_.empty() && !stack_.back().is_fresh && !key_.view().starts_with(prefix);
  }
  // Takes the last level again, from the node itself.
  void ReadParent();
  // Adds a level. Returns the limit of the bytes that are looked for in it; negative: none leads to the key.
  int Arrive(std::string_view prefix, bool is_fresh);
  // The leaf of this entry begins behind the key, by its second byte.
  bool BeginsBehind(uint64_t entry) const;
  // The entry leads to an inner node by the key's own byte.
  bool IsOfKey(uint64_t entry) const;
  // Leaf, child, or none (0).
  void Follow(uint64_t entry);
  void Leave(bool forward);
  void Mismatch(bool is_fresh);
  void GoTo(const NodeRef& node, Aim aim, int limit, int resumed_bytes) {
    next_ = node;
    aim_ = aim;
    limit_ = static_cast<int16_t>(limit);
    resumed_bytes_ = resumed_bytes;
    must_read_ = false;
    step_ = Step::kRead;
  }

  ByteKey key_;
  bool below_;
  bool distrusts_ = false;
  Step step_ = Step::kRead;
  NodeRef next_;
  bool must_read_ = false;
  Aim aim_ = Aim::kKey;     // at next_
  int16_t limit_ = 0;       // at next_
  int resumed_bytes_ = -1;  // of the prefix of next_, if the way was there before
  int steps_ = 0;
  ByteKey path_;  // begins with the prefixes of all levels
  absl::InlinedVector<Level, 9> stack_;
  rdma::GlobalAddress leaf_;
  std::optional<Misled> misled_;
};

}  // namespace gannet::index::dolphin
