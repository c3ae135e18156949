#include "index/rolex/rolex_index.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/rolex/synonyms.h"
#include "index/shared_leaf/change/leaf_keys.h"
#include "index/shared_leaf/leaf/schema_wire.h"

namespace gannet::index::rolex {

using shared_leaf::FreeBlock;
using shared_leaf::LeafLook;

namespace {

// Right links that a search follows before it looks into the synonym table.
constexpr int kRightsBeforeSynonyms = 3;

}  // namespace

template <class Keys>
coro::Task<StatusOr<rdma::GlobalAddress>> BasicRolexIndex<Keys>::OwnGuide::StartOf(Point point, int attempt) {
  // The owner's CPU finds the leaf itself, so that right links cost no verbs.
  LeafCopy place;
  if (attempt == 0 && index_->Locate(point, &place).ok()) co_return place.address;
  co_return index_->StartOf(point, attempt);
}

template <class Keys>
std::optional<typename Guide<Keys>::Synonyms> BasicRolexIndex<Keys>::OwnGuide::KnownSynonyms(const Key& key) const {
  const BasicModel<Keys>& model = index_->directory_.Find(Keys::At(key))->model;
  return
      typename Guide<Keys>::Synonyms{.table = {index_->first_.node(), model.synonyms()}, .number = model.NumberOf(key)};
}

template <class Keys>
StatusOr<std::unique_ptr<BasicRolexIndex<Keys>>> BasicRolexIndex<Keys>::Create(IndexService* service,
                                                                               const Schema& schema,
                                                                               const RolexOptions& options) {
  if (service->node().memory().size() / kLineBytes > uint64_t{UINT32_MAX}) {  // leaf_table.cc
    return absl::InvalidArgumentError("a ROLEX index needs a node with at most 256 GiB of registered memory");
  }
  std::unique_ptr<BasicRolexIndex> index(new BasicRolexIndex(service, schema, options));
  IndexService::Guard guard(service);
  Context& context = guard.context();
  const StatusOr<std::byte*> queue = options.rights == IndexRights::kClients
                                         ? context.slab->Allocate(kQueueBytes)
                                         : context.slab->AllocateReadOnly(kQueueBytes);
  if (!queue.ok()) return queue.status();
  index->queue_ = *queue;
  ClearWords(*queue, kQueueBytes, options.rights);
  GANNET_RETURN_IF_ERROR(index->MakeFirst(context));
  index->retraining_ = std::make_unique<Retraining<Keys>>(service, &index->leaves_, &index->blocks_, &index->directory_,
                                                          index->queue_, options.epsilon);
  GANNET_RETURN_IF_ERROR(index->retraining_->TrainAll(context));
  index->retraining_->Start(service->trainer());
  return index;
}

template <class Keys>
BasicRolexIndex<Keys>::~BasicRolexIndex() {
  retraining_.reset();
  rdma::SlabCache slab(&service_->slab());
  if (queue_ != nullptr) slab.Free(queue_, kQueueBytes);
}

template <class Keys>
void BasicRolexIndex<Keys>::Describe(rdma::WireWriter& writer) const {
  writer.PutU64(directory_.root_offset());
  writer.PutU64(queue_offset());
  shared_leaf::PutSchema<Keys>(schema_, writer);
}

template <class Keys>
std::vector<std::byte*> BasicRolexIndex<Keys>::synonym_tables() const {
  std::vector<std::byte*> tables;
  for (const OwnModel<Keys>* const model : directory_.All()) tables.push_back(model->synonyms);
  return tables;
}

template <class Keys>
rdma::GlobalAddress BasicRolexIndex<Keys>::StartOf(Point point, int attempt) const {
  const OwnModel<Keys>* model = directory_.Find(point);
  if (model == nullptr) return first_;
  size_t leaf = model->model.For(point).leaf;
  for (uint64_t left = StepsLeft(attempt); left > 0;) {
    if (left <= leaf) {
      leaf -= left;
      break;
    }
    left -= leaf + 1;
    if (model->model.first() == Keys::kLeast) return first_;
    const OwnModel<Keys>* const before = directory_.Find(shared_leaf::PointBelow<Keys>(model->model.first()));
    // Models that were trained on leaves that a client has damaged need not lie one behind the other.
    if (before == nullptr || !(before->model.first() < model->model.first())) return first_;
    model = before;
    leaf = model->model.leaves() - 1;
  }
  return {first_.node(), model->model.OffsetOf(leaf)};
}

template <class Keys>
rdma::GlobalAddress BasicRolexIndex<Keys>::SynonymFor(const Point& point) const {
  const OwnModel<Keys>* const model = directory_.Find(point);
  if (model == nullptr) return {};
  const uint64_t used = std::min(UsedSlots(LoadWord(model->synonyms + kUsedOffset)), kSynonyms);
  uint64_t number = 0;
  if constexpr (Keys::kKeysElsewhere) {
    number = model->model.NumberOf(point.key);
  } else {
    number = point;
  }
  // The leaf with the greatest number below that of the point; among those with one number, the fences decide.
  std::optional<Key> best_low;
  Synonym best;
  const auto take = [&](const Synonym& synonym) {
    const std::optional<Key> low = LowOf(leaves_, synonym);
    if (!low.has_value() || !Keys::IsAtMost(*low, point) || (best_low.has_value() && *low <= *best_low)) return;
    best = synonym;
    best_low = low;
  };
  uint64_t below = 0;  // the greatest number less than the point's
  bool any_below = false;
  for (uint64_t slot = 0; slot < used; ++slot) {
    const Synonym synonym = LoadSynonym(model->synonyms, slot);
    if (synonym.leaf == 0 || synonym.low > number) continue;
    if (synonym.low == number) {
      take(synonym);
    } else if (!any_below || synonym.low > below) {
      any_below = true;
      below = synonym.low;
    }
  }
  if (!best_low.has_value() && any_below) {
    for (uint64_t slot = 0; slot < used; ++slot) {
      const Synonym synonym = LoadSynonym(model->synonyms, slot);
      if (synonym.leaf != 0 && synonym.low == below) take(synonym);
    }
  }
  return best_low.has_value() ? rdma::GlobalAddress(first_.node(), best.leaf) : rdma::GlobalAddress();
}

template <class Keys>
Status BasicRolexIndex<Keys>::Locate(const Point& point, LeafCopy* place) const {
  Patience patience(leaves_.patience_nanos());
  do {
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      place->address = StartOf(point, attempt);
      const bool is_leftmost = place->address == first_;
      // A leaf that is locked may be about to be merged: its left sibling has its keys already, and others change them
      // there (leaf.h). It is still good if it was the right sibling of a leaf that this call has read.
      bool is_linked = is_leftmost;
      Key last_low{};
      for (int rights = 0; rights < kMostRights; ++rights) {
        const LeafLook look = leaves_.Read(place->address, &place->image, &patience);
        if (look != LeafLook::kWhole || place->image.level() != 0 || Keys::BeginsBehind(place->image, point) ||
            (rights > 0 && Keys::LowOf(place->image) <= last_low) || (!is_linked && leaves_.IsLockedNow(*place))) {
          break;
        }
        is_linked = true;
        if (!Keys::EndsBefore(place->image, point)) {
          Keys::ForgetKeys(&place->keys);
          return absl::OkStatus();
        }
        last_low = Keys::LowOf(place->image);
        place->address = place->image.right();
        if (rights == kRightsBeforeSynonyms) {
          LeafCopy there{SynonymFor(point), {}};
          if (!there.address.is_null() && leaves_.Read(there.address, &there.image, &patience) == LeafLook::kWhole &&
              there.image.level() == 0 && !Keys::BeginsBehind(there.image, point) &&
              Keys::LowOf(there.image) > last_low && !leaves_.IsLockedNow(there)) {
            place->address = there.address;
            is_linked = false;
          }
        }
      }
      if (is_leftmost) break;
    }
  } while (patience.Pause());
  return absl::DataLossError(
      absl::StrCat("the ROLEX index at ", first_.ToString(), " has no way to a key: a client has damaged it"));
}

