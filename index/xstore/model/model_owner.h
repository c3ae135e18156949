// ModelOwner: keeps the model of one tree up to date.
//
// Nothing happens until Start (a client asked). Then the tree reports each split and each death of a leaf; the trainer
// retrains the sub-models concerned, and the whole model, with more or fewer sub-models, when the number of keys has
// outgrown it (the paper's model expansion) or its predictions have become much worse. Clients go on with what they
// have.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "index/xstore/model/model.h"
#include "index/xstore/model/trainer.h"
#include "index/xstore/xstore.h"

namespace gannet::index::xstore {

template <int W>
class ModelOwner : private Trainer::Task {
 public:
  using Words = KeyWords<W>;

  // `tree` must outlive this.
  ModelOwner(Tree<W>* tree, const XStoreOptions& options) : tree_(tree), options_(options) {}
  ~ModelOwner() override;

  // From the first call on, models are trained by `trainer`. Thread-safe.
  void Start(const std::shared_ptr<Trainer>& trainer);

  // The latest model; null if there is none yet. Thread-safe; the caller is inside the epoch while it uses it.
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

  mutable Mutex mutex_;  // of what follows
  std::vector<std::pair<Words, Words>> changes_;
  bool scheduled_ = false;
  bool running_ = false;
  std::shared_ptr<Model<W>> model_;
  XStore::ModelStatistics statistics_;

  // The trainer's thread only.
  uint64_t generation_ = 0;
  uint64_t changes_since_ = 0;         // leaves split or dead since the last whole training
  double leaves_per_lookup_then_ = 0;  // right after it
};

}  // namespace gannet::index::xstore
