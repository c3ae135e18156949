// LeafChanger: the changes of one leaf of Dolphin, or of two neighbours (III-B): on the shared side where words are
// enough, on the exclusive side where lines change.
//
//   insert    [FAA, READ of the keys]; CAS of a free key word; [target, key word, FAA, FAA]          3 round trips
//   update    [FAA, READ of the keys]; [target, FAA]                                                 2
//   remove    [FAA, READ]; [CAS of the key word, FAA, FAA]                                           2
//   replace   [FAA, READ]; [CAS of the target, FAA, FAA]                                             2
//   split     [CAS, FAA of 0, READ]; one posting (leaf_draft.h)                                      2
//   several   [FAA, READ of the keys]; CASes of free key words; [words of all, FAA, FAA]             3, without inserts
//   2
//
// Byte keys: an entry is one word, so an insert takes one round trip less, and one more if the leaf has the tag of its
// key. A split READs the keys of the leaf. Values are not updated.
//
//   insert    [FAA, READ]; [CAS of a free entry, FAA, FAA]                           2
//
// An insert takes the lowest free slot of the image that it has READ inside, and the next one if its CAS finds another
// key there (byte keys: then it starts over). So of two inserts of one key, one meets the other: in its image, or as
// what its CAS has found.
//
// A key that is mapped to a record is removed or replaced by the holder of the record's lock, so the two never meet.
//
// Keys: IntegerKeys or ByteKeys (keys.h). With byte keys the caller is inside the epoch, and each insert has a record
// of its own, which holds the key.
//
// Not thread-safe; coroutines of the channel's worker may use it at once. Errors: those of TernaryLock; then it is not
// known whether the change was made. Also those of BlockSource::Take.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/dolphin/leaf.h"
#include "index/dolphin/leaf_draft.h"
#include "index/dolphin/locator.h"
#include "index/dolphin/ternary_lock.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/block_source.h"

namespace gannet::index::dolphin {

template <class Keys>
class LeafChanger {
 public:
  using Key = typename Keys::Key;
  using Leaf = typename Keys::Leaf;
  using Schema = typename Keys::Schema;

  enum class Outcome : uint8_t {
    kDone,
    kExists,     // insert: the key is there
    kAbsent,     // of the others: it is not, or not with what was expected
    kElsewhere,  // the leaf is dead, or does not cover the key
    kBusy,       // others change the leaf: try again
    kUncertain,  // a posting has failed, and it is not known whether the change was made; not of an update
    kFull,       // insert: by InsertAlone
  };
  struct Result {
    Outcome outcome = Outcome::kBusy;
    uint64_t existing = 0;  // kExists: the key's target, where it is known
    uint64_t state = 0;     // kFull: the state word that the leaf had
    bool splits = false;    // kFull: it has no removed entries or reserved slots that could be used again
    // kDone, of a split: the new leaf, null otherwise, and its low fence. kElsewhere: the right sibling and its low
    // fence, if the leaf ends before the key.
    rdma::GlobalAddress right{};
    Key border{};
    bool is_known = false;  // kDone, of a split: the new leaf has an entry
    uint64_t reverse = 0;   // kDone, kElsewhere: the reverse pointer of the leaf
    int entries = 0;        // kDone, of a removal: those that were left
  };

  // All must outlive this. `locator`: gives the hints that go with splits; null: there are none.
  LeafChanger(TernaryLock<Keys>* lock, const Schema* schema, shared_leaf::BlockSource* blocks,
              Locator<Keys>* locator = nullptr)
      : lock_(lock), schema_(schema), blocks_(blocks), locator_(locator) {}

