#include "index/rolex/retraining.h"

#include <algorithm>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/coro/worker.h"
#include "index/rolex/synonyms.h"
#include "index/shared_leaf/change/leaf_channel.h"

namespace gannet::index::rolex {

template <class Keys>
Retraining<Keys>::Retraining(IndexService* service, const shared_leaf::OwnLeaves<Keys>* leaves,
                             const shared_leaf::LeafBlocks* blocks, Directory<Keys>* directory, std::byte* queue,
                             uint32_t epsilon)
    : service_(service),
      leaves_(leaves),
      blocks_(blocks),
      directory_(directory),
      memory_(service->node().memory().data()),
      queue_(queue),
      epsilon_(epsilon) {}

template <class Keys>
Retraining<Keys>::~Retraining() {
  if (trainer_ == nullptr) return;
  service_->epochs().RemoveChore(chore_);
  trainer_->Cancel(this);
}

template <class Keys>
void Retraining<Keys>::Start(const std::shared_ptr<Trainer>& trainer) {
  trainer_ = trainer;
  chore_ = service_->epochs().AddChore([this] {
    if (IsDue()) trainer_->Schedule(this);
  });
}

template <class Keys>
void Retraining<Keys>::CheckAll() {
  check_all_.store(true, std::memory_order_relaxed);
}

template <class Keys>
bool Retraining<Keys>::IsDue() const {
  return check_all_.load(std::memory_order_relaxed) ||
         LoadWord(queue_ + kTailOffset) != heads_[0].load(std::memory_order_relaxed) ||
         LoadWord(queue_ + kUrgentTailOffset) != heads_[1].load(std::memory_order_relaxed);
}

template <class Keys>
void Retraining<Keys>::Append(const Key& low, shared_leaf::LeafCopyOf<Keys>* place,
                              std::vector<TrainedLeafOf<Keys>>* leaves) const {
  leaves_->LoadKeys(place);
  leaves->push_back({.low = std::max(low, Keys::LowOf(place->image)),
                     .offset = place->address.offset(),
                     .image = place->image,
                     .keys = place->keys});
}

template <class Keys>
Status Retraining<Keys>::Collect(const Key& first, const std::optional<Key>& next,
                                 std::vector<TrainedLeafOf<Keys>>* leaves) const {
  Key low = first;
  shared_leaf::LeafCopyOf<Keys> place;
  for (uint64_t most = leaves_->Most(); most > 0; --most) {
    if (leaves->empty() || !leaves_->GoRight(&place)) {
      GANNET_RETURN_IF_ERROR(leaves_->Locate(Keys::At(low), &place));
    }
    Append(low, &place, leaves);
    if (Keys::IsLast(place.image)) return absl::OkStatus();
    low = Keys::NextLow(place.image);
    if (next.has_value() && low >= *next) return absl::OkStatus();
  }
  return leaves_->EndlessError();
}

template <class Keys>
StatusOr<std::vector<std::unique_ptr<OwnModel<Keys>>>> Retraining<Keys>::Make(
    Context& context, std::span<const TrainedLeafOf<Keys>> leaves, const Key& first, const std::optional<Key>& next) {
  const size_t parts = leaves.size() <= kMostLeavesPerModel ? 1 : leaves.size() / kLeavesPerModel;
  std::vector<std::unique_ptr<Own>> models;
  for (size_t part = 0; part < parts; ++part) {
    const size_t from = leaves.size() * part / parts;
    const size_t to = leaves.size() * (part + 1) / parts;
    const Key& low = part == 0 ? first : leaves[from].low;
    const std::optional<Key> end = part + 1 == parts ? next : std::optional<Key>(leaves[to].low);
    BasicModel<Keys> model = BasicModel<Keys>::Train(leaves.subspan(from, to - from), low, end, epsilon_);
    model.set_generation(++generation_);
    auto made = directory_->Make(context, std::move(model));
    if (!made.ok()) {
      for (auto& one : models) directory_->Discard(std::move(one));
      return made.status();
    }
    models.push_back(*std::move(made));
  }
  return models;
}

template <class Keys>
Status Retraining<Keys>::TrainAll(Context& context) {
  std::lock_guard lock(mutex_);
  std::vector<TrainedLeafOf<Keys>> leaves;
  std::vector<std::unique_ptr<Own>> models;
  Key first = Keys::kLeast;
  const auto fail = [&](Status status) {
    for (auto& one : models) directory_->Discard(std::move(one));
    return status;
  };
  // One model's leaves at a time: an index can be larger than the memory that is free.
  shared_leaf::LeafCopyOf<Keys> place;
  GANNET_RETURN_IF_ERROR(leaves_->Locate(Keys::At(first), &place));
  uint64_t most = leaves_->Most();
  for (Key low = first;;) {
    if (most-- == 0) return fail(leaves_->EndlessError());
    Append(low, &place, &leaves);
    const std::optional<Key> next = shared_leaf::NextLowOf<Keys>(place.image);
    if (!next.has_value() || leaves.size() == kLeavesPerModel) {
      auto made = Make(context, leaves, first, next);
      if (!made.ok()) return fail(made.status());
      for (auto& one : *made) models.push_back(std::move(one));
      leaves.clear();
      if (next.has_value()) first = *next;
    }
    if (!next.has_value()) break;
    low = *next;
    if (leaves_->GoRight(&place)) continue;
    Status located = leaves_->Locate(Keys::At(low), &place);
    if (!located.ok()) return fail(std::move(located));
  }
  return directory_->Fill(context, std::move(models));
}

// A channel of this thread's own, because on some fabrics only NICs may change words that NICs change.
template <class Keys>
struct Retraining<Keys>::Hand {
  Hand(std::unique_ptr<rdma::Channel> own, const shared_leaf::LeafBlocks* blocks)
      : channel(std::move(own)),
        leaves(channel.get(), nullptr, channel->node(), absl::ZeroDuration(), blocks->fence_lines(), blocks) {
    worker.AddPoller([this] { return channel->Poll(); });
  }

