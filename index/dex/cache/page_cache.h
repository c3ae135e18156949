// PageCache: copies of nodes, inner nodes and leaves, of all trees that this process uses at other nodes, for all its
// threads (DEX, VLDB'24, section 5).
//
//   - A copy of an inner node leads to those of its children by their frames, or by their addresses (pointer swizzling,
//     5.1). So a search takes the mapping table for the root, and where it leaves what is cached.
//   - Who has no free frame chooses two copies at random, and lets them cool: their parents lead to them by address
//     again. Whoever comes there before they are evicted makes them hot again. A copy that leads to others by their
//     frames passes the choice on to one of these (5.3): so a path is cached from the root down.
//   - A new leaf is admitted with a probability of a tenth, an inner node always (5.4); while blocks are unused, a leaf
//     is, too.
//
// A copy is a hint: the node may be another by now. The copy of a leaf has the leaf's state word, and no state word
// returns; so a READ of that word proves the copy. Nothing depends on which copy
// leads to which: a frame tells its own address, tree and level, and fences tell what it covers.
//
// The copy of a kept leaf (claim/claim.h) is not a hint, and is not forgotten: the user that takes its frame gets what
// was in it, and has to write that back and unlock the leaf.
//
// Latches: that of a child's frame before that of its parent; all are only tried.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/random.h"
#include "base/thread.h"
#include "index/dex/cache/cooling_map.h"
#include "index/dex/cache/frames.h"
#include "index/dex/cache/mapping_table.h"
#include "rdma/global_address.h"

namespace gannet::index::dex {

struct PageCacheOptions {
  size_t max_bytes = size_t{64} << 20;  // with all tables
  double leaf_admission = 0.1;          // probability, once no block is unused (5.4)
  double cooling = 0.1;                 // part of the frames that cools at most (5.2)
  // One latch for the whole cooling map, in place of one for each bucket: what the paper compares with (8.3).
  bool one_cooling_latch = false;
};

// Events since the cache was made.
struct PageCacheStatistics {
  uint64_t admitted = 0;
  uint64_t refused = 0;    // not admitted by chance
  uint64_t cooled = 0;     // chosen
  uint64_t delegated = 0;  // times that a choice was passed on to a child
  uint64_t restored = 0;   // used again while they cooled
  uint64_t evicted = 0;
  uint64_t dropped = 0;  // because they were found to be behind
  uint64_t recut = 0;    // blocks that were cut anew, for frames of another size
  uint64_t kept = 0;     // copies of kept leaves whose frames were taken: evicted, dropped or handed back
  uint64_t lost = 0;     // kept leaves whose connection ended before their changes reached the owner
};

// How a copy of an inner node leads to a child: a frame, or an offset in the memory of the owner.
class ChildLink {
 public:
  constexpr ChildLink() = default;
  explicit constexpr ChildLink(uint32_t bits) : bits_(bits) {}
  constexpr uint32_t bits() const { return bits_; }

 private:
  uint32_t bits_ = 0;
};

// The frame of a kept leaf, as it was.
struct alignas(kWordBytes) KeptFrame {
  std::array<std::byte, BytesOf(FrameSize::k384)> bytes;

  rdma::GlobalAddress leaf() const {
    return rdma::GlobalAddress::FromBits(LoadWord(bytes.data() + offsetof(FrameHead, node)));
  }
  const std::byte* body() const { return bytes.data() + sizeof(FrameHead); }
};

class PageCache {
 public:
  explicit PageCache(const PageCacheOptions& options);

  // What a client has of the cache for itself: free frames, a generator. Used by one thread at a time.
  class User {
   public:
    explicit User(PageCache* cache) : cache_(*cache), number_(cache->next_user_.fetch_add(1)), random_(number_) {}
    ~User();
    User(const User&) = delete;
    User& operator=(const User&) = delete;

    // A number of 48 bits that no user has had for long.
    uint64_t NextMark() { return number_ << 32 | ++marks_; }
    // The frames of kept leaves that this user, or one that is no more, has taken. They are the caller's now.
    std::vector<KeptFrame> TakeKept();
    bool has_kept() const { return !kept_.empty(); }
    void AddKept(const KeptFrame& frame) { kept_.push_back(frame); }