// The first leaf stays where it is, and is written last, by Finish, which also trains the models.
template <class Keys>
class BasicRolexIndex<Keys>::Load final : public Base::Load {
 public:
  Load(BasicRolexIndex* index, LoadRuns entries, double fill, size_t most_parts)
      : Base::Load(index, std::move(entries), fill, kLoadedEntries<Keys>, most_parts, FirstOf(index)), index_(index) {}

  Status Finish(Context& context) override {
    GANNET_RETURN_IF_ERROR(index_->CheckEmpty());
    TakeFirst();
    LoadRuns::Reader entries(this->entries_);
    this->StoreLeaf(0, &entries);
    const Status trained = index_->retraining_->TrainAll(context);
    this->finished_ = trained.ok();
    if (!trained.ok()) {  // no memory for the models
      TakeFirst();
      index_->StoreNode(this->blocks_[0], 0, {}, Key(Keys::kLeast), std::nullopt, {});
    }
    return trained;
  }

 private:
  static std::vector<typename Base::FirstLeaf> FirstOf(BasicRolexIndex* index) {
    return {{Keys::kLeast, index->first_}};
  }
  // Makes the first leaf a block that waits for Store. Nobody changes the index, so it is rewritten in place.
  void TakeFirst() {
    std::byte* const at = index_->memory_ + index_->first_.offset();
    this->blocks_[0].word = VersionOf(LoadWord(at)) | kAbsentBit;
    StoreWord(at, this->blocks_[0].word);
  }

