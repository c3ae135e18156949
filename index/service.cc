#include "index/service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/thread.h"
#include "index/claim_boards.h"
#include "index/model/trainer.h"

namespace gannet::index {

namespace {

// The context that was used last is still in the CPU's cache, so it is taken again, but not always: memory retired
// through a context is freed when the context is used again, or some 20 ms later by the thread that advances the
// epochs.
constexpr uint32_t kUsesInARow = 16;

}  // namespace

struct IndexService::OwnedContext : Context {
  std::unique_ptr<rdma::SlabCache> own_slab;
  std::unique_ptr<rdma::EpochManager::Participant> own_epoch;
  uint64_t uses = 0;  // ended guards
  bool taken = false;
};

IndexService::IndexService(rdma::Node* node, rdma::SlabAllocator* slab, rdma::EpochManager* epochs)
    : node_(node),
      trainer_(std::make_shared<Trainer>()),
      boards_(std::make_unique<ClaimBoards>(node)),
      slab_(slab),
      epochs_(epochs) {}

IndexService::~IndexService() = default;

Status IndexService::Add(IndexId id, LocalIndex* index) {
  std::unique_lock lock(indexes_mutex_);
  if (indexes_.size() <= id) indexes_.resize(id + 1);
  if (indexes_[id] != nullptr) return absl::AlreadyExistsError(absl::StrCat("index number ", id, " is taken"));
  indexes_[id] = index;
  return absl::OkStatus();
}

void IndexService::Remove(IndexId id) {
  std::unique_lock lock(indexes_mutex_);
  indexes_[id] = nullptr;
}

LocalIndex* IndexService::Find(IndexId id) const {
  std::shared_lock lock(indexes_mutex_);
  return id < indexes_.size() ? indexes_[id] : nullptr;
}

void IndexService::AwaitGuards() {
  constexpr uint64_t kPauseNanos = 50'000;
  std::vector<std::pair<const OwnedContext*, uint64_t>> open;  // with the number of guards that have ended
  {
    const std::lock_guard lock(contexts_mutex_);
    for (const auto& context : contexts_) {
      if (context->taken) open.emplace_back(context.get(), context->uses);
    }
  }
  while (!open.empty()) {
    SleepForNanos(kPauseNanos);
    const std::lock_guard lock(contexts_mutex_);
    std::erase_if(open, [](const auto& guard) { return guard.first->uses != guard.second; });
  }
}

IndexService::Guard::Guard(IndexService* service) : service_(service) {
  std::lock_guard lock(service_->contexts_mutex_);
  if (service_->idle_contexts_.empty()) {
    auto owned = std::make_unique<OwnedContext>();
    owned->own_slab = std::make_unique<rdma::SlabCache>(service_->slab_);
    auto participant = rdma::EpochManager::Participant::Join(service_->epochs_);
    GANNET_CHECK(participant.ok(), "a server thread found no epoch slot: %s", participant.status().ToString());
    owned->own_epoch = std::move(*participant);
    owned->slab = owned->own_slab.get();
    owned->epoch = owned->own_epoch.get();
    service_->idle_contexts_.push_back(owned.get());
    service_->contexts_.push_back(std::move(owned));
  }
  context_ = service_->idle_contexts_.back();
  service_->idle_contexts_.pop_back();
  static_cast<OwnedContext*>(context_)->taken = true;
  context_->epoch->Enter();
}

IndexService::Guard::~Guard() {
  context_->epoch->Leave();
  std::lock_guard lock(service_->contexts_mutex_);
  std::vector<Context*>& idle = service_->idle_contexts_;
  auto* const owned = static_cast<OwnedContext*>(context_);
  owned->taken = false;
  const bool rests = ++owned->uses % kUsesInARow == 0;
  idle.insert(rests ? idle.begin() : idle.end(), context_);
}

}  // namespace gannet::index
