// Editor: finds and changes the leaves of a ROLEX index by verbs (FAST'23, 3.4), for a client, and for the owner over a
// channel of its own. Leaves are found by models and right links; they are not trusted (shared_leaf/leaf/leaf.h), so
// every loop is bounded. Not thread-safe; coroutines of the channel's worker may use it at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/rolex/synonyms.h"
#include "index/shared_leaf/blocks/block_source.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/change/leaf_editor.h"

namespace gannet::index::rolex {

using shared_leaf::ByteKeys;
using shared_leaf::IntegerKeys;

// A leaf that is not in the table of its model.
template <class Keys>
struct NewLeaf {
  typename Keys::Key low{};
  uint64_t leaf = 0;  // offset in the owner's memory

  // `right`: as splits describe a new leaf.
  static NewLeaf Of(const typename Keys::IndexEntry& right, rdma::NodeId owner) {
    return {Keys::KeyOf(right), Keys::TargetOf(Keys::EntryOf(right), owner).offset()};
  }
};

// Who knows models: a client's cache, or the owner.
template <class Keys>
class Guide {
 public:
  virtual ~Guide() = default;
  // The leaf where the search for `point` begins. Attempt 0: what is known leads there; 1: what is known is brought up
  // to date before; from 2 on, leaves further and further left.
  virtual coro::Task<StatusOr<rdma::GlobalAddress>> StartOf(typename Keys::Point point, int attempt) = 0;
  // The search came to this leaf by right links.
  virtual void NoteLeaf(const NewLeaf<Keys>& leaf) = 0;
  // The synonym table of the model for `key`, and the number of the key there.
  struct Synonyms {
    rdma::GlobalAddress table;
    uint64_t number = 0;
  };
  virtual coro::Task<StatusOr<Synonyms>> SynonymsFor(typename Keys::Key key) = 0;
  // The result of SynonymsFor by what is known; nullopt if the model is not known.
  virtual std::optional<Synonyms> KnownSynonyms(const typename Keys::Key& key) const = 0;
  // The queues of the index.
  virtual rdma::GlobalAddress queue() const = 0;
};

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class Editor final : public shared_leaf::LeafEditor<Keys> {
 public:
  using Base = shared_leaf::LeafEditor<Keys>;
  using typename Base::Entry;
  using typename Base::IndexEntry;
  using typename Base::Key;
  using typename Base::LeafCopy;
  using typename Base::Point;
  using typename Base::Schema;

  // All must outlive this.
  Editor(shared_leaf::LeafChannel* leaves, const Schema* schema, shared_leaf::BlockSource* blocks, Guide<Keys>* guide)
      : Base(leaves, schema, blocks), guide_(guide) {}

  coro::Task<Status> Locate(Point point, LeafCopy* place) override;
  // The FAA that takes slots of a synonym table for the leaves that a split is making: SplitHints. It goes out with the
  // split. nullopt if no model for them is known.
  shared_leaf::SplitHint HintOf(std::span<const IndexEntry> rights) override;
  // Makes the leaves known to others in the slots that `taken` has taken. If there was no such FAA, it is made now.
  coro::Task<void> PublishSplit(uint8_t level, std::vector<IndexEntry> rights, shared_leaf::SplitHint taken) override;
  // Has a model trained, by its synonym table (synonyms.h). A hint, too.
  coro::Task<void> Enqueue(rdma::GlobalAddress synonyms, bool urgent);
  // Replaces the entry of a slot. False: the leaf has changed, or is being changed.
  coro::Task<StatusOr<bool>> TryReplace(const LeafCopy& place, int slot, Entry entry) {
    StatusOr<bool> done = co_await this->changer_.Replace(place, slot, entry);
    co_return done;
  }

 private:
  using Base::leaves_;

  coro::Task<Status> LocateToChange(Point point, uint8_t /*level*/, LeafCopy* place) override {
    return Locate(point, place);
  }
  // A hint for others. If it fails, the index works as before.
  coro::Task<void> CountDeath(Key key);
  coro::Task<bool> MergeLeft(const LeafCopy& leaf, Change* change) override;

  Guide<Keys>* guide_;
};

// How far left an attempt begins (Guide::StartOf): 0, 0, 1, 2, 4, ...
constexpr uint64_t StepsLeft(int attempt) {
  return attempt < 2 ? 0 : uint64_t{1} << (attempt - 2 < 32 ? attempt - 2 : 32);
}
inline constexpr int kMostAttempts = 40;
// Right links that a search follows. They lead to greater keys, so there is an end; but a client may have made many.
inline constexpr int kMostRights = 100'000;

}  // namespace gannet::index::rolex
