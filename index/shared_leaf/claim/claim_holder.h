// ClaimHolder: what a node needs to claim leaves of other nodes (claim.h): its board, and the leases. One for all
// clients of the node, of all indexes and owners.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/coro/task.h"
#include "base/mutant.h"
#include "base/status.h"
#include "base/thread.h"
#include "index/claim_boards.h"
#include "index/shared_leaf/claim/claim_chains.h"
#include "rdma/fabric.h"

namespace gannet::index::shared_leaf {

// Claims at one owner over one connection are of one lease. Numbers begin at 1.
struct Lease {
  uint16_t number = 0;  // 0: there is none
  uint64_t connection = 0;
};

// The copy of a claimed leaf keeps a grant, in one word: | number of the lease (16) | value of the board's word (48) |.
// Without a lease it is no grant, and the value is a mark of the cache. Of a kept leaf the value tells which of its
// lines the owner does not have yet.
class Grant {
 public:
  constexpr Grant() = default;
  explicit constexpr Grant(uint64_t bits) : bits_(bits) {}
  constexpr Grant(uint16_t lease, uint64_t board_value)
      : bits_(uint64_t{lease} << kValueBits | (board_value & kValueMask)) {}

  // The grant of a kept leaf. `dirty`: a bit for each of its lines that the owner does not have, line 0 first.
  static constexpr Grant Kept(uint16_t lease, uint32_t dirty) { return {lease, kKeptBit | dirty}; }

  constexpr bool is_none() const { return lease() == 0; }
  constexpr bool is_kept() const { return !is_none() && (bits_ & kKeptBit) != 0; }
  constexpr uint32_t dirty() const { return static_cast<uint32_t>(bits_); }
  constexpr uint64_t bits() const { return bits_; }
  constexpr uint16_t lease() const { return static_cast<uint16_t>(bits_ >> kValueBits); }
  constexpr bool HasValue(uint64_t board_value) const { return ((bits_ ^ board_value) & kValueMask) == 0; }

  friend constexpr bool operator==(Grant, Grant) = default;

 private:
  static constexpr int kValueBits = 48;
  static constexpr uint64_t kValueMask = (uint64_t{1} << kValueBits) - 1;
  static constexpr uint64_t kKeptBit = uint64_t{1} << (kValueBits - 1);  // no word of a board comes so far

  uint64_t bits_ = 0;
};

// A node claims the leaves of its ranges (kNone), or keeps them (claim.h).
enum class Keeping : uint8_t { kNone, kWriteThrough, kWriteBack };

// Thread-safe.
class ClaimHolder {
 public:
  // `board`: kBoardBytes of the writable part of the node's heap. `process`: greater for each process that takes the
  // place of the node. All must outlive this.
  ClaimHolder(rdma::Node* node, std::byte* board, uint64_t process);
  ClaimHolder(const ClaimHolder&) = delete;
  ClaimHolder& operator=(const ClaimHolder&) = delete;

  // Before any client uses this.
  void set_keeping(Keeping keeping) { keeping_ = keeping; }
  Keeping keeping() const { return keeping_; }

  // The lease of the present connection to the owner, whom the board is told if necessary. No lease: the owner does not
  // take it now, or this process has lost too many connections.
  coro::Task<Lease> LeaseFrom(rdma::Channel* channel, rdma::NodeId owner, absl::Duration timeout);
  // The same lease, without asking the owner: none if its board has not been told of it.
  Lease KnownLease(rdma::NodeId owner) const;
  // Tells the owners that this process uses its claims no more. An owner that cannot be told waits for the end of the
  // leases. No client uses this any more.
  void Leave();
  // A verb that was posted at `posted_nanos`, over the connection of the lease, has succeeded.
  void Renew(uint16_t lease, uint64_t posted_nanos);

  uint64_t ConnectionTo(rdma::NodeId owner) const { return node_->ConnectionTo(owner); }
  // Another word than before: the owner may have other ranges (claim_ranges.h).
  uint64_t RangesWordOf(rdma::NodeId owner) const { return LoadWord(board_ + RangesWord(owner)); }

