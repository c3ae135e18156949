// The owner's work for transactions of other nodes: it makes locked placeholders for their inserts, removes records
// from its indexes when they commit or abort, and answers reads that come as a call. One per node; handlers of
// rdma/fabric.h.
//
// Requests come from peers and are checked: tables, keys, lengths, and that a record to finish lies in this node's
// memory, is of that table and is locked by the calling worker. A request that changes something is carried out once,
// however often it arrives (request_ledger.h), and only for nodes that have joined and are not known to be dead
// (peers.h). kTxnLog is not repeated, and may come late: a part without a decision has no effect.
//
// owner_service.cc: requests of live coordinators. owner_reads.cc: records for them. owner_scan.cc: ranges of rows for
// them. owner_decisions.cc: the parts that repair.h needs.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "index/service.h"
#include "rdma/fabric.h"
#include "txn/node/local_node.h"
#include "txn/peer/peers.h"
#include "txn/peer/pending_moves.h"
#include "txn/peer/request_ledger.h"
#include "txn/peer/wire.h"

namespace gannet::txn {

class Durability;
class SeenWords;

// Attempts of an owner to read a locked record for a request: about as long as a CPU takes to install one. It must not
// wait for the lock of a transaction that may wait for a call to the same owner, because all its threads might then
// wait.
inline constexpr int kOwnersSpins = 16;

// What an OwnerService asks the repair to do.
struct RepairCalls {
  std::function<void()> wake;          // another node tells of a death
  std::function<bool()> release_dead;  // a change waits for a lock that a dead node may hold (Repairer::ReleaseDead)
};

class OwnerService {
 public:
  // Registers the handlers on the node. All must outlive this.
  OwnerService(const LocalNode* local, Durability* durability, Peers* peers, RepairCalls repair);

  // Called by the Repairer, about a node none of whose requests is admitted any more.
  std::vector<DecidedWork> DecidedBy(rdma::NodeId node) { return ledger_.DecidedBy(node); }
  // Finishes the items of one transaction whose records it still has locked; the others have been finished.
  Status FinishWork(std::span<const std::byte> work);
  // Takes away the node's locks in indexes: these protect no decision, so nothing has to be carried out before.
  void ReleaseIndexesOf(rdma::NodeId node);
  // Ends the node's claims in indexes, which it uses no more (index/claim_boards.h). After an error it can be called
  // again.
  Status EndClaimsOf(rdma::NodeId node);
  // Undoes everything that the node holds here: locks, placeholders, blocks to move to. False if `stop` ended it early.
  bool ReleaseAllOf(rdma::NodeId node, const std::function<bool()>& stop);

 private:
  StatusOr<size_t> Prepare(std::span<const std::byte> request, std::span<std::byte> response);
  StatusOr<size_t> Finish(std::span<const std::byte> request);
  StatusOr<size_t> Cancel(std::span<const std::byte> request);
  StatusOr<size_t> Decide(std::span<const std::byte> request);
  StatusOr<size_t> FinishFor(std::span<const std::byte> request);
  StatusOr<size_t> Join(rdma::NodeId caller, std::span<const std::byte> request);
  StatusOr<size_t> Forwarded(std::span<const std::byte> request, std::span<std::byte> response);
  StatusOr<size_t> Log(rdma::NodeId caller, std::span<const std::byte> request);
  StatusOr<size_t> Lend(rdma::NodeId caller, std::span<const std::byte> request, std::span<std::byte> response);
  // Defined in owner_reads.cc.
  StatusOr<size_t> Read(std::span<const std::byte> request, std::span<std::byte> response);
  StatusOr<size_t> ReadMany(std::span<const std::byte> request, std::span<std::byte> response);
  StatusOr<ReadOutcome> AnswerRead(const Table& table, const Key& key, index::FindResult found,
                                   rdma::WireWriter& writer, SeenWords* words) const;
  // Defined in owner_scan.cc.
  StatusOr<size_t> Scan(std::span<const std::byte> request, std::span<std::byte> response);

  // The answer to a caller that waits for a record: LockedTooLong, as one of its conflicts.
  Status LockedHere(rdma::GlobalAddress record) const;
  Status CheckItem(const PrepareItem& item) const;
  Status CheckItem(const FinishItem& item, uint64_t owner_bits) const;
  // The record at `address` if it can be one, is of `table` and has the state `locked_state`; else null.
  std::byte* LockedRecord(rdma::GlobalAddress address, TableId table, uint64_t locked_state) const;
  StatusOr<PrepareOutcome> PrepareOne(index::Context& context, const PrepareItem& item, uint64_t owner_bits,
                                      Prepared* prepared);
  StatusOr<size_t> PrepareAll(std::span<const PrepareItem> items, uint64_t owner_bits, std::vector<Unmaking>* made,
                              std::span<std::byte> response);
  Status FinishAll(rdma::WireReader& reader, uint64_t owner_bits);
  Status CheckImage(const std::byte* record, std::span<const std::byte> image) const;
  void Install(const FinishItem& item);
  Status NoteDecision(rdma::WireReader& reader, uint8_t flags, RequestLedger::Entry* entry) const;
  void ReleaseRecord(index::Context& context, const Table& table, rdma::GlobalAddress address, rdma::NodeId node);
  void Unmake(index::Context& context, std::vector<Unmaking>* made);
  void FinishOne(index::Context& context, const FinishItem& item);
  // FinishOne, of a table that was dropped.
  void FinishDropped(index::Context& context, const FinishItem& item);
  // Gives back the new place of a record that did not come into its index.
  void DropUnreachable(index::Context& context, const FinishItem& move);
  void CountBytes(TableId table, int64_t bytes);

  const LocalNode* const local_;
  Durability* const durability_;
  Peers* const peers_;
  const RepairCalls repair_;
  RequestLedger ledger_;
  PendingMoves moves_;
  Mutex release_mutex_;  // one ReleaseIndexesOf at a time
  Mutex work_mutex_;     // one FinishWork at a time: it checks, and then acts
};

// Error answers of its handlers.
Status NotAdmitted();
Status TooLate(const char* what);
Status UnderWay();

}  // namespace gannet::txn
