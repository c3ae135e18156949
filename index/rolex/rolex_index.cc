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
coro::Task<StatusOr<rdma::GlobalAddress>> BasicRolexIndex<Keys>::OwnGuide::LeadTo(Point point, int attempt) {
  // The owner's CPU finds the leaf itself, so that right links cost no verbs.
  Place place;
  if (attempt == 0 && index_->Locate(point, &place).ok()) co_return place.address;
  co_return index_->LeadTo(point, attempt);
}

template <class Keys>
std::optional<typename Guide<Keys>::Synonyms> BasicRolexIndex<Keys>::OwnGuide::KnownSynonyms(const Key& key) const {
  const BasicModel<Keys>& model = index_->directory_.Find(Keys::At(key))->model;
  return typename Guide<Keys>::Synonyms{.table = {index_->first_leaf_.node(), model.synonyms()},
                                        .number = model.NumberOf(key)};
}

template <class Keys>
StatusOr<std::unique_ptr<BasicRolexIndex<Keys>>> BasicRolexIndex<Keys>::Create(IndexService* service,
                                                                               const Schema& schema,
                                                                               const RolexOptions& options) {
  std::unique_ptr<BasicRolexIndex> index(new BasicRolexIndex(service, schema, options));
  IndexService::Lease lease(service);
  Context& context = lease.context();
  const StatusOr<std::byte*> queue = options.rights == IndexRights::kClients
                                         ? context.slab->Allocate(kQueueBytes)
                                         : context.slab->AllocateReadOnly(kQueueBytes);
  if (!queue.ok()) return queue.status();
  index->queue_ = *queue;
  ClearWords(*queue, kQueueBytes, options.rights);
  const StatusOr<FreeBlock> block = index->blocks_.Take(context);
  if (!block.ok()) return block.status();
  index->first_leaf_ = block->address;
  index->leaves_.Store(*block, 0, {}, Keys::kLeast, std::nullopt, {});
  index->retraining_ = std::make_unique<Retraining<Keys>>(service, &index->leaves_, &index->blocks_, &index->directory_,
                                                          index->queue_, options.epsilon);
  GANNET_RETURN_IF_ERROR(index->retraining_->TrainAll(context));
  index->retraining_->Start(service->trainer());
  return index;
}

template <class Keys>
BasicRolexIndex<Keys>::BasicRolexIndex(IndexService* service, const Schema& schema, const RolexOptions& options)
    : service_(service),
      schema_(schema),
      memory_(service->node().memory().data()),
      blocks_(&service->fabric(), &service->node(), schema.fence_lines(), options.rights),
      directory_(service, options.rights),
      leaves_(&service->node(), &blocks_, &schema_, static_cast<uint64_t>(absl::ToInt64Nanoseconds(options.patience)),
              this, "ROLEX index"),
      hands_(service, &blocks_, options.patience, this) {}

template <class Keys>
BasicRolexIndex<Keys>::~BasicRolexIndex() {
  retraining_.reset();
  rdma::SlabCache slab(&service_->slab());
  if (queue_ != nullptr) slab.Free(queue_, kQueueBytes);
  blocks_.Close(slab);
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
rdma::GlobalAddress BasicRolexIndex<Keys>::LeadTo(Point point, int attempt) const {
  const OwnModel<Keys>* model = directory_.Find(point);
  if (model == nullptr) return first_leaf_;
  size_t leaf = model->model.For(point).leaf;
  for (uint64_t left = StepsLeft(attempt); left > 0;) {
    if (left <= leaf) {
      leaf -= left;
      break;
    }
    left -= leaf + 1;
    if (model->model.first() == Keys::kLeast) return first_leaf_;
    const OwnModel<Keys>* const before = directory_.Find(shared_leaf::PointBelow<Keys>(model->model.first()));
    // Models that were trained on leaves that a client has damaged need not lie one behind the other.
    if (before == nullptr || !(before->model.first() < model->model.first())) return first_leaf_;
    model = before;
    leaf = model->model.leaves() - 1;
  }
  return {first_leaf_.node(), model->model.OffsetOf(leaf)};
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
  return best_low.has_value() ? rdma::GlobalAddress(first_leaf_.node(), best.leaf) : rdma::GlobalAddress();
}

template <class Keys>
Status BasicRolexIndex<Keys>::Locate(const Point& point, Place* place) const {
  Patience patience(leaves_.patience_nanos());
  do {
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      place->address = LeadTo(point, attempt);
      const bool is_leftmost = place->address == first_leaf_;
      Key last_low{};
      for (int rights = 0; rights < kMostRights; ++rights) {
        const LeafLook look = leaves_.Read(place->address, &place->image, &patience);
        if (look != LeafLook::kWhole || place->image.level() != 0 || Keys::BeginsBehind(place->image, point) ||
            (rights > 0 && Keys::LowOf(place->image) <= last_low)) {
          break;
        }
        if (!Keys::EndsBefore(place->image, point)) {
          Keys::ForgetKeys(&place->keys);
          return absl::OkStatus();
        }
        last_low = Keys::LowOf(place->image);
        place->address = place->image.right();
        if (rights == kRightsBeforeSynonyms) {
          Place there{SynonymFor(point), {}};
          if (!there.address.is_null() && leaves_.Read(there.address, &there.image, &patience) == LeafLook::kWhole &&
              there.image.level() == 0 && !Keys::BeginsBehind(there.image, point) &&
              Keys::LowOf(there.image) > last_low) {
            place->address = there.address;
          }
        }
      }
      if (is_leftmost) break;
    }
  } while (patience.Pause());
  return absl::DataLossError(
      absl::StrCat("the ROLEX index at ", first_leaf_.ToString(), " has no way to a key: a client has damaged it"));
}