  // To be called before the CAS that claims the leaf: what its copy keeps.
  Grant NewGrant(rdma::GlobalAddress leaf, uint16_t lease) const { return {lease, LoadWord(board_ + BoardWord(leaf))}; }
  // Two of the three looks that tell whether a copy of the leaf was good all the time since the claim. The third is at
  // the copy, by the caller. All come after the reads of the copy.
  bool IsGood(rdma::GlobalAddress leaf, Grant grant) const {
    return (grant.HasValue(LoadWord(board_ + BoardWord(leaf))) || GANNET_MUTANT(kBoardUnseen)) &&
           (NowNanos() < EndOf(grant.lease()) || GANNET_MUTANT(kLeaseUnseen));
  }

  // The lease lasts, so the copy of a kept leaf was good. To be called after the reads of the copy.
  bool Lasts(uint16_t lease) const { return NowNanos() < EndOf(lease) || GANNET_MUTANT(kLeaseUnseen); }

  // The board says that the claim was ended.
  bool IsEnded(rdma::GlobalAddress leaf, Grant grant) const {
    return !grant.HasValue(LoadWord(board_ + BoardWord(leaf)));
  }
  ClaimChains& chains() { return chains_; }
  const ClaimChains& chains() const { return chains_; }

  // The owner has ended a claim of this leaf, or of another with its word of the board. A node that claimed again at
  // once could do so each time between the owner's FAA and its CAS; so it waits for 1 ms first, then for twice as long
  // each time.
  void NoteEnded(rdma::GlobalAddress leaf) { PauseFor(leaf, kLongestPauseNanos); }
  // The node has claimed the leaf again, whose copy its cache had dropped. That changes the word that transactions of
  // other nodes have seen. If the cache is too small for what its threads read, these would conflict with that time and
  // again; so the pauses become longer than a transaction.
  void NoteAgain(rdma::GlobalAddress leaf) { PauseFor(leaf, kLongestPauseOfSmallCaches); }
  bool MayClaim(rdma::GlobalAddress leaf) const;

 private:
  static constexpr size_t kMostLeases = 1024;
  static constexpr size_t kPauses = 4096;
  static constexpr uint32_t kFirstPauseNanos = 1'000'000;
  static constexpr uint32_t kLongestPauseNanos = 100'000'000;
  static constexpr uint32_t kLongestPauseOfSmallCaches = 4'000'000'000;

  // The pause of a word of the board, or of several.
  struct Pause {
    std::atomic<uint64_t> until{0};
    std::atomic<uint32_t> nanos{0};  // its length
  };
  // `board`: null if this process leaves.
  coro::Task<Status> Tell(rdma::Channel* channel, rdma::NodeId owner, rdma::GlobalAddress board, absl::Duration timeout,
                          uint64_t connection);
  // The next pause of the leaf's word begins now, and is twice as long as the last.
  void PauseFor(rdma::GlobalAddress leaf, uint32_t longest);
  uint64_t EndOf(uint16_t lease) const { return ends_[lease].load(std::memory_order_acquire); }
  Pause& PauseOf(rdma::GlobalAddress leaf) const { return pauses_[BoardWord(leaf) / kWordBytes % kPauses]; }

  rdma::Node* const node_;
  std::byte* const board_;
  const uint64_t process_;
  Keeping keeping_ = Keeping::kNone;
  const std::unique_ptr<std::array<std::atomic<uint64_t>, kMostLeases>> memory_;
  std::array<std::atomic<uint64_t>, kMostLeases>& ends_;  // by lease
  const std::unique_ptr<Pause[]> pauses_;
  ClaimChains chains_;
  mutable Mutex mutex_;
  uint16_t last_ = 0;          // lease
  std::vector<Lease> leases_;  // guarded by mutex_; by owner
};

}  // namespace gannet::index::shared_leaf
