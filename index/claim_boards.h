// ClaimBoards: the boards of the nodes that claim leaves of this node's indexes (shared_leaf/claim/claim.h), by which
// this node, the owner, ends claims.
//
// A board is a piece of the writable part of the holder's heap:
//
//   | words of a line, the first of which is nobody's | ...
//
// The address of a leaf chooses one of its words (BoardWord). The owner adds 1 to it, by FAA, with a READ of the word
// behind it in the posting: when both have completed, the holder's CPU sees the new value (rdma/fabric.h, 3). Other
// leaves of the word lose their claims, too, which costs a READ each. The first word of a line stays what it is,
// because the memory was one of records, to which stale addresses may lead (rdma/slab.h).
//
//   kTellBoard   process (8), address of the board (8; 0: the node leaves)   -> nothing
//
// One word of a board is raised, too, when an index of the owner has other ranges (shared_leaf/claim/claim_ranges.h).
//
// A node tells its board over the connection by which it claims. If that ends, all its claims must be ended before it
// may tell a board again: LocalIndex::EndClaimsOf for each index, not before kClaimTerm has passed, then Forget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "base/cache_line.h"
#include "base/coro/task.h"
#include "base/random.h"
#include "base/status.h"
#include "base/thread.h"
#include "index/index.h"
#include "rdma/fabric.h"

namespace gannet::index {

inline constexpr size_t kBoardBytes = rdma::kMaxObjectBytes;
inline constexpr size_t kBoardLines = kBoardBytes / kLineBytes;
inline constexpr size_t kBoardWordsPerLine = kLineBytes / kWordBytes - 1;

// A node may use its claims for this time after it has posted the last verb that has succeeded over the connection by
// which it claimed. By its own clock.
inline constexpr absl::Duration kClaimLease = absl::Milliseconds(15);
// So long after the end of a connection its owner ends the claims, by its own clock. The connection ended after that
// verb was posted; so no claim is used any more, if one clock is at most a quarter faster than the other.
inline constexpr absl::Duration kClaimTerm = absl::Milliseconds(20);

// Offset in a board of the word for this leaf.
inline uint64_t BoardWord(rdma::GlobalAddress leaf) {
  const uint64_t hash = Mix64(leaf.bits());
  const uint64_t line = hash % kBoardLines;
  const uint64_t word = 1 + (hash >> 32) % kBoardWordsPerLine;
  return line * kLineBytes + word * kWordBytes;
}

// The same of the word that is raised when `owner` has other ranges. Leaves share it, which costs a call now and then.
inline uint64_t RangesWord(rdma::NodeId owner) {
  return BoardWord(rdma::GlobalAddress(owner, 0));
}

inline constexpr rdma::MethodId kTellBoard = kBlockMethods + 4;

// Thread-safe.
class ClaimBoards {
 public:
  // `node` must outlive this.
  explicit ClaimBoards(rdma::Node* node) : node_(node) {}
  ClaimBoards(const ClaimBoards&) = delete;
  ClaimBoards& operator=(const ClaimBoards&) = delete;

  // `process`: greater for each process that takes the holder's place. Unavailable: what the holder has claimed over
  // another connection has not been ended yet; ask again. FailedPrecondition: there is a newer process.
  Status Tell(rdma::NodeId holder, uint64_t process, rdma::GlobalAddress board);

  // The process uses nothing that it has claimed any more. So nobody waits for its leases, and its claims end with the
  // next changes of their leaves.
  void Leave(rdma::NodeId holder, uint64_t process);

  // Makes all copies of the leaf useless that the holder has claimed. `channel`: of this node. Unavailable: the holder
  // cannot be reached, and its term runs. When it is over, nobody uses a copy any more, and this succeeds. So a caller
  // that tries again waits for no other thread, be it a handler or the repair.
  coro::Task<Status> End(rdma::Channel* channel, rdma::NodeId holder, rdma::GlobalAddress leaf);

  // Raises RangesWord on the boards of all nodes that are connected. A node that is not, asks when it is again.
  coro::Task<void> RaiseRanges(rdma::Channel* channel);

  // The node may have claims here: it has told a board, and they were not ended since.
  bool MayClaim(rdma::NodeId holder) const;
  // The node may have claims here, and the connection over which it told its board has ended.
  bool IsLost(rdma::NodeId holder) const;
  // It is lost, and kClaimTerm has passed since that was seen.
  bool IsTermOver(rdma::NodeId holder) const;
  // The claims of a node whose connection has ended were ended. Nothing if it has told a board over a later one.
  void Forget(rdma::NodeId holder);

  uint64_t ended() const { return ended_.load(std::memory_order_relaxed); }

 private:
  struct Board {
    rdma::GlobalAddress address;  // null: none was told
    uint64_t process = 0;         // the newest that told one
    uint64_t connection = 0;
    uint64_t lost_at = 0;  // when it was seen that the connection has ended; 0: it was not
  };
  enum class Term : uint8_t { kNone, kRuns, kOver };
  // By a thread of this node, whose clock it is. `mutex_` is held. kNone: the node has no claims here, or is connected.
  Term TermOf(rdma::NodeId holder) const;

  rdma::Node* const node_;
  mutable Mutex mutex_;
  mutable std::vector<Board> boards_;  // by node
  std::atomic<uint64_t> ended_{0};
};

class IndexService;

// Serves kTellBoard. Before Node::Serve; once is enough.
void RegisterClaimBoards(IndexService* service);

}  // namespace gannet::index