template <class Keys>
void BasicRolexIndex<Keys>::FindMany(std::span<const index::Key> keys, std::span<FindResult> results) {
  for (size_t i = 0; i < keys.size(); ++i) results[i] = Find(keys[i]);
}

template <class Keys>
StatusOr<Change> BasicRolexIndex<Keys>::Insert(Context& context, const index::Key& key, rdma::GlobalAddress record,
                                               rdma::GlobalAddress* existing) {
  GANNET_RETURN_IF_ERROR(Keys::CheckLength(schema_, key));
  typename Hands::Lease hand(&hands_, &context);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().editor.Insert(Keys::KeyFrom(key), record, existing));
}

template <class Keys>
StatusOr<Change> BasicRolexIndex<Keys>::Remove(Context& context, const index::Key& key, rdma::GlobalAddress record) {
  typename Hands::Lease hand(&hands_, &context);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().editor.Remove(Keys::KeyFrom(key), record));
}

template <class Keys>
Status BasicRolexIndex<Keys>::Replace(const index::Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  typename Hands::Lease hand(&hands_, nullptr);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().editor.Replace(Keys::KeyFrom(key), from, to));
}

// The first leaf stays where it is, and is written last, by Finish, which also trains the models. The blocks of the
// other parts' first leaves are taken at the beginning: then each part can link its last leaf.
template <class Keys>
class BasicRolexIndex<Keys>::Load final : public PartedLoad {
 public:
  Load(BasicRolexIndex* index, LoadRuns entries, double fill, size_t most_parts)
      : index_(index),
        entries_(std::move(entries)),
        shape_(entries_, fill, kLoadedEntries<Keys>, most_parts),
        blocks_(std::max<size_t>(shape_.leaves(), 1)) {}
  ~Load() override {
    if (finished_) return;
    for (size_t n = 1; n < blocks_.size(); ++n) {
      if (!blocks_[n].address.is_null()) index_->blocks_.Discard(blocks_[n]);
    }
  }

  Status Begin(Context& context) {
    blocks_[0].address = index_->first_leaf_;
    for (size_t part = 1; part < parts(); ++part) GANNET_RETURN_IF_ERROR(Take(context, shape_.FirstLeaf(part)));
    return absl::OkStatus();
  }

  size_t parts() const override { return shape_.parts(); }

  Status Build(Context& context, size_t part) override {
    const size_t first = shape_.FirstLeaf(part);
    const size_t end = shape_.EndLeaf(part);
    GANNET_RETURN_IF_ERROR(shape_.CheckOrder(entries_, part));
    LoadRuns::Reader entries(entries_);
    for (size_t i = shape_.Begin(first); i < shape_.End(end - 1); ++i) {
      GANNET_RETURN_IF_ERROR(Keys::CheckLength(index_->schema_, entries[i].key));
    }
    for (size_t n = first + 1; n < end; ++n) GANNET_RETURN_IF_ERROR(Take(context, n));
    for (size_t n = std::max<size_t>(first, 1); n < end; ++n) Store(n, &entries);
    return absl::OkStatus();
  }

  Status Finish(Context& context) override {
    Place first;
    GANNET_RETURN_IF_ERROR(index_->LocateEmpty(&first));
    TakeFirst();
    LoadRuns::Reader entries(entries_);
    Store(0, &entries);
    const Status trained = index_->retraining_->TrainAll(context);
    finished_ = trained.ok();
    if (!trained.ok()) {  // no memory for the models
      TakeFirst();
      index_->leaves_.Store(blocks_[0], 0, {}, Key(Keys::kLeast), std::nullopt, {});
    }
    return trained;
  }