   private:
    friend class PageCache;
    PageCache& cache_;
    const uint64_t number_;
    uint32_t marks_ = 0;
    Random random_;
    std::array<std::vector<FrameId>, kFrameSizes> free_;  // frames that were free
    std::vector<KeptFrame> kept_;
  };

  // The number of a tree, whose copies are of no other. Numbers come again after 65,536 trees.
  uint16_t AddTree() { return static_cast<uint16_t>(next_tree_.fetch_add(1)); }
  // The frames of its copies.
  uint64_t BytesOf(uint16_t tree) const;

  const Frames& frames() const { return frames_; }
  // The frame that may have a copy of the node; kComing: it will have one; kNoFrame: none has.
  FrameId Find(rdma::GlobalAddress node) const { return table_.Find(node.bits()); }

  // The link to a child by its address. Null: the address is too far from the beginning of its node's memory (256 GiB).
  std::optional<ChildLink> LinkTo(rdma::GlobalAddress child) const {
    const uint64_t bits = child.offset() / kLineBytes + limit_;
    if (bits > UINT32_MAX || child.offset() % kLineBytes != 0) return std::nullopt;
    return ChildLink(static_cast<uint32_t>(bits));
  }
  bool LeadsToFrame(ChildLink link) const { return link.bits() < limit_; }
  FrameId FrameOf(ChildLink link) const { return link.bits(); }
  rdma::GlobalAddress AddressOf(ChildLink link, rdma::NodeId owner) const {
    return {owner, uint64_t{link.bits() - limit_} * kLineBytes};
  }
  // The link with this number in a copy of an inner node.
  static ChildLink LoadLink(const std::byte* body, size_t child) {
    return ChildLink(static_cast<uint32_t>(LoadWord(body + child / 2 * kWordBytes) >> (child % 2 * 32)));
  }
  static void StoreLink(std::byte* body, size_t child, ChildLink link) {
    std::byte* const word = body + child / 2 * kWordBytes;
    const size_t shift = child % 2 * 32;
    StoreWord(word, (LoadWord(word) & ~(uint64_t{0xffffffff} << shift)) | uint64_t{link.bits()} << shift);
  }

  // True: a copy of a node of this level, which was READ just now, is to come into the cache.
  bool Admits(User* user, uint8_t level);
  // A frame for the copy of a node that has none, latched. The caller writes the body, and calls Publish or Abandon.
  // Null: none can be had now.
  std::optional<LatchedFrame> Take(User* user, FrameSize size);
  // The frame holds a copy of `node` now. `place.parent`: the copy that led to it, which will lead to this frame.
  // kAnnounced: by this caller. False: somebody else has another copy, and the frame is free again.
  enum class As : uint8_t { kCopy, kAnnounced, kKept };  // the last: that of a kept leaf, which is announced, too
  bool Publish(User* user, const LatchedFrame& frame, rdma::GlobalAddress node, Place place, As as = As::kCopy);
  void Abandon(User* user, const LatchedFrame& frame);
  // Latches the frame of a node that has one, to write another body into it; then Republish. Null: it has none of that
  // tree and size, or somebody else has latched it.
  std::optional<LatchedFrame> Reopen(uint16_t tree, rdma::GlobalAddress node, FrameSize size);
  void Republish(const LatchedFrame& frame, Place place);

  // Until Publish or Withdraw, nobody else makes a copy of the node, and a search for one finds that it is coming.
  // False: there is a copy, or somebody else has announced one.
  bool Announce(rdma::GlobalAddress node) { return table_.Insert(node.bits(), kComing); }
  void Withdraw(rdma::GlobalAddress node) { table_.Erase(node.bits(), kComing); }

  // The frame with the copy of a node, latched, to change its body; then Rewritten or Release. `is_busy`: there may be
  // a copy, or will be, and it cannot be latched now.
  struct Latching {
    std::optional<LatchedFrame> frame;
    bool is_busy = false;
  };
  Latching Latch(rdma::GlobalAddress node);
  void Rewritten(const LatchedFrame& frame);
  // The frame of a kept leaf, if it has not changed since the look, latched; then Rewritten, Release, or Forsake, if
  // the node has lost the leaf.
  std::optional<LatchedFrame> LatchKept(FrameId id, const FrameLook& look) { return frames_.TryLatch(id, look.word); }
  void Forsake(User* user, const LatchedFrame& frame);
  void NoteLost(bool changes) {
    if (changes) Add(nullptr, Event::kLost);
  }
  // Takes the frames of the tree's kept leaves whose bodies are wanted, from `block` on, at most `most`, for the user.
  // Returns the block where to go on; the number of blocks: that was all, but for those that were latched (*missed).
  size_t TakeKeptFrom(User* user, uint16_t tree, size_t block, size_t most,
                      absl::FunctionRef<bool(const std::byte* body)> is_wanted, bool* missed);
  // Opens a latch; nothing was changed.
  void Release(const LatchedFrame& frame);

