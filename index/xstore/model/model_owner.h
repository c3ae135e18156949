// ModelOwner: keeps the model of one tree up to date.
//
// Nothing happens until Start (a client has asked). From then on the tree reports each split and each death of a leaf.
// The trainer retrains the affected sub-models. It trains the whole model again, with more or fewer sub-models, when
// the number of keys has outgrown it (the paper's model expansion) or its predictions have become much worse. Clients
// continue with their cached model.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "index/model/trainer.h"
#include "index/xstore/model/model.h"
#include "index/xstore/xstore.h"

namespace gannet::index::xstore {

template <int W>
class ModelOwner : private Trainer::Task {
 public:
  using Words = KeyWords<W>;

  // `tree` must outlive this.
  ModelOwner(Tree<W>* tree, const XStoreOptions& options) : tree_(tree), options_(options) {}
  ~ModelOwner() override;

  // Makes a trainer train: from the first call on, models are trained by `trainer`. Thread-safe.
  void Start(const std::shared_ptr<Trainer>& trainer);

  // The latest model; null if there is none yet. Thread-safe; the caller stays inside the epoch while it uses the
  // model.
  std::shared_ptr<const Model<W>> model() const;

  XStore::ModelStatistics statistics() const;
  // Registered memory of the models.
  uint64_t bytes() const { return pools_.lines->bytes() + pools_.tables->bytes(); }

 private:
  void Run() override;
  void NoteChange(const Words& low, const Words& high);
  void TrainAll();
  void RetrainChanged(const std::vector<std::pair<Words, Words>>& changes);
  bool OutgrownModel() const;
  uint32_t SubModelsFor(uint64_t keys) const;
  void UpdateStatistics(uint64_t retrainings);

  Tree<W>* tree_;
  XStoreOptions options_;
  ModelPools pools_;
  std::atomic<bool> started_{false};
  std::shared_ptr<Trainer> trainer_;  // set before started_

  mutable Mutex mutex_;  // guards the members below
  std::vector<std::pair<Words, Words>> changes_;
  bool scheduled_ = false;
  bool running_ = false;
  std::shared_ptr<Model<W>> model_;
  XStore::ModelStatistics statistics_;

  // Used by the thread that runs the task only:
  uint64_t generation_ = 0;
  uint64_t changes_since_ = 0;         // leaves that split or died since the last full training
  double leaves_per_lookup_then_ = 0;  // right after the last full training
};

}  // namespace gannet::index::xstore