 private:
  Status Take(Context& context, size_t n) {
    const StatusOr<FreeBlock> taken = index_->blocks_.Take(context);
    if (!taken.ok()) return taken.status();
    blocks_[n] = *taken;
    return absl::OkStatus();
  }

  // Makes the first leaf a block that waits for Store. Nobody changes the index, so it is rewritten in place.
  void TakeFirst() {
    std::byte* const at = index_->memory_ + index_->first_leaf_.offset();
    blocks_[0].word = VersionOf(LoadWord(at)) | kAbsentBit;
    StoreWord(at, blocks_[0].word);
  }

  void Store(size_t n, LoadRuns::Reader* entries) {
    const auto key_of = [entries](size_t i) { return Keys::KeyFrom((*entries)[i].key); };
    const auto border = [&](size_t i) { return Keys::Border(key_of(i - 1), key_of(i), 0, false); };
    const size_t begin = shape_.Begin(n);
    const size_t end = shape_.End(n);
    const Key low = n == 0 ? Key(Keys::kLeast) : border(begin);
    std::optional<Key> next_low;
    if (end < entries_.size()) next_low = border(end);
    std::array<Entry, Keys::kSlots> own;
    for (size_t i = begin; i < end; ++i) {
      own[i - begin] = Keys::EntryOf(Keys::RecordEntry(index_->schema_, key_of(i), (*entries)[i].record));
    }
    const rdma::GlobalAddress right = n + 1 < blocks_.size() ? blocks_[n + 1].address : rdma::GlobalAddress();
    index_->leaves_.Store(blocks_[n], 0, std::span(own).first(end - begin), low, next_low, right);
  }

  BasicRolexIndex* index_;
  const LoadRuns entries_;
  const LoadShape shape_;
  std::vector<FreeBlock> blocks_;  // of the leaves; those of a part are written by its thread only
  bool finished_ = false;
};

template <class Keys>
Status BasicRolexIndex<Keys>::LocateEmpty(Place* first) const {
  GANNET_RETURN_IF_ERROR(Locate(Keys::At(Keys::kLeast), first));
  if (first->address != first_leaf_ || !Keys::IsLast(first->image) || first->image.template count<Entry>() != 0) {
    return absl::FailedPreconditionError("a bulk load needs an empty index");
  }
  return absl::OkStatus();
}

template <class Keys>
StatusOr<std::unique_ptr<PartedLoad>> BasicRolexIndex<Keys>::BeginLoad(Context& context, LoadRuns entries, double fill,
                                                                       size_t most_parts) {
  GANNET_RETURN_IF_ERROR(CheckFill(fill));
  Place first;
  GANNET_RETURN_IF_ERROR(LocateEmpty(&first));
  auto load = std::make_unique<Load>(this, std::move(entries), fill, most_parts);
  GANNET_RETURN_IF_ERROR(load->Begin(context));
  return load;
}

template <class Keys>
Status BasicRolexIndex<Keys>::BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) {
  const StatusOr<std::unique_ptr<PartedLoad>> load = BeginLoad(context, LoadRuns(entries), fill, 1);
  return load.ok() ? (*load)->Run(context) : load.status();
}

template <class Keys>
void BasicRolexIndex<Keys>::RepairAfter(rdma::NodeId node) {
  IndexService::Lease lease(service_);  // inside the epoch: models may be replaced meanwhile
  leaves_.RepairAfter(node, [this](const typename Leaves::Visit& visit) { return leaves_.ForEach(visit); });
  retraining_->CheckAll();
}

template <class Keys>
Statistics BasicRolexIndex<Keys>::statistics() {
  IndexService::Lease lease(service_);
  Statistics statistics;
  statistics.registered_bytes = blocks_.bytes() + directory_.bytes() + rdma::SlabAllocator::BlockBytes(kQueueBytes);
  statistics.height = 1;
  const Status walked = leaves_.ForEach([&statistics](const Place& place) {
    ++statistics.nodes;
    statistics.keys += static_cast<uint64_t>(place.image.template count<Entry>());
  });
  if (!walked.ok()) statistics.height = 0;  // of a damaged index: what the walk has met
  return statistics;
}

template <class Keys>
Status BasicRolexIndex<Keys>::CheckStructure() {
  IndexService::Lease lease(service_);
  Status status;
  absl::flat_hash_set<uint64_t> linked;
  std::optional<Key> low = Key(Keys::kLeast);  // of the leaf that follows
  const Status walked = leaves_.ForEach([&](const Place& seen) {
    linked.insert(seen.address.offset());
    Place leaf = seen;
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
