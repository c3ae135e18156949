// OneSidedInserts: a commit's inserts at other nodes by verbs, into tables whose indexes clients may change
// (Table::index_traits). It takes the place of the kTxnPrepare call (prepare_calls.h), and needs no CPU of the owner:
//
//   before the lock   Each insert gets a block that the owner has lent (node/record_stock.h).
//   lock              The posting of the locks also READs the leaves where the client's caches expect the keys to
//                     belong. Where others have split them, one more posting READs all leaves to their right; where the
//                     caches know nothing, the indexes are searched, all at once.
//   lock the leaves   One posting for all indexes; keys of one leaf share a lock (index::InsertBatch). With a log
//                     READs of the versions of removed records follow the locks.
//   index, validate   One posting: WRITEs of the placeholders, which are whole records, locked and absent; WRITEs of
//                     the leaves, which release their locks, and of new leaves if they have no room; then the READs of
//                     the validation.
//
// From then on the placeholder is like one that the owner has made. Redo, decisions, installs, the release of an abort
// and the repair after a death do not differ. It takes as many postings as with the call: lock, prepare, validate,
// install.
//
// All or none. A call prepares any number of inserts, and costs a round trip in addition to those of the verbs. So if
// one thing has to be prepared by a call, all are: a record that moves, an insert into a table that clients may not
// change, or one that an index refuses when it has seen the leaf. That is known before anything is written.
//
// Why the record is there before the index leads to it: its WRITE comes before those of the leaf, and a node performs
// the WRITEs of one channel in their order (fabric.h, 3).
//
// Why the READs of the validation may go with the change of the leaves: by then all locks of the transaction are held,
// those of the leaves, too. A witness is the leaf's state word, which has the lock. So of two transactions each of
// which fills a gap that the other has seen, one finds the other's lock or change: both lock before they validate. The
// words of the own leaves are READ after the WRITEs, because a node performs verbs of one channel in their order
// (fabric.h, 3). With a log, the epoch is entered when the leaves are locked, for the same reason (redo.h).
//
// Why a placeholder starts above every removal of its key that comes before it, as recovery needs
// (durable/removal_versions.h). A removal is made by the owner's CPU: it notes the version, then it changes the leaf.
// The lock of the leaf is a CAS from the state word of an image that does not have the key, and no state word returns.
// So if the CAS succeeds, then at that moment each removal of the key that will ever come before this insert has
// changed the leaf, and has noted its version before that. (If the key was in another leaf, from which this one was
// split off later, the split comes after the removal.) The READ of the version is posted behind the CAS on the same
// channel to the same node, so it sees what the CAS saw (fabric.h, 3). It need not come after the key has entered the
// index, as at the owner, where an insert takes no lock first: from the CAS on until this transaction ends, no removal
// of the key can come.
//
// What fails. If the lock's posting fails, nothing was written. If the posting of the leaves' locks fails, with a log
// the transaction ends, because the versions are not known; leaves that are locked are changed all the same, which
// unlocks them, and the abort takes the placeholders out. Inserts whose leaves others change again and again go on by
// the call, in addition to the verbs of the others; then the validation comes after the call. An insert whose outcome
// is unknown is one whose connection has ended: the owner counts this node as dead, and removes the placeholder if it
// is in the index (ReleaseAllOf), or takes the block back (LentRecords). Blocks that came into no index are used again,
// with higher versions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/coro/started.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "rdma/fabric.h"
#include "txn/access/neighbour_reads.h"
#include "txn/access/read_set.h"
#include "txn/access/write_buffer.h"
#include "txn/commit/duplicate_key.h"
#include "txn/commit/owner_links.h"
#include "txn/commit/redo.h"
#include "txn/commit/validation.h"
#include "txn/node/lent_records.h"

