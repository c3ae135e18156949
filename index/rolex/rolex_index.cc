#include "index/rolex/rolex_index.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/remote/leaf_keys.h"
#include "index/remote/leaf_repair.h"
#include "index/remote/leaf_scan.h"
#include "index/remote/schema_wire.h"
#include "index/rolex/synonyms.h"

namespace gannet::index::rolex {

using remote::FreeBlock;
using remote::LeafLook;
using remote::Posting;

namespace {

// Right links that a search follows before it looks into the synonym table.
constexpr int kFewRights = 3;

}  // namespace

template <class Keys>
coro::Task<StatusOr<rdma::GlobalAddress>> BasicRolexIndex<Keys>::OwnGuide::LeadTo(Point point, int attempt) {
  // The owner's CPU finds the leaf itself, so that right links cost no verbs.
  Place place;
  if (attempt == 0 && index_->Locate(point, &place).ok()) co_return place.address;
  co_return index_->LeadTo(point, attempt);
}

template <class Keys>
coro::Task<StatusOr<typename Guide<Keys>::Synonyms>> BasicRolexIndex<Keys>::OwnGuide::SynonymsFor(Key key) {
  const BasicModel<Keys>& model = index_->directory_.Find(Keys::At(key))->model;
  co_return typename Guide<Keys>::Synonyms{.table = {index_->first_leaf_.node(), model.synonyms()},
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
  index->StoreNew(*block, {}, Keys::kLeast, std::nullopt, {});
  index->retraining_ = std::make_unique<Retraining<Keys>>(service, index.get(), &index->blocks_, &index->directory_,
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
      blocks_(&service->node(), schema.fence_lines(), options.rights),
      directory_(service, options.rights),
      patience_nanos_(static_cast<uint64_t>(absl::ToInt64Nanoseconds(options.patience))),
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
  remote::PutSchema<Keys>(schema_, writer);
}

template <class Keys>
std::vector<std::byte*> BasicRolexIndex<Keys>::synonym_tables() const {
  std::vector<std::byte*> tables;
  for (const OwnModel<Keys>* const model : directory_.All()) tables.push_back(model->synonyms);
  return tables;
}

template <class Keys>
void BasicRolexIndex<Keys>::StoreNew(const FreeBlock& block, std::span<const Entry> entries, const Key& low,
                                     const std::optional<Key>& next_low, rdma::GlobalAddress right) {
  typename Keys::Draft leaf(block.address, block.word, 0, OwnerBits(service_->node().id(), 0), blocks_.fence_lines());
  Keys::SetLow(&leaf, low);
  Keys::SetNextLow(&leaf, next_low);
  leaf.set_right(right);
  for (const Entry& entry : entries) leaf.Add(entry);
  Posting posting;
  leaf.AppendNew(&posting);
  Image image = leaf.image();
  image.head.state = leaf.unlocked();
  // Nobody knows the block yet: it is dead until its last word is stored.
  remote::StoreLeaf(image, memory_ + block.address.offset());
}

template <class Keys>
LeafLook BasicRolexIndex<Keys>::Read(rdma::GlobalAddress address, Image* image, Patience* patience) const {
  if (!blocks_.MayHave(address)) return LeafLook::kDead;
  do {
    const LeafLook look = remote::ReadOwnLeaf(blocks_.Memory(address.offset()), image, blocks_.fence_lines());
    if (look == LeafLook::kWhole || look == LeafLook::kDead) return look;
  } while (patience->Pause());
  return LeafLook::kDead;
}

template <class Keys>
void BasicRolexIndex<Keys>::LoadKeys(Place* place) const {
  remote::LoadAllKeys<Keys>(blocks_, schema_, place);
}

template <class Keys>
std::optional<typename Keys::Key> BasicRolexIndex<Keys>::LowOf(const Synonym& synonym) const {
  if constexpr (Keys::kKeysElsewhere) {
    Image image;
    const rdma::GlobalAddress leaf(first_leaf_.node(), synonym.leaf);
    if (!blocks_.MayHave(leaf) ||
        remote::ReadOwnLeaf(blocks_.Memory(leaf.offset()), &image, blocks_.fence_lines()) != LeafLook::kWhole) {
      return std::nullopt;
    }
    return Keys::LowOf(image);
  } else {
    return synonym.low;
  }
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
    model = directory_.Find(remote::PointBelow<Keys>(model->model.first()));
    leaf = model->model.leaves() - 1;
  }
  return {first_leaf_.node(), model->model.OffsetOf(leaf)};
}

template <class Keys>
rdma::GlobalAddress BasicRolexIndex<Keys>::SynonymFor(const Point& point) const {
  const OwnModel<Keys>* const model = directory_.Find(point);
  if (model == nullptr) return {};
  const uint64_t used = UsedSlots(LoadWord(model->synonyms + kUsedOffset));
  const auto load = [model](uint64_t slot) {
    const std::byte* const at = model->synonyms + SynonymOffset(slot);
    return Synonym{.low = LoadWord(at), .leaf = LoadWord(at + kWordBytes)};
  };
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
    const std::optional<Key> low = LowOf(synonym);
    if (!low.has_value() || !Keys::IsAtMost(*low, point) || (best_low.has_value() && *low <= *best_low)) return;
    best = synonym;
    best_low = low;
  };
  uint64_t below = 0;  // the greatest number less than the point's
  bool any_below = false;
  for (uint64_t slot = 0; slot < used; ++slot) {
    const Synonym synonym = load(slot);
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
      const Synonym synonym = load(slot);
      if (synonym.leaf != 0 && synonym.low == below) take(synonym);
    }
  }
  return best_low.has_value() ? rdma::GlobalAddress(first_leaf_.node(), best.leaf) : rdma::GlobalAddress();
}

