// ModelCache: a client's way to the models that the clients of its process have cached (shared_models.h). What is
// missing there, or old, it fetches from the owner, by verbs. Not thread-safe; coroutines of the channel's worker may
// use it at once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/rolex/directory.h"
#include "index/rolex/editor.h"
#include "index/rolex/shared_models.h"
#include "index/rolex/synonyms.h"
#include "rdma/fabric.h"

namespace gannet::index::rolex {

// index (2) -> offsets of the root (8) and the queues (8), schema of the keys (shared_leaf/leaf/schema_wire.h)
inline constexpr rdma::MethodId kDescribe = kRolexMethods;

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class ModelCache final : public Guide<Keys> {
 public:
  using Key = typename Keys::Key;
  using Point = typename Keys::Point;
  using Schema = typename Keys::Schema;
  using Image = typename Keys::Image;

  // The place where a lookup begins.
  struct Prediction {
    rdma::GlobalAddress leaf;
    int line = LineHint::kUnknown;
  };

  // `leaves`: over the same channel; must outlive this.
  ModelCache(rdma::Channel* channel, shared_leaf::LeafChannel* leaves, IndexId id, absl::Duration call_timeout,
             std::shared_ptr<SharedModels> models)
      : channel_(channel),
        leaves_(leaves),
        owner_(leaves->owner()),
        id_(id),
        call_timeout_(call_timeout),
        models_(std::move(models)),
        view_(models_.get()) {}

  // What all users of the index have to know; asks the owner, if no client of the cache did. InvalidArgument: its index
  // has keys of the other kind.
  coro::Task<StatusOr<Schema>> Describe();

  // Finds the lead by what is cached. False if the model for `point` is not.
  bool Find(const Point& point, Prediction* prediction) const;
  // Appends the leaves from the one for `point` on, in the direction of a scan, as far as the model is cached; at most
  // `most`. Returns the share of the first leaf that lies before the scan, as far as that is known, or 1.
  double FindRun(const Point& point, bool reverse, size_t most, std::vector<rdma::GlobalAddress>* leaves) const;

  coro::Task<StatusOr<rdma::GlobalAddress>> StartOf(Point point, int attempt) override;
  void NoteLeaf(const NewLeaf<Keys>& leaf) override;
  coro::Task<StatusOr<typename Guide<Keys>::Synonyms>> SynonymsFor(Key key) override;
  std::optional<typename Guide<Keys>::Synonyms> KnownSynonyms(const Key& key) const override;
  // READs a leaf that was found for `key`, as LeafChannel::Read does. If the model for the key was behind the splits
  // of other machines not long ago, its synonyms come along, by the same posting. It is behind when it leads to a leaf,
  // not the first for this key, that ends before the key: the right link of the first was not enough.
  coro::Task<StatusOr<shared_leaf::LeafLook>> ReadLeaf(Key key, rdma::GlobalAddress leaf, bool is_first, Image* image);
  rdma::GlobalAddress queue() const override;

  bool knows_directory() const;

 private:
  using Known = KnownModel<Keys>;
  using Entry = DirectoryEntry<Keys>;
  using Reading = SharedModels::Reading<Keys>;
  using Changing = SharedModels::Changing<Keys>;

  std::shared_ptr<Known> ModelFor(const Point& point) const;
  coro::Task<Status> FetchTop();
  coro::Task<StatusOr<std::vector<Entry>>> FetchPage(uint64_t pointer);
  // The model for `point`, through the directory as it is now. `old`: generation of the one that is known to be
  // retired; 0 if none is.
  coro::Task<Status> FetchModel(Point point, uint64_t old);
  // Brings the model for `point` and its synonyms up to date.
  coro::Task<Status> Refresh(Point point);
  // Slots of a synonym table, in one READ.
  struct SlotLines {
    uint64_t first = 0;
    uint64_t end = 0;
    std::vector<std::byte> bytes;  // of the whole lines
  };
  // The READs that bring a model's synonyms up to date, of one posting.
  struct SynonymReads {
    uint64_t used = 0;
    SlotLines slots;
  };
  static constexpr size_t kReadsOfSynonyms = 2;
  // A READ of the slots from `slot` up to `end`, or to the end of the ring.
  rdma::Operation ReadOfSlots(const Known& known, uint64_t slot, uint64_t end, SlotLines* lines);
  std::array<rdma::Operation, kReadsOfSynonyms> ReadsFor(const Known& known, SynonymReads* reads);
  // Takes what these READs have brought, and fetches the rest. Returns whether anything was new.
  coro::Task<StatusOr<bool>> TakeSynonyms(std::shared_ptr<Known> known, Point point, SynonymReads* reads);
  // The low fences of the leaves that the slots of a synonym table name. Byte keys: READ from the leaves.
  coro::Task<StatusOr<std::vector<NewLeaf<Keys>>>> LowsOf(std::vector<Synonym> synonyms);

  rdma::Channel* channel_;
  shared_leaf::LeafChannel* leaves_;
  rdma::NodeId owner_;
  IndexId id_;
  absl::Duration call_timeout_;
  const std::shared_ptr<SharedModels> models_;
  mutable SharedModels::View<Keys> view_;
};

}  // namespace gannet::index::rolex