  BasicRolexIndex* const index_;
};

template <class Keys>
std::unique_ptr<typename BasicRolexIndex<Keys>::Base::Load> BasicRolexIndex<Keys>::NewLoad(LoadRuns entries,
                                                                                           double fill,
                                                                                           size_t most_parts) {
  return std::make_unique<Load>(this, std::move(entries), fill, most_parts);
}

template <class Keys>
void BasicRolexIndex<Keys>::RepairAfter(rdma::NodeId node) {
  IndexService::Guard guard(service_);  // inside the epoch: models may be replaced meanwhile
  Base::RepairAfter(node);
  retraining_->CheckAll();
}

template <class Keys>
Statistics BasicRolexIndex<Keys>::statistics() {
  IndexService::Guard guard(service_);
  Statistics statistics = Base::statistics();
  statistics.registered_bytes += directory_.bytes() + rdma::SlabAllocator::BlockBytes(kQueueBytes);
  return statistics;
}

template <class Keys>
Status BasicRolexIndex<Keys>::CheckStructure() {
  IndexService::Guard guard(service_);
  Status status;
  absl::flat_hash_set<uint64_t> linked;
  std::optional<Key> low = Key(Keys::kLeast);  // of the leaf that follows
  const Status walked = leaves_.ForEach([&](const LeafCopy& seen) {
    linked.insert(seen.address.offset());
    LeafCopy leaf = seen;
    if (status.ok()) status = leaves_.Check(&leaf, &low);
  });
  GANNET_RETURN_IF_ERROR(walked);
  if (!status.ok()) return status;
  if (low.has_value()) return absl::InternalError("the leaves end before the last key");
  std::optional<Key> first = Key(Keys::kLeast);
  for (const OwnModel<Keys>* const model : directory_.All()) {
    if (!first.has_value() || model->model.first() != *first) {
      return absl::InternalError(
          absl::StrCat("a model begins at ", Keys::ToString(model->model.first()), ", not where it should"));
    }
    first = model->model.next();
  }
  if (first.has_value()) return absl::InternalError("the models end before the last key");
  return blocks_.Check([&linked](rdma::GlobalAddress at) { return linked.contains(at.offset()); });
}

template class BasicRolexIndex<IntegerKeys>;
template class BasicRolexIndex<ByteKeys>;

}  // namespace gannet::index::rolex