template <class Keys>
Status BasicRolexIndex<Keys>::Locate(const Point& point, Place* place) const {
  Patience patience(patience_nanos_);
  do {
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      place->address = LeadTo(point, attempt);
      const bool is_leftmost = place->address == first_leaf_;
      Key last_low{};
      for (int rights = 0; rights < kMostRights; ++rights) {
        const LeafLook look = Read(place->address, &place->image, &patience);
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
        if (rights == kFewRights) {
          Place there{SynonymFor(point), {}};
          if (!there.address.is_null() && Read(there.address, &there.image, &patience) == LeafLook::kWhole &&
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
bool BasicRolexIndex<Keys>::GoRight(Place* place) const {
  if (Keys::IsLast(place->image)) return false;
  const Key low = Keys::NextLow(place->image);
  place->address = place->image.right();
  Patience patience(patience_nanos_);
  return Read(place->address, &place->image, &patience) == LeafLook::kWhole && Keys::LowOf(place->image) == low &&
         Keys::CoversKey(place->image, low) && place->image.level() == 0;
}

template <class Keys>
FindResult BasicRolexIndex<Keys>::Find(const index::Key& wanted) {
  const Key key = Keys::KeyFrom(wanted);
  Place place;
  if (!Locate(Keys::At(key), &place).ok()) return {};  // lost
  const int slot = remote::FindOwnKey<Keys>(blocks_, schema_, key, place);
  if (slot < 0) return {.record = {}, .witness = place.witness()};
  return {.record = Keys::TargetOf(place.image.template entry<Entry>(slot), first_leaf_.node())};
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

template <class Keys>
StatusOr<bool> BasicRolexIndex<Keys>::ScanSome(const Key& from, const Key& to, bool reverse, size_t limit,
                                               size_t most_leaves, ScanResult* result, Cut* next) const {
  const size_t end = limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + limit;
  Place place;
  for (size_t leaves = 0; leaves < most_leaves; ++leaves) {
    if (leaves == 0 || reverse || !GoRight(&place)) {
      GANNET_RETURN_IF_ERROR(Locate(Keys::PointOf(*next, reverse), &place));
    }
    LoadKeys(&place);
    if (remote::TakeLeaf(place, from, to, reverse, end, result, next)) return false;
    if (result->entries.size() >= end) return true;
  }
  return true;
}

template <class Keys>
Status BasicRolexIndex<Keys>::Scan(const ScanRange& range, ScanResult* result) {
  if (range.limit == 0 || range.to < range.from) return absl::OkStatus();
  const Key from = Keys::KeyFrom(range.from);
  const Key to = Keys::KeyFrom(range.to);
  Cut next = Keys::Start(from, to, range.reverse);
  return ScanSome(from, to, range.reverse, range.limit, SIZE_MAX, result, &next).status();
}

template <class Keys>
Status BasicRolexIndex<Keys>::ScanStep(const ScanRange& range, size_t most_witnesses,
                                       std::optional<ScanPosition>* position, ScanResult* result) {
  const Key from = Keys::KeyFrom(range.from);
  const Key to = Keys::KeyFrom(range.to);
  Cut next = Keys::Start(from, to, range.reverse);
  if (position->has_value()) {
    const Cut at = Keys::CutFrom((*position)->words);
    next = range.reverse ? std::min(next, at) : std::max(next, at);
  }
  position->reset();
  if (range.limit == 0 || to < from || Keys::IsPast(next, from, to, range.reverse)) return absl::OkStatus();
  const StatusOr<bool> more = ScanSome(from, to, range.reverse, range.limit, most_witnesses, result, &next);
  if (!more.ok()) return more.status();
  if (*more) Keys::PutCut(next, &position->emplace().words);
  return absl::OkStatus();
}

template <class Keys>
ScanPosition BasicRolexIndex<Keys>::PositionBehind(const index::Key& key, bool reverse) const {
  ScanPosition position;
  Keys::PutCut(Keys::Behind(Keys::KeyFrom(key), reverse), &position.words);
  return position;
}

template <class Keys>
bool BasicRolexIndex<Keys>::Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) {
  constexpr size_t kLeavesPerStep = 16;
  ScanResult result;
  Cut next = Keys::CutFrom(position->next);
  const StatusOr<bool> more = ScanSome(Keys::kLeast, Keys::Greatest(), false, SIZE_MAX, kLeavesPerStep, &result, &next);
  for (const index::Entry& entry : result.entries) records->push_back(entry.record);
  Keys::PutCut(next, &position->next);
  if (!more.ok()) records->push_back({});
  return more.value_or(false);
}

template <class Keys>
Status BasicRolexIndex<Keys>::BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) {
  for (const LoadEntry& entry : entries) GANNET_RETURN_IF_ERROR(Keys::CheckLength(schema_, entry.key));
  Place first;
  GANNET_RETURN_IF_ERROR(Locate(Keys::At(Keys::kLeast), &first));
  if (first.address != first_leaf_ || !Keys::IsLast(first.image) || first.image.template count<Entry>() != 0) {
    return absl::FailedPreconditionError("a bulk load needs an empty index");
  }
  const auto each =
      static_cast<size_t>(std::clamp(std::lround(fill * kLoadedEntries<Keys>), 1L, long{kLoadedEntries<Keys>}));
  const size_t leaves = std::max<size_t>(1, (entries.size() + each - 1) / each);
  const auto key_of = [&entries](size_t i) { return Keys::KeyFrom(entries[i].key); };
  rdma::GlobalAddress right;
  std::optional<Key> next_low;
  for (size_t n = leaves; n-- > 0;) {
    const size_t from = n * each;
    const size_t to = std::min(from + each, entries.size());
    FreeBlock block{first_leaf_, 0};
    if (n > 0) {
      const StatusOr<FreeBlock> taken = blocks_.Take(context);
      if (!taken.ok()) return taken.status();
      block = *taken;
    } else {
      // The index is empty, and nobody changes it: the first leaf is rewritten in place.
      block.word = VersionOf(first.image.head.state) | kAbsentBit;
      StoreWord(memory_ + first_leaf_.offset(), block.word);
    }
    const Key low = n == 0 ? Key(Keys::kLeast) : Keys::Border(key_of(from - 1), key_of(from), 0, false);
    std::array<Entry, Keys::kSlots> own;
    for (size_t i = from; i < to; ++i) {
      own[i - from] = Keys::EntryOf(Keys::RecordEntry(schema_, key_of(i), entries[i].record));
    }
    StoreNew(block, std::span(own).first(to - from), low, next_low, right);
    right = block.address;
    next_low = low;
  }
  return retraining_->TrainAll(context);
}

template <class Keys>
Status BasicRolexIndex<Keys>::ForEachLinked(const std::function<void(const Place&)>& visit) const {
  Place place;
  Key low = Keys::kLeast;
  // Leaves are added while it walks, but not so many.
  uint64_t most = 1000 + 4 * blocks_.bytes() / blocks_.leaf_bytes();
  for (bool first = true;; first = false) {
    if (most-- == 0) {
      return absl::DataLossError(absl::StrCat("the ROLEX index at ", first_leaf_.ToString(), " has no end"));
    }
    if (first || !GoRight(&place)) GANNET_RETURN_IF_ERROR(Locate(Keys::At(low), &place));
    visit(place);
    if (Keys::IsLast(place.image)) return absl::OkStatus();
    low = Keys::NextLow(place.image);
  }
}

template <class Keys>
void BasicRolexIndex<Keys>::RepairAfter(rdma::NodeId node) {
  if (blocks_.rights() == IndexRights::kOwnerOnly) return;  // the node could lock nothing, and has borrowed nothing
  IndexService::Lease lease(service_);                      // inside the epoch: models may be replaced meanwhile
  absl::flat_hash_set<uint64_t> linked;
  const Status walked = ForEachLinked([&linked](const Place& place) { linked.insert(place.address.offset()); });
  // What a damaged index does not reach any more must not be thrown away.
  const auto is_linked = [&](rdma::GlobalAddress at) { return !walked.ok() || linked.contains(at.offset()); };
  blocks_.ForEach([&](rdma::GlobalAddress at) {
    std::byte* leaf = memory_ + at.offset();
    const uint64_t state = LoadWord(leaf);
    if (IsLocked(state) && !rdma::IsLineBusy(state) && LockOwnerNode(state) == node) {
      if constexpr (Keys::kKeysElsewhere) {
        remote::RepairTaggedLeaf(leaf, is_linked(at), blocks_.fence_lines());
      } else {
        remote::RepairLeaf(leaf, is_linked(at));
      }
    }
  });
  blocks_.Sweep(node, is_linked);
  retraining_->CheckAll();
}

template <class Keys>
Statistics BasicRolexIndex<Keys>::statistics() {
  IndexService::Lease lease(service_);
  Statistics statistics;
  statistics.registered_bytes = blocks_.bytes() + directory_.bytes() + rdma::SlabAllocator::BlockBytes(kQueueBytes);
  statistics.height = 1;
  const Status walked = ForEachLinked([&statistics](const Place& place) {
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
  const auto fail = [&status](rdma::GlobalAddress at, auto&&... what) {
    if (status.ok()) status = absl::InternalError(absl::StrCat("leaf ", at.ToString(), ": ", what...));
  };
  const Status walked = ForEachLinked([&](const Place& seen) {
    Place place = seen;
    const rdma::GlobalAddress at = place.address;
    const Image& image = place.image;
    linked.insert(at.offset());
    const uint64_t state = LoadWord(memory_ + at.offset());
    if (state != image.head.state) return fail(at, "is locked: state ", absl::Hex(state));
    const Key begins = Keys::LowOf(image);
    if (!low.has_value() || begins != *low) fail(at, "begins at ", Keys::ToString(begins), ", not where it should");
    low = remote::NextLowOf<Keys>(image);
    if (image.right().is_null() != !low.has_value()) fail(at, "the chain ends before the last key, or after it");
    LoadKeys(&place);
    std::set<Key> keys;
    for (uint64_t used = image.template used<Entry>(); used != 0; used &= used - 1) {
      const int slot = std::countr_zero(used);
      if (!Keys::Knows(place.keys, slot)) {
        fail(at, "slot ", slot, " leads to a place without a key that it covers");
        continue;
      }
      const Key key = Keys::KeyAt(image, place.keys, slot);
      if (!Keys::CoversKey(image, key)) fail(at, "has the key ", Keys::ToString(key), ", which it does not cover");
      if (!keys.insert(key).second) fail(at, "has the key ", Keys::ToString(key), " twice");
      Keys::CheckEntry(schema_, key, image.template entry<Entry>(slot),
                       [&] { fail(at, "has another tag for the key ", Keys::ToString(key)); });
    }
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