  // Each adds to *change what it did to state words.
  coro::Task<StatusOr<Result>> Insert(rdma::GlobalAddress leaf, Key key, uint64_t target, Change* change);
  // Inserts on the exclusive side of a leaf that Insert has found kFull. It frees the slots of removed entries, or
  // splits the leaf. kFull: a split is needed, and `full` did not say so.
  coro::Task<StatusOr<Result>> InsertAlone(rdma::GlobalAddress leaf, Result full, Key key, uint64_t target,
                                           Change* change);
  // Overwrites the value of a key.
  coro::Task<StatusOr<Result>> Update(rdma::GlobalAddress leaf, Key key,
                                      uint64_t value) requires(!Keys::kKeysElsewhere);
  // One of several changes of a leaf.
  struct Together {
    Key key;
    uint64_t word = 0;  // a target, or a new value
    bool is_update = false;
    // As Insert or Update return it, except that kFull also says that an insert has to be made alone, although there
    // may be room.
    Result result{};
  };
  // Inserts keys and overwrites values, inside, and leaves: with as many postings as for one of them. The keys differ.
  coro::Task<Status> ChangeTogether(const typename TernaryLock<Keys>::Stay& stay,
                                    std::span<Together> changes) requires(!Keys::kKeysElsewhere);
  coro::Task<StatusOr<Result>> Remove(rdma::GlobalAddress leaf, Key key, uint64_t target, Change* change);
  coro::Task<StatusOr<Result>> Replace(rdma::GlobalAddress leaf, Key key, uint64_t from, uint64_t to, Change* change);
  // Moves the entries of the right sibling of a leaf into it, if both fit. `state`: of the left leaf, as READ. kDone:
  // the right one is dead. kAbsent: they do not fit, or there is none.
  coro::Task<StatusOr<Result>> Absorb(rdma::GlobalAddress left, uint64_t state, Change* change);

 private:
  using Lock = TernaryLock<Keys>;
  using Departure = typename Lock::Departure;
  using Do = typename Departure::Do;
  using Stay = typename Lock::Stay;
  using Entry = typename Keys::Entry;
  using IndexEntry = typename Keys::IndexEntry;

  // What is to be done with the entry of a key.
  struct Wanted {
    enum class What : uint8_t { kUpdate, kRemove, kReplace };
    What what;
    uint64_t from = 0;  // kRemove, kReplace: its target
    uint64_t to = 0;    // kUpdate, kReplace: the new one
  };

  // Leaves with a change, and lists it.
  coro::Task<StatusOr<Result>> Depart(const Stay& stay, Departure departure, Change* change);
  // Leaves without one. The result is the outcome.
  coro::Task<StatusOr<Result>> Depart(const Stay& stay, Result result);
  // Inserts a key, inside, and leaves.
  coro::Task<StatusOr<Result>> InsertInside(const Stay& stay, Key key, uint64_t target,
                                            Change* change) requires(!Keys::kKeysElsewhere);
  coro::Task<StatusOr<Result>> InsertInside(const Stay& stay, Key key, uint64_t target,
                                            Change* change) requires(Keys::kKeysElsewhere);
  // Changes the slot of a key on the shared side, except for an insert.
  coro::Task<StatusOr<Result>> ChangeSlot(rdma::GlobalAddress leaf, Key key, Wanted wanted, Change* change);
  // How a node leaves that does this; nullopt: the leaf has no such entry.
  std::optional<Departure> DepartureFor(const Leaf& image, const Key& key, const Wanted& wanted) const;
  uint64_t TargetAt(const typename Keys::Image& image, int slot) const {
    return Keys::TargetOf(image.template entry<Entry>(slot), lock_->leaves()->owner()).bits();
  }
  IndexEntry IndexEntryFor(const Key& key, uint64_t target) const {
    return Keys::RecordEntry(*schema_, key, rdma::GlobalAddress::FromBits(target));
  }
  Entry EntryFor(const Key& key, uint64_t target) const { return Keys::EntryOf(IndexEntryFor(key, target)); }
  coro::Task<StatusOr<Result>> InsertLocked(rdma::GlobalAddress leaf, const Leaf& image, Key key, uint64_t target,
                                            std::optional<shared_leaf::FreeBlock>* block, Change* change);
  // Commits a draft that AppendRelease has released in `posting`. `hint`: of the new leaf of a split; may be empty.
  coro::Task<Status> Commit(const LeafDraft<Keys>& draft, Posting* posting, Change* change,
                            std::optional<EntryHint>* hint = nullptr);

  Lock* lock_;
  const Schema* schema_;
  shared_leaf::BlockSource* blocks_;
  Locator<Keys>* locator_;
};

}  // namespace gannet::index::dolphin
