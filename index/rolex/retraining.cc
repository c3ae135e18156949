#include "index/rolex/retraining.h"

#include <algorithm>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/coro/worker.h"
#include "index/remote/leaf_channel.h"
#include "index/rolex/synonyms.h"

namespace gannet::index::rolex {
namespace {

Synonym LoadSynonym(const std::byte* table, uint64_t slot) {
  const std::byte* const at = table + SynonymOffset(slot);
  return {.low = LoadWord(at), .leaf = LoadWord(at + kWordBytes)};
}

}  // namespace

Retraining::Retraining(IndexService* service, const LeafSource* leaves, Directory* directory, std::byte* queue,
                       uint32_t epsilon)
    : service_(service),
      leaves_(leaves),
      directory_(directory),
      memory_(service->node().memory().data()),
      queue_(queue),
      epsilon_(epsilon) {}

Retraining::~Retraining() {
  if (trainer_ == nullptr) return;
  service_->epochs().RemoveChore(chore_);
  trainer_->Cancel(this);
}

void Retraining::Start(const std::shared_ptr<Trainer>& trainer) {
  trainer_ = trainer;
  chore_ = service_->epochs().AddChore([this] {
    if (IsDue()) trainer_->Schedule(this);
  });
}

void Retraining::CheckAll() {
  check_all_.store(true, std::memory_order_relaxed);
}

bool Retraining::IsDue() const {
  return check_all_.load(std::memory_order_relaxed) ||
         LoadWord(queue_ + kTailOffset) != heads_[0].load(std::memory_order_relaxed) ||
         LoadWord(queue_ + kUrgentTailOffset) != heads_[1].load(std::memory_order_relaxed);
}

Status Retraining::Collect(uint64_t first, uint64_t last, std::vector<TrainedLeaf>* leaves) const {
  uint64_t next = first;
  LeafPlace place;
  for (;;) {
    if (leaves->empty() || !leaves_->GoRight(&place)) GANNET_RETURN_IF_ERROR(leaves_->Locate(next, &place));
    leaves->push_back({.offset = place.address.offset(), .image = place.image});
    leaves->back().image.head.low = std::max(next, place.image.head.low);
    if (place.image.head.high >= last) return absl::OkStatus();
    next = place.image.head.high + 1;
  }
}

StatusOr<std::vector<std::unique_ptr<OwnModel>>> Retraining::Make(Context& context, std::span<const TrainedLeaf> leaves,
                                                                  uint64_t first, uint64_t last) {
  const size_t parts = leaves.size() <= kMostLeavesPerModel ? 1 : leaves.size() / kLeavesPerModel;
  std::vector<std::unique_ptr<OwnModel>> models;
  for (size_t part = 0; part < parts; ++part) {
    const size_t from = leaves.size() * part / parts;
    const size_t to = leaves.size() * (part + 1) / parts;
    const uint64_t low = part == 0 ? first : leaves[from].image.head.low;
    const uint64_t high = part + 1 == parts ? last : leaves[to - 1].image.head.high;
    Model model = Model::Train(leaves.subspan(from, to - from), low, high, epsilon_);
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

Status Retraining::TrainAll(Context& context) {
  std::lock_guard lock(mutex_);
  std::vector<TrainedLeaf> leaves;
  std::vector<std::unique_ptr<OwnModel>> models;
  uint64_t first = 0;
  // One model's leaves at a time: an index can be larger than the memory that is free.
  LeafPlace place;
  GANNET_RETURN_IF_ERROR(leaves_->Locate(0, &place));
  for (;;) {
    leaves.push_back({.offset = place.address.offset(), .image = place.image});
    const uint64_t high = place.image.head.high;
    if (high == UINT64_MAX || leaves.size() == kLeavesPerModel) {
      auto made = Make(context, leaves, first, high);
      if (!made.ok()) {
        for (auto& one : models) directory_->Discard(std::move(one));
        return made.status();
      }
      for (auto& one : *made) models.push_back(std::move(one));
      leaves.clear();
      first = high + 1;
    }
    if (high == UINT64_MAX) break;
    if (!leaves_->GoRight(&place)) GANNET_RETURN_IF_ERROR(leaves_->Locate(high + 1, &place));
  }
  return directory_->Fill(context, std::move(models));
}

// A channel of this thread's own, because on some fabrics only NICs may change words that NICs change.
struct Retraining::Hand {
  explicit Hand(std::unique_ptr<rdma::Channel> own)
      : channel(std::move(own)), leaves(channel.get(), nullptr, channel->node(), absl::ZeroDuration()) {
    worker.AddPoller([this] { return channel->Poll(); });
  }

  std::unique_ptr<rdma::Channel> channel;
  remote::LeafChannel leaves;
  coro::Worker worker;
};

Status Retraining::Post(std::span<rdma::Operation> operations) {
  if (hand_ == nullptr) {
    auto channel = service_->node().OpenChannel();
    if (!channel.ok()) return channel.status();
    hand_ = std::make_unique<Hand>(*std::move(channel));
  }
  return hand_->worker.BlockOn(hand_->leaves.PostHint(operations));
}

// If this fails, clients of the old model learn later that it is old: from the leaves.
uint64_t Retraining::Retire(std::byte* synonyms) {
  rdma::Operation mark[] = {rdma::Operation::FetchAndAdd(AddressOf(synonyms) + kUsedOffset, kRetiredBit)};
  return UsedSlots(Post(mark).ok() ? mark[0].result : LoadWord(synonyms + kUsedOffset));
}

void Retraining::AddSynonym(const OwnModel& model, const Synonym& leaf) {
  const rdma::GlobalAddress table = AddressOf(model.synonyms);
  rdma::Operation take[] = {rdma::Operation::FetchAndAdd(table + kUsedOffset, 1)};
  if (!Post(take).ok() || UsedSlots(take[0].result) == kSynonyms) return;
  rdma::Operation write[] = {
      rdma::Operation::Write(&leaf, table + SynonymOffset(UsedSlots(take[0].result)), sizeof(leaf))};
  Post(write).IgnoreError();  // then the slot stays empty
}

void Retraining::Train(Context& context, const OwnModel* model) {
  std::vector<const OwnModel*> old = {model};
  std::vector<uint64_t> used = {UsedSlots(LoadWord(model->synonyms + kUsedOffset))};
  std::vector<TrainedLeaf> leaves;
  uint64_t first = model->model.first();
  uint64_t last = model->model.last();
  if (!Collect(first, last, &leaves).ok()) return;  // damaged: the model stays
  if (leaves.size() < kLeavesPerModel / 4) {
    const auto is_small = [](const OwnModel* other) {
      return other != nullptr && other->model.leaves().size() < kLeavesPerModel / 2;
    };
    const Directory::Neighbours neighbours = directory_->NeighboursOf(*model);
    const OwnModel* const other = is_small(neighbours.after) ? neighbours.after : neighbours.before;
    if (is_small(other)) {
      old.insert(other == neighbours.after ? old.end() : old.begin(), other);
      used.insert(other == neighbours.after ? used.end() : used.begin(),
                  UsedSlots(LoadWord(other->synonyms + kUsedOffset)));
      first = old.front()->model.first();
      last = old.back()->model.last();
      leaves.clear();
      if (!Collect(first, last, &leaves).ok()) return;
    }
  }
  auto made = Make(context, leaves, first, last);
  if (!made.ok()) return;  // no memory: the model stays, stale and not wrong
  std::vector<const OwnModel*> fresh;
  for (const auto& one : *made) fresh.push_back(one.get());
  if (!directory_->Replace(context, old, *std::move(made)).ok()) return;
  // Of the old and the new model only this thread frees anything; the epoch has been entered.
  for (size_t i = 0; i < old.size(); ++i) {
    const uint64_t end = Retire(old[i]->synonyms);
    for (uint64_t slot = used[i]; slot < end; ++slot) {
      const Synonym late = LoadSynonym(old[i]->synonyms, slot);
      const auto to = std::ranges::find_if(fresh, [&late](const OwnModel* one) { return one->model.Covers(late.low); });
      if (late.leaf == 0 || to == fresh.end()) continue;
      AddSynonym(**to, late);
    }
  }
  trained_.fetch_add(1, std::memory_order_relaxed);
}

bool Retraining::NeedsTraining(const OwnModel& model) {
  const uint64_t used = LoadWord(model.synonyms + kUsedOffset);
  if ((used & kRetiredBit) != 0) return false;
  return used >= kTrainAt ||
         LoadWord(model.synonyms + kDeadOffset) >= std::max(kFewDead, model.model.leaves().size() / 4);
}

void Retraining::CheckTables(Context& context) {
  for (const OwnModel* const model : directory_->All()) {
    // One that was merged with the model before it is retired by now.
    if (NeedsTraining(*model)) Train(context, model);
  }
}

void Retraining::Run() {
  std::lock_guard lock(mutex_);
  IndexService::Lease lease(service_);
  if (check_all_.exchange(false, std::memory_order_relaxed)) CheckTables(lease.context());
  absl::flat_hash_map<uint64_t, uint64_t> tables;  // offset of a synonym table -> first key of its model
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
      for (const OwnModel* const model : directory_->All()) {
        tables[static_cast<uint64_t>(model->synonyms - memory_)] = model->model.first();
      }
    }
    const auto table = tables.find(offset);
    if (table == tables.end()) {
      // Its client has not written the place yet, or the table is retired.
      if (offset == 0) check_all_.store(true, std::memory_order_relaxed);
      continue;
    }
    const OwnModel* const model = directory_->Find(table->second);
    if (static_cast<uint64_t>(model->synonyms - memory_) != offset) continue;
    if (NeedsTraining(*model)) Train(lease.context(), model);
  }
}

}  // namespace gannet::index::rolex