  // A copy that was found by its address: it is hot now, and `parent`, if there is one, leads to its frame.
  void Restore(User* user, FrameId frame, rdma::GlobalAddress node, FrameId parent);
  // Forgets the copy of a node, if there is one. `user`: null, if the caller is none.
  void Drop(User* user, rdma::GlobalAddress node);

  uint64_t bytes() const {
    return frames_.used_blocks() * (Frames::kBlockBytes + kWordBytes) + table_.bytes() + cooling_.bytes();
  }
  PageCacheStatistics statistics() const;

 private:
  // Free frames that a user keeps for itself, of each size.
  static constexpr size_t kOwnFree = 8;
  static constexpr int kCooledAtOnce = 2;
  static constexpr int kLatchTries = 64;

  // A frame of this size that is free, as far as this user knows, latched.
  std::optional<LatchedFrame> TakeFree(User* user, FrameSize size);
  void KeepFree(User* user, FrameSize size, FrameId frame);
  // Lets a copy, chosen at random, cool.
  void CoolOne(User* user);
  // Lets this copy cool, or a child of it. False: it cannot cool now.
  bool Cool(User* user, FrameId frame, int depth);
  // No other copy leads to the frame any more, and it does not cool.
  void Detach(const LatchedFrame& frame);
  // The user gets the frame of a kept leaf.
  void HandOver(User* user, const LatchedFrame& frame);
  // Evicts a copy that has left the cooling map.
  void Evict(User* user, FrameId frame);
  // A latched copy is none any more; and its frame is free.
  void Forget(User* user, const LatchedFrame& frame);
  void Empty(User* user, const LatchedFrame& frame);
  // Cuts a block of frames of another size anew.
  std::optional<LatchedFrame> Recut(User* user, FrameSize size);
  // The parent leads to the child by its address (by its frame) from now on, if it leads there. The child is latched.
  void Unswizzle(const LatchedFrame& child, const Place& place);
  bool Swizzle(const LatchedFrame& child, const Place& place);
  // Each count has so many copies, in lines of their own. Users are dealt to them, so threads that count seldom meet in
  // one line.
  static constexpr size_t kShares = 8;
  static size_t ShareOf(const User* user) { return user == nullptr ? 0 : user->number_ % kShares; }
  // The bytes of a tree's frames, as far as users of this share have taken them and given them back.
  std::byte* SizeOf(const User* user, uint16_t tree) const { return SizeIn(ShareOf(user), tree); }
  std::byte* SizeIn(size_t share, uint16_t tree) const { return tree_bytes_[share].data() + tree * kWordBytes; }
  // Their order is that of PageCacheStatistics.
  enum class Event : uint8_t {
    kAdmitted,
    kRefused,
    kCooled,
    kDelegated,
    kRestored,
    kEvicted,
    kDropped,
    kRecut,
    kKept,
    kLost
  };
  static constexpr size_t kEvents = static_cast<size_t>(Event::kLost) + 1;
  struct alignas(2 * kLineBytes) Counts {
    std::array<std::atomic<uint64_t>, kEvents> of{};
  };
  void Add(const User* user, Event event) {
    counts_[ShareOf(user)].of[static_cast<size_t>(event)].fetch_add(1, std::memory_order_relaxed);
  }

  const PageCacheOptions options_;
  Frames frames_;
  const uint32_t limit_;  // frames are below
  MappingTable table_;
  CoolingMap cooling_;
  std::array<BulkMemory, kShares> tree_bytes_;  // a word for each tree
  std::atomic<uint64_t> next_user_{1};
  std::atomic<uint32_t> next_tree_{1};
  Mutex mutex_;
  std::array<std::vector<FrameId>, kFrameSizes> free_;  // guarded by mutex_: that no user keeps
  std::vector<KeptFrame> kept_;                         // the same
  std::array<Counts, kShares> counts_;
};

}  // namespace gannet::index::dex