  std::unique_ptr<rdma::Channel> channel;
  shared_leaf::LeafChannel leaves;
  coro::Worker worker;
};

template <class Keys>
Status Retraining<Keys>::Post(std::span<rdma::Operation> operations) {
  if (hand_ == nullptr) {
    auto channel = service_->node().OpenChannel();
    if (!channel.ok()) return channel.status();
    hand_ = std::make_unique<Hand>(*std::move(channel), blocks_);
  }
  return hand_->worker.BlockOn(hand_->leaves.PostHint(operations));
}

// If this fails, clients of the old model learn later that it is old: from the leaves.
template <class Keys>
uint64_t Retraining<Keys>::Retire(std::byte* synonyms) {
  rdma::Operation mark[] = {rdma::Operation::FetchAndAdd(AddressOf(synonyms) + kUsedOffset, kRetiredBit)};
  return UsedSlots(Post(mark).ok() ? mark[0].result : LoadWord(synonyms + kUsedOffset));
}

template <class Keys>
void Retraining<Keys>::AddSynonym(const Own& model, const Key& low, uint64_t leaf) {
  const Synonym synonym{model.model.NumberOf(low), leaf};
  const rdma::GlobalAddress table = AddressOf(model.synonyms);
  rdma::Operation take[] = {rdma::Operation::FetchAndAdd(table + kUsedOffset, 1)};
  if (!Post(take).ok()) return;
  rdma::Operation write[] = {rdma::Operation::Write(&synonym, table + SynonymOffset(take[0].result), sizeof(synonym))};
  Post(write).IgnoreError();  // then the slot stays empty
}

template <class Keys>
void Retraining<Keys>::Train(Context& context, const Own* model) {
  std::vector<const Own*> old = {model};
  std::vector<uint64_t> used = {UsedSlots(LoadWord(model->synonyms + kUsedOffset))};
  std::vector<TrainedLeafOf<Keys>> leaves;
  Key first = model->model.first();
  std::optional<Key> next = model->model.next();
  if (!Collect(first, next, &leaves).ok()) return;  // damaged: the model stays
  if (leaves.size() < kLeavesPerModel / 4) {
    const auto is_small = [](const Own* other) {
      return other != nullptr && other->model.leaves() < kLeavesPerModel / 2;
    };
    const typename Directory<Keys>::Neighbours neighbours = directory_->NeighboursOf(*model);
    const Own* const other = is_small(neighbours.after) ? neighbours.after : neighbours.before;
    if (is_small(other)) {
      old.insert(other == neighbours.after ? old.end() : old.begin(), other);
      used.insert(other == neighbours.after ? used.end() : used.begin(),
                  UsedSlots(LoadWord(other->synonyms + kUsedOffset)));  // NOLINT: is_small has looked at null
      first = old.front()->model.first();
      next = old.back()->model.next();
      leaves.clear();
      if (!Collect(first, next, &leaves).ok()) return;
    }
  }
  auto made = Make(context, leaves, first, next);
  if (!made.ok()) return;  // no memory: the model stays, stale and not wrong
  std::vector<const Own*> fresh;
  for (const auto& one : *made) fresh.push_back(one.get());
  if (!directory_->Replace(context, old, *std::move(made)).ok()) return;
  // Only this thread frees anything; the epoch has been entered.
  for (size_t i = 0; i < old.size(); ++i) {
    const uint64_t end = Retire(old[i]->synonyms);
    for (uint64_t slot = std::max(used[i], OldestSlot(end)); slot < end; ++slot) {
      const Synonym late = LoadSynonym(old[i]->synonyms, slot);
      const std::optional<Key> low = late.leaf == 0 ? std::nullopt : LowOf(*leaves_, late);
      if (!low.has_value()) continue;
      const auto to = std::ranges::find_if(fresh, [&low](const Own* one) { return one->model.CoversKey(*low); });
      if (to != fresh.end()) AddSynonym(**to, *low, late.leaf);
    }
  }
  // The clients queue a table when they take a certain slot of it, which may have been given to one of these.
  for (const Own* const one : fresh) {
    if (NeedsTraining(*one)) CheckAll();
  }
  trained_.fetch_add(1, std::memory_order_relaxed);
}

// The table of a model that is in the directory is not retired. But where atomics are not atomic with this CPU, the
// late FAA of a client that knew another model in this memory can bring back the mark, while the table is cleared.
// Clients add nothing to such a table, so it counts as full.
template <class Keys>
bool Retraining<Keys>::NeedsTraining(const Own& model) {
  return LoadWord(model.synonyms + kUsedOffset) >= kTrainAt ||
         LoadWord(model.synonyms + kDeadOffset) >= std::max(kFewDead, model.model.leaves() / 4);
}

template <class Keys>
void Retraining<Keys>::CheckTables(Context& context) {
  for (const Own* const model : directory_->All()) {
    // A model that was merged with the one before it is gone by now. Its table does not tell: clients write into it,
    // and the mark of a retired table is set by a verb, which may fail.
    if (directory_->Find(Keys::At(model->model.first())) != model) continue;
    if (NeedsTraining(*model)) Train(context, model);
  }
}

template <class Keys>
void Retraining<Keys>::Run() {
  std::lock_guard lock(mutex_);
  IndexService::Guard guard(service_);
  if (check_all_.exchange(false, std::memory_order_relaxed)) CheckTables(guard.context());
  absl::flat_hash_map<uint64_t, Key> tables;  // offset of a synonym table -> first key of its model
  for (;;) {
    size_t queue = 1;  // the urgent one first
    for (; queue < 2; --queue) {
      if (LoadWord(queue_ + (queue == 1 ? kUrgentTailOffset : kTailOffset)) != heads_[queue]) break;
    }
    if (queue >= 2) return;
    const uint64_t tail = LoadWord(queue_ + (queue == 1 ? kUrgentTailOffset : kTailOffset));
    uint64_t head = heads_[queue].load(std::memory_order_relaxed);
    if (tail - head > kQueuePlaces) {
      head = tail - kQueuePlaces;
      check_all_.store(true, std::memory_order_relaxed);
    }
    heads_[queue].store(head + 1, std::memory_order_relaxed);
    std::byte* const place = queue_ + QueueOffset(queue == 1, head);
    const uint64_t offset = LoadWord(place);
    StoreWord(place, 0);
    if (!tables.contains(offset)) {
      tables.clear();
      for (const Own* const model : directory_->All()) {
        tables[static_cast<uint64_t>(model->synonyms - memory_)] = model->model.first();
      }
    }
    const auto table = tables.find(offset);
    if (table == tables.end()) {
      // The client has not written the place yet, or the table is retired.
      if (offset == 0) check_all_.store(true, std::memory_order_relaxed);
      continue;
    }
    const Own* const model = directory_->Find(Keys::At(table->second));
    if (static_cast<uint64_t>(model->synonyms - memory_) != offset) continue;
    if (NeedsTraining(*model)) Train(guard.context(), model);
  }
}

template class Retraining<IntegerKeys>;
template class Retraining<ByteKeys>;

}  // namespace gannet::index::rolex