namespace gannet::txn {

// Used by the session's thread. It keeps its scratch, and its clients' batches, from one commit to the next.
class OneSidedInserts {
 public:
  // All must outlive this.
  OneSidedInserts(SessionState* session, ReadSet* reads, WriteBuffer* writes, OwnerLinks* links, Redo* redo,
                  Validation* validation, DuplicateKey* duplicate)
      : session_(session),
        reads_(*reads),
        writes_(*writes),
        links_(*links),
        redo_(*redo),
        validation_(*validation),
        duplicate_(*duplicate) {}
  OneSidedInserts(const OneSidedInserts&) = delete;
  OneSidedInserts& operator=(const OneSidedInserts&) = delete;

  // Called if the inserts are made by verbs. Makes images of their placeholders. Without a block, inserts are made by
  // calls. Errors: those of SessionState::RemoteIndexOf.
  coro::Task<Status> MakePlaceholders();
  bool has_placeholders() const { return !placeholders_.empty(); }
  // Adds READs of the leaves where the keys may belong to *operations, the posting of the locks.
  void Begin(std::vector<rdma::Operation>* operations);
  // That posting failed: an expected leaf may be at no valid address, so the next posting expects none.
  void NoteNoLeaves() { expects_leaves_ = false; }
  // Puts the keys into their indexes; there is at least one. *validated: also entered the epoch and did what
  // Validation::Check does, because nothing is left to prepare. Errors: those of the verbs and of DuplicateKey::Note.
  coro::Task<Status> Index(Redo::Stay* stay, bool* validated);
  // Called at the end of all of the above, also after an error.
  void GiveBack();
  // Gives back what it keeps for inserts into `index`, in which it is not active.
  void ForgetIndex(const index::RemoteIndex* index) {
    std::erase_if(batches_by_index_, [index](const IndexBatch& one) { return one.index == index; });
  }

 private:
  struct Placeholder {
    uint32_t entry = 0;  // its number in the write set
    LentBlock block;
    uint64_t state = 0;          // without lock and owner
    std::span<std::byte> image;  // in the transaction's arena
    bool is_given = false;       // the block is a record, or the owner's again
  };
  // Inserts into one index of another node.
  struct IndexBatch {
    index::RemoteIndex* index = nullptr;
    std::unique_ptr<index::InsertBatch> batch;
  };

  // True if all that is to be prepared is prepared by verbs. Otherwise all is by calls.
  bool PreparesByVerbs() const;
  coro::Task<Status> Borrow(rdma::NodeId owner, uint64_t connection, size_t bytes);
  index::InsertBatch* BatchFor(index::RemoteIndex* index);
  coro::Task<Status> ReadSplitLeaves();
  coro::Task<Status> FindLeaves();
  coro::Task<Status> ChangeLeaves(Redo::Stay* stay, bool* validated);
  // Called with a log. Adds READs of the versions of removed records with their keys to operations_, in a posting
  // behind the locks of the leaves; then has the placeholders start above them.
  void AskForRemovedVersions();
  void StartAboveRemovedVersions();
  void TakeInserted();
  coro::Task<Status> NoteAllExisting();

  SessionState* const session_;
  ReadSet& reads_;
  WriteBuffer& writes_;
  OwnerLinks& links_;
  Redo& redo_;
  Validation& validation_;
  DuplicateKey& duplicate_;

  bool expects_leaves_ = true;                // the posting of the locks READs the leaves that caches expect
  std::vector<IndexBatch> batches_by_index_;  // of all commits

  // Scratch.
  std::vector<Placeholder> placeholders_;
  std::vector<index::Insertion> insertions_;   // of the placeholders
  std::vector<index::InsertBatch*> batch_of_;  // for each of the insertions
  std::vector<index::InsertBatch*> batches_;   // those that are used
  std::vector<coro::Started<Status>> finds_;   // of these, in progress
  std::vector<ReadEntry> existing_;            // what the insertions met
  NeighbourReads removed_;                     // versions of removed records, for the placeholders
  std::vector<rdma::Operation> operations_;
};

}  // namespace gannet::txn
