// LentRecords: blocks for records that this node has lent to clients, which make records of them by verbs
// (commit/one_sided_inserts.h). A client borrows several at a time by kTxnLend, and tells with a later kTxnLend which
// of them are records by now.
//
// A block is here from when it is lent
//   - until its client says that it has made it a record that is in the index, or
//   - until that record is removed, if this comes first: who will give its memory back asks Drop, before it takes the
//     record out of the index (a Sweep in between would find the block here and not in the index), or
//   - until the client is dead: the repair takes out those that the index leads to (TakeOut), and gives back all others
//     (Sweep). No client but a dead one can have written into them.
// So a block is freed once, and memory is not lost with a client. What a living client does not use stays lent.
//
// Drop is asked whenever a record is removed, so it must be cheap where nothing is lent: a counting filter answers
// first.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/random.h"
#include "base/thread.h"
#include "index/index.h"
#include "rdma/fabric.h"
#include "rdma/global_address.h"
#include "txn/store/table.h"

namespace gannet::txn {

// A block without a record. `word`: its state word, from whose version a record there goes on.
struct LentBlock {
  rdma::GlobalAddress address{};
  uint64_t word = 0;
  uint64_t lent_word = 0;    // `word` when the block was lent; set by the client
  uint16_t incarnation = 0;  // of the last record there (index::RecordMeta)
};

// A block that has become a record of the table.
struct UsedBlock {
  TableId table = 0;
  LentBlock block;
};

// Thread-safe.
class LentRecords {
 public:
  // `node` must outlive this.
  explicit LentRecords(rdma::Node* node) : node_(node) {}

  // Lends up to `count` blocks for records of `bytes` bytes; fewer, or none, if the heap is full.
  std::vector<LentBlock> Lend(index::Context& context, rdma::NodeId lessee, size_t bytes, size_t count);
  // The block, lent to `lessee` with `word` (0: with any), is a record in an index. Returns its size, or 0 if it is not
  // here any more.
  int64_t TakeOut(rdma::GlobalAddress block, rdma::NodeId lessee, uint64_t word);
  // The record there has been removed, and its memory will be given back. True if the block was here.
  bool Drop(rdma::GlobalAddress block) { return MayHave(block) && Erase(block); }
  // False: it is not here.
  bool MayHave(rdma::GlobalAddress block) const { return filter_[PlaceOf(block)].load(std::memory_order_acquire) != 0; }
  // Gives back all that is lent to `lessee`, which is dead, and is in no index.
  void Sweep(index::Context& context, rdma::NodeId lessee);
  void ForEach(const std::function<void(rdma::GlobalAddress, size_t bytes)>& visit) const;

 private:
  struct Lent {
    rdma::NodeId lessee = 0;
    uint32_t bytes = 0;
    uint64_t word = 0;
  };
  static constexpr size_t kPlaces = 4096;
  static size_t PlaceOf(rdma::GlobalAddress block) { return Mix64(block.bits()) % kPlaces; }

  bool Erase(rdma::GlobalAddress block);
  // The mutex is held.
  void Count(rdma::GlobalAddress block, int by) {
    std::atomic<uint32_t>& place = filter_[PlaceOf(block)];
    // A count that is too low hides a block that is lent, which would then be freed twice.
    GANNET_CHECK(by > 0 || place.load(std::memory_order_relaxed) > 0, "block %s is taken out and not lent",
                 block.ToString());
    place.store(place.load(std::memory_order_relaxed) + static_cast<uint32_t>(by), std::memory_order_release);
  }

  rdma::Node* const node_;
  mutable Mutex mutex_;                                  // guards the next member, and writes of filter_
  absl::flat_hash_map<uint64_t, Lent> lent_;             // by address
  std::array<std::atomic<uint32_t>, kPlaces> filter_{};  // number of lent blocks by PlaceOf
};

}  // namespace gannet::txn
