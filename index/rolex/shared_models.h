// SharedModels: what the clients of a process have cached of an owner's ROLEX index: its directory, its models, and
// what they know of the models' synonym tables (FAST'23, 3.3 and 3.4). All of it is a hint, so nothing expires. What
// turns out to be old is fetched again by the client that notices it, for all.
//
// The models take at most `max_bytes`. If that is not enough, those that were not used for long make room (CLOCK). The
// directory stays: it has an entry for each model.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "absl/container/btree_map.h"
#include "index/index.h"
#include "index/rolex/directory.h"
#include "index/rolex/editor.h"
#include "index/rolex/model.h"
#include "index/rolex/synonyms.h"
#include "index/rolex/upper_model.h"
#include "index/shared_leaf/shared_leaves.h"

namespace gannet::index::rolex {

// A model, and what is known of the leaves that are not in its table.
template <class Keys>
struct KnownModel {
  using Synonyms = absl::btree_map<typename Keys::Key, uint64_t>;

  BasicModel<Keys> model;                // never changes
  uint64_t slots = 0;                    // of the synonym table that need not be READ again
  std::vector<uint64_t> late{};          // leaves that were in slots behind those
  Synonyms synonyms{};                   // by low fence: the leaf's offset
  mutable std::atomic<bool> used{true};  // since CLOCK's hand passed
  // The number of READs of leaves with which the synonyms come along, because splits of others outran this:
  // ModelCache::ReadLeaf.
  std::atomic<int> looks_left{0};

  static constexpr uint64_t kSynonymBytes = sizeof(typename Synonyms::value_type);
  uint64_t bytes() const { return model.bytes() + synonyms.size() * kSynonymBytes; }
};

// Not thread-safe: SharedModels guards it. Keys: IntegerKeys or ByteKeys.
template <class Keys>
class KnownModels {
 public:
  using Key = typename Keys::Key;
  using Point = typename Keys::Point;
  using Schema = typename Keys::Schema;
  using Known = KnownModel<Keys>;
  using Entry = DirectoryEntry<Keys>;

  // The place where a lookup begins.
  struct Prediction {
    uint64_t leaf = 0;  // its offset
    int line = LineHint::kUnknown;
  };

  explicit KnownModels(size_t max_bytes) : max_bytes_(max_bytes) {}

  // False if the model for `point` is not known.
  bool Find(const Point& point, Prediction* prediction) const;
  // Appends the offsets of the leaves from the one for `point` on, in the direction of a scan, as far as the model is
  // known; at most `most`. Returns the share of the first leaf that lies before the scan, as far as that is known,
  // or 1.
  double FindRun(const Point& point, bool reverse, size_t most, std::vector<uint64_t>* leaves) const;
  // Null if it is not known.
  std::shared_ptr<Known> ModelFor(const Point& point) const;

  // Replaces all models that share keys with this one.
  void Install(BasicModel<Keys> model);
  // A leaf that is not in its model's table. No effect if the model is not known.
  void NoteLeaf(const NewLeaf<Keys>& leaf);
  // Adds what was READ of the synonym table of a model: all up to slot `slots`, and `late` behind it. Returns the
  // number of leaves that were not known.
  size_t AddSynonyms(Known* model, std::span<const NewLeaf<Keys>> leaves, uint64_t slots, std::vector<uint64_t> late);
  // What is known of the model's synonyms is wrong.
  void DropSynonyms(const Point& point);

  // The directory. Offsets in the owner's memory; 0: not known.
  uint64_t root() const { return root_; }
  uint64_t queue() const { return queue_; }
  // Null: not known.
  const Schema* schema() const { return schema_.has_value() ? &*schema_ : nullptr; }
  void SetPlaces(uint64_t root, uint64_t queue, const Schema& schema) {
    root_ = root;
    queue_ = queue;
    schema_.emplace(schema);
  }
  bool knows_top() const { return !top_.empty(); }
  // Pages that are the same stay.
  void SetTop(std::vector<Entry> top);
  // The entry of the top for the page of `point`; the top is known.
  Entry PageFor(const Point& point) const { return top_[FindEntry<Keys>(top_, point)]; }
  // The entry of the page for the model of `point`. False if the page is not known.
  bool FindInPage(const Point& point, Entry* entry) const;
  // No effect if the top has another page there by now.
  void SetPage(const Entry& page, std::vector<Entry> entries);

  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  using Models = absl::btree_map<Key, std::shared_ptr<Known>>;

  Known* Covering(const Point& point) const;
  size_t AddLeaves(Known* model, std::span<const NewLeaf<Keys>> leaves);
  typename Models::iterator Erase(typename Models::iterator at);
  // Makes room, but not by the model that begins at `keep`.
  void Evict(const Key& keep);
  void Count(uint64_t added, uint64_t removed) { bytes_.store(bytes() + added - removed, std::memory_order_relaxed); }

  const size_t max_bytes_;
  uint64_t root_ = 0;
  uint64_t queue_ = 0;
  std::optional<Schema> schema_;
  std::vector<Entry> top_;
  std::vector<std::vector<Entry>> pages_;  // of top_; empty: not fetched
  Models models_;                          // by first key
  // The quick way to most models. The others are found in models_ alone, and so are all of byte keys.
  struct NoPlaces {};
  [[no_unique_address]] std::conditional_t<Keys::kKeysElsewhere, NoPlaces, UpperPlaces<Known>> quick_;
  uint64_t model_bytes_ = 0;
  std::optional<Key> hand_;         // of CLOCK: the model that it passed last
  std::atomic<uint64_t> bytes_{0};  // of all, for threads that do not hold the lock
};

class SharedModels final : public shared_leaf::SharedLeavesOf<KnownModels> {
 public:
  using SharedLeavesOf::SharedLeavesOf;
};

}  // namespace gannet::index::rolex
