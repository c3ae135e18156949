// Editor: changes of an index of Dolphin by its keys, for clients, and for the owner over channels of its own. It
// brings LeafChanger to the right leaf, again if leaves have changed meanwhile, and makes splits and merges known.
//
// Not thread-safe; coroutines of the channel's worker may use it at once. Errors: those of LeafChanger and of Locator.
#pragma once

#include <optional>
#include <span>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/dolphin/keys.h"
#include "index/dolphin/leaf_changer.h"
#include "index/dolphin/locator.h"
#include "index/dolphin/ternary_lock.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/block_source.h"

namespace gannet::index::dolphin {

template <class Keys>
class Editor {
 public:
  using Key = typename Keys::Key;
  using Schema = typename Keys::Schema;
  using LeafCopy = shared_leaf::LeafCopyOf<Keys>;

  // All must outlive this. `rights`: of the index.
  Editor(shared_leaf::LeafChannel* leaves, const Schema* schema, HolderBook* book, shared_leaf::BlockSource* blocks,
         Locator<Keys>* locator, IndexRights rights = IndexRights::kClients)
      : schema_(schema),
        lock_(leaves, schema->shape_lines(), book, rights),
        changer_(&lock_, schema, blocks, locator),
        locator_(locator) {}

  TernaryLock<Keys>& lock() { return lock_; }
  LeafChanger<Keys>& changer() { return changer_; }

  // These are the methods of LocalIndex with the same names (index.h). Replace with a null `from`: whatever the key is
  // mapped to.
  // `full`: what ChangeTogether has said of the key's leaf, with kFull. nullopt: nothing is known.
  struct FullLeaf {
    rdma::GlobalAddress leaf;
    typename LeafChanger<Keys>::Result result;
  };
  coro::Task<StatusOr<Change>> Insert(Key key, rdma::GlobalAddress record, rdma::GlobalAddress* existing,
                                      std::optional<FullLeaf> full = std::nullopt);
  coro::Task<StatusOr<Change>> Remove(Key key, rdma::GlobalAddress record);
  coro::Task<Status> Replace(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to);

  // The following are for a bulk load: nobody else changes the index.
  //
  // Makes a leaf live that Keys::Store has written.
  coro::Task<Status> Enliven(const shared_leaf::FreeBlock& block);
  // Puts entries into an empty leaf, which then ends at `next_low`.
  coro::Task<Status> Fill(rdma::GlobalAddress leaf, std::span<const typename Keys::Entry> entries,
                          std::optional<Key> next_low, rdma::GlobalAddress right);

 private:
  using Changer = LeafChanger<Keys>;
  using Outcome = typename Changer::Outcome;
  using Result = typename Changer::Result;

  // The leaves that a change of a key tries.
  struct Way {
    explicit Way(Key of) : key(of) {}

    const Key key;
    rdma::GlobalAddress leaf;
    // The right siblings that led here since the last search, and what the last of them has told.
    int rights = 0;
    Result left;
  };
  // The expected leaf, or else the right one.
  coro::Task<Status> Begin(Way* way);
  // `result`: of the try in the last leaf, which was not made. To the right one, or to its right sibling.
  coro::Task<Status> GoOn(Way* way, const Result& result);
  // The change was made, in a leaf to which right links may have led: others of this node get to know the way.
  coro::Task<void> NoteWay(const Way& way, const Result& done);
  coro::Task<Status> Locate(Way* way);
  // Merges the leaf of a key, in which a removal has left few entries, with a neighbour, if both fit well. *change: as
  // of the removal; then of both, or empty if others have changed the leaf in between.
  coro::Task<void> Merge(Key key, Change* change);
  // Lets `left` absorb its right sibling. True: it has.
  coro::Task<bool> Absorb(const LeafCopy& left, const LeafCopy& right, Change* change);

  const Schema* schema_;
  TernaryLock<Keys> lock_;
  Changer changer_;
  Locator<Keys>* locator_;
};

}  // namespace gannet::index::dolphin
