#include "index/xstore/model/model_owner.h"

#include <algorithm>

#include "base/share_work.h"

namespace gannet::index::xstore {
namespace {

// A change wider than this (in sub-models) covers gaps between keys. Only its ends are retrained, because gaps are not
// looked up.
constexpr uint32_t kWidestChange = 64;

}  // namespace

template <int W>
ModelOwner<W>::~ModelOwner() {
  if (trainer_ == nullptr) return;
  tree_->RemoveListener();
  trainer_->Cancel(this);
  model_.reset();
  rdma::SlabCache slab(&tree_->service().slab());
  pools_.lines->Close(slab);
  pools_.tables->Close(slab);
}

template <int W>
void ModelOwner<W>::Start(const std::shared_ptr<Trainer>& trainer) {
  if (started_.load(std::memory_order_acquire)) return;
  {
    std::lock_guard lock(mutex_);
    if (started_.load(std::memory_order_relaxed)) return;
    trainer_ = trainer;
    scheduled_ = true;
    tree_->SetListener([this](const Words& low, const Words& high) { NoteChange(low, high); });
    started_.store(true, std::memory_order_release);
  }
  trainer_->Schedule(this);
}

template <int W>
void ModelOwner<W>::NoteChange(const Words& low, const Words& high) {
  {
    std::lock_guard lock(mutex_);
    changes_.emplace_back(low, high);
    if (scheduled_) return;
    scheduled_ = true;
  }
  trainer_->Schedule(this);
}

template <int W>
std::shared_ptr<const Model<W>> ModelOwner<W>::model() const {
  std::lock_guard lock(mutex_);
  return model_;
}

template <int W>
XStore::ModelStatistics ModelOwner<W>::statistics() const {
  std::lock_guard lock(mutex_);
  XStore::ModelStatistics statistics = statistics_;
  statistics.caught_up = model_ != nullptr && !scheduled_ && !running_;
  return statistics;
}

template <int W>
void ModelOwner<W>::Run() {
  std::vector<std::pair<Words, Words>> changes;
  {
    std::lock_guard lock(mutex_);
    changes.swap(changes_);
    scheduled_ = false;
    running_ = true;
  }
  changes_since_ += changes.size();
  if (model_ == nullptr) {
    TrainAll();
  } else {
    RetrainChanged(changes);
    if (OutgrownModel()) TrainAll();
  }
  std::lock_guard lock(mutex_);
  running_ = false;
}

template <int W>
uint32_t ModelOwner<W>::SubModelsFor(uint64_t keys) const {
  if (options_.fixed_sub_models != 0) return options_.fixed_sub_models;
  const uint64_t wanted = keys / options_.keys_per_sub_model + 1;
  return static_cast<uint32_t>(std::min<uint64_t>(wanted, uint64_t{1} << 24));
}

// The model is replaced when the keys have grown by half or shrunk to a quarter, so that there is time between two
// trainings.
template <int W>
bool ModelOwner<W>::OutgrownModel() const {
  const uint64_t keys = model_->keys();
  const uint64_t fitting = uint64_t{model_->sub_models()} * options_.keys_per_sub_model;
  if (options_.fixed_sub_models == 0) {
    if (keys > fitting + fitting / 2) return true;
    if (model_->sub_models() > 1 && keys < fitting / 4) return true;
  }
  return changes_since_ > model_->table_entries() / 4 + 16 &&
         model_->leaves_per_lookup() > 1.5 * leaves_per_lookup_then_ + 0.25;
}

template <int W>
void ModelOwner<W>::TrainAll() {
  changes_since_ = 0;
  StatusOr<std::unique_ptr<Model<W>>> trained =
      Model<W>::Train(tree_, pools_, generation_ + 1, [this](uint64_t keys) { return SubModelsFor(keys); });
  // There is no memory for a model: clients continue with the old one, or by RPC; the next change tries again.
  if (!trained.ok()) return;
  ++generation_;
  leaves_per_lookup_then_ = (*trained)->leaves_per_lookup();
  std::shared_ptr<Model<W>> fresh = std::move(*trained);
  {
    std::lock_guard lock(mutex_);
    std::swap(model_, fresh);
  }
  UpdateStatistics(0);
  if (fresh == nullptr) return;
  fresh->Disown();
  IndexService::Guard guard(&tree_->service());
  guard.context().epoch->RetireWith([old = std::move(fresh)] {});
}

template <int W>
void ModelOwner<W>::RetrainChanged(const std::vector<std::pair<Words, Words>>& changes) {
  std::vector<uint32_t> stale;
  for (const auto& [low, high] : changes) {
    const uint32_t first = model_->top().Locate(low).sub_model;
    const uint32_t last = model_->top().Locate(high).sub_model;
    for (uint32_t i = first; i <= last; ++i) {
      if (i == first + kWidestChange && last > first + 2 * kWidestChange) i = last - kWidestChange;
      stale.push_back(i);
    }
  }
  std::sort(stale.begin(), stale.end());
  stale.erase(std::unique(stale.begin(), stale.end()), stale.end());
  // Without memory for a new table the old one stays: stale, but not wrong.
  ShareWork("trainer", stale.size(), options_.trainers, [&](size_t i, int) {
    IndexService::Guard guard(&tree_->service());
    return model_->Retrain(guard.context(), stale[i]);
  }).IgnoreError();
  UpdateStatistics(stale.size());
}

template <int W>
void ModelOwner<W>::UpdateStatistics(uint64_t retrainings) {
  std::lock_guard lock(mutex_);
  statistics_.generation = generation_;
  statistics_.retrainings += retrainings;
  statistics_.sub_models = model_->sub_models();
  statistics_.model_bytes = uint64_t{model_->sub_models()} * kCachedSubModelBytes;
  statistics_.table_entries = model_->table_entries();
  statistics_.leaves_per_lookup = model_->leaves_per_lookup();
  statistics_.mean_error = model_->mean_error();
  statistics_.mean_range = model_->mean_range();
}

#define GANNET_INSTANTIATE(W) template class ModelOwner<W>;
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
