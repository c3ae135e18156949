// Retraining: trains the models of one ROLEX index whose leaves have split (FAST'23, 3.5), on the thread of a trainer.
// It reads the leaves as they are and moves no data, so nobody waits for it, and no witness changes.
//
// A model is trained when half of its synonym table is used, one with a nearly full table before the others, and when a
// quarter of its leaves have died. A model of too many leaves becomes several; one of few is merged with a neighbour.
// The new model takes the place of the old one in the directory by one store, then the old synonym table is marked as
// retired. What splits added to the old table since the training began is copied to the new one; what they add later
// nobody needs: right links lead there, and who adds it learns that its model is old.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/thread.h"
#include "index/model/trainer.h"
#include "index/rolex/directory.h"
#include "index/rolex/editor.h"
#include "index/rolex/synonyms.h"
#include "index/service.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "index/shared_leaf/owner/own_leaves.h"

namespace gannet::index::rolex {

// The low fence of the leaf that a slot of a synonym table names; nullopt: there is no such leaf.
template <class Keys>
std::optional<typename Keys::Key> LowOf(const shared_leaf::OwnLeaves<Keys>& leaves, const Synonym& synonym) {
  if constexpr (Keys::kKeysElsewhere) {
    return leaves.LowAt(synonym.leaf);
  } else {
    return synonym.low;
  }
}

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class Retraining final : private Trainer::Task {
 public:
  using Key = typename Keys::Key;
  using Own = OwnModel<Keys>;

  static constexpr size_t kLeavesPerModel = 96;
  static constexpr size_t kMostLeavesPerModel = 2 * kLeavesPerModel;

  // All must outlive this. `queue`: of kQueueBytes.
  Retraining(IndexService* service, const shared_leaf::OwnLeaves<Keys>* leaves, const shared_leaf::LeafBlocks* blocks,
             Directory<Keys>* directory, std::byte* queue, uint32_t epsilon);
  ~Retraining() override;

  // Trains all models from the leaves, before the index has clients.
  Status TrainAll(Context& context);
  // Lets a trainer's thread do the training from now on.
  void Start(const std::shared_ptr<Trainer>& trainer);
  // Looks at all synonym tables, not only at those that were queued: a client died, and may have queued one only half.
  void CheckAll();
  void TrainNow() { Run(); }

  uint64_t trained() const { return trained_.load(std::memory_order_relaxed); }

 private:
  void Run() override;
  bool IsDue() const;
  // Appends a leaf whose interval begins at `low`, or right of it.
  void Append(const Key& low, shared_leaf::LeafCopyOf<Keys>* place, std::vector<TrainedLeafOf<Keys>>* leaves) const;
  // Appends the leaves for the keys from `first` up to `next`.
  Status Collect(const Key& first, const std::optional<Key>& next, std::vector<TrainedLeafOf<Keys>>* leaves) const;
  StatusOr<std::vector<std::unique_ptr<Own>>> Make(Context& context, std::span<const TrainedLeafOf<Keys>> leaves,
                                                   const Key& first, const std::optional<Key>& next);
  void Train(Context& context, const Own* model);
  static bool NeedsTraining(const Own& model);
  void CheckTables(Context& context);
  // Marks a synonym table as retired. Returns the number of its slots that are used.
  uint64_t Retire(std::byte* synonyms);
  void AddSynonym(const Own& model, const Key& low, uint64_t leaf);
  struct Hand;
  // Posts verbs to this node.
  Status Post(std::span<rdma::Operation> operations);
  rdma::GlobalAddress AddressOf(const std::byte* place) const {
    return {service_->node().id(), static_cast<uint64_t>(place - memory_)};
  }

  IndexService* service_;
  const shared_leaf::OwnLeaves<Keys>* leaves_;
  const shared_leaf::LeafBlocks* blocks_;
  Directory<Keys>* directory_;
  std::byte* memory_;
  std::byte* queue_;
  uint32_t epsilon_;
  std::shared_ptr<Trainer> trainer_;
  uint64_t chore_ = 0;
  std::atomic<bool> check_all_{false};
  std::atomic<uint64_t> trained_{0};

  Mutex mutex_;  // held by Run: one training at a time
  // The members below are used under mutex_. The chore uses heads_, too.
  std::array<std::atomic<uint64_t>, 2> heads_{};  // of the queue, of the urgent queue
  uint64_t generation_ = 0;
  std::unique_ptr<Hand> hand_;  // made when it is needed
};

}  // namespace gannet::index::rolex
