#include "index/rolex/rolex_index.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/backoff.h"
#include "index/remote/leaf_repair.h"
#include "index/remote/leaf_scan.h"
#include "index/rolex/synonyms.h"

namespace gannet::index::rolex {

using remote::FreeBlock;
using remote::LeafDraft;
using remote::LeafLook;
using remote::Posting;

namespace {

// Right links that a search follows before it looks into the synonym table.
constexpr int kFewRights = 3;

}  // namespace

coro::Task<StatusOr<rdma::GlobalAddress>> RolexIndex::OwnGuide::LeadTo(uint64_t key, int attempt) {
  // The owner's CPU finds the leaf itself, so that right links cost no verbs.
  LeafPlace place;
  if (attempt == 0 && index_->Locate(key, &place).ok()) co_return place.address;
  co_return index_->LeadTo(key, attempt);
}

coro::Task<StatusOr<rdma::GlobalAddress>> RolexIndex::OwnGuide::SynonymsFor(uint64_t key) {
  co_return rdma::GlobalAddress(index_->first_leaf_.node(), index_->directory_.Find(key)->model.synonyms());
}

rdma::GlobalAddress RolexIndex::OwnGuide::queue() const {
  return {index_->first_leaf_.node(), index_->queue_offset()};
}

StatusOr<std::unique_ptr<RolexIndex>> RolexIndex::Create(IndexService* service, const RolexOptions& options) {
  std::unique_ptr<RolexIndex> index(new RolexIndex(service, options));
  IndexService::Lease lease(service);
  Context& context = lease.context();
  const StatusOr<std::byte*> queue = context.slab->Allocate(kQueueBytes);
  if (!queue.ok()) return queue.status();
  index->queue_ = *queue;
  for (size_t at = 0; at < kQueueBytes; at += kWordBytes) {
    if (at % kLineBytes != 0) StoreWord(*queue + at, 0);
  }
  const StatusOr<FreeBlock> block = index->blocks_.Take(context);
  if (!block.ok()) return block.status();
  index->first_leaf_ = block->address;
  LeafDraft leaf(block->address, block->word, 0, OwnerBits(service->node().id(), 0));
  leaf.set_low(0);
  leaf.set_high(UINT64_MAX);
  Posting posting;
  leaf.AppendNew(&posting);
  // Nobody knows the block yet.
  LeafImage image = leaf.image();
  image.head.state = leaf.unlocked();
  remote::StoreLeaf(image, index->memory_ + block->address.offset());
  index->retraining_ =
      std::make_unique<Retraining>(service, index.get(), &index->directory_, index->queue_, options.epsilon);
  GANNET_RETURN_IF_ERROR(index->retraining_->TrainAll(context));
  index->retraining_->Start(service->trainer());
  return index;
}

RolexIndex::RolexIndex(IndexService* service, const RolexOptions& options)
    : service_(service),
      memory_(service->node().memory().data()),
      blocks_(&service->node()),
      directory_(service),
      patience_nanos_(static_cast<uint64_t>(absl::ToInt64Nanoseconds(options.patience))),
      hands_(service, &blocks_, options.patience, this) {}

RolexIndex::~RolexIndex() {
  retraining_.reset();
  rdma::SlabCache slab(&service_->slab());
  if (queue_ != nullptr) slab.Free(queue_, kQueueBytes);
  blocks_.Close(slab);
}

LeafLook RolexIndex::Read(rdma::GlobalAddress address, LeafImage* image) const {
  if (!blocks_.MayHave(address)) return LeafLook::kDead;
  Patience patience(patience_nanos_);
  do {
    const LeafLook look = remote::ReadOwnLeaf(memory_ + address.offset(), image);
    if (look == LeafLook::kWhole || look == LeafLook::kDead) return look;
  } while (patience.Pause());
  return LeafLook::kDead;
}

rdma::GlobalAddress RolexIndex::LeadTo(uint64_t key, int attempt) const {
  const rdma::NodeId node = service_->node().id();
  const OwnModel* model = directory_.Find(key);
  if (model == nullptr) return first_leaf_;
  size_t leaf = model->model.For(key).leaf;
  for (uint64_t left = StepsLeft(attempt); left > 0;) {
    if (left <= leaf) {
      leaf -= left;
      break;
    }
    left -= leaf + 1;
    if (model->model.first() == 0) return first_leaf_;
    model = directory_.Find(model->model.first() - 1);
    leaf = model->model.leaves().size() - 1;
  }
  return {node, model->model.OffsetOf(leaf)};
}

rdma::GlobalAddress RolexIndex::SynonymFor(uint64_t key, uint64_t low) const {
  const OwnModel* const model = directory_.Find(key);
  if (model == nullptr) return {};
  const uint64_t used = UsedSlots(LoadWord(model->synonyms + kUsedOffset));
  uint64_t best = 0;
  for (uint64_t slot = 0; slot < used; ++slot) {
    const std::byte* const at = model->synonyms + SynonymOffset(slot);
    const uint64_t other = LoadWord(at);
    if (other <= low || other > key) continue;
    const uint64_t leaf = LoadWord(at + kWordBytes);
    if (leaf == 0) continue;
    low = other;
    best = leaf;
  }
  return best == 0 ? rdma::GlobalAddress() : rdma::GlobalAddress(service_->node().id(), best);
}

Status RolexIndex::Locate(uint64_t key, LeafPlace* place) const {
  Patience patience(patience_nanos_);
  do {
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      place->address = LeadTo(key, attempt);
      const bool is_leftmost = place->address == first_leaf_;
      uint64_t last_low = 0;
      for (int rights = 0;; ++rights) {
        const LeafLook look = Read(place->address, &place->image);
        if (look != LeafLook::kWhole || place->image.level() != 0 || key < place->image.head.low ||
            (rights > 0 && place->image.head.low <= last_low)) {
          break;
        }
        if (key <= place->image.head.high) return absl::OkStatus();
        last_low = place->image.head.low;
        place->address = place->image.right();
        if (rights == kFewRights) {
          const rdma::GlobalAddress synonym = SynonymFor(key, place->image.head.high);
          LeafPlace there{synonym, {}};
          if (!synonym.is_null() && Read(synonym, &there.image) == LeafLook::kWhole && there.image.level() == 0 &&
              there.image.head.low <= key && there.image.head.low > last_low) {
            place->address = synonym;
          }
        }
      }
      if (is_leftmost) break;
    }
  } while (patience.Pause());
  return absl::DataLossError(absl::StrCat("the ROLEX index at ", first_leaf_.ToString(), " has no way to the key ", key,
                                          ": a client has damaged it"));
}

bool RolexIndex::GoRight(LeafPlace* place) const {
  if (place->image.head.high == UINT64_MAX) return false;
  const uint64_t low = place->image.head.high + 1;
  place->address = place->image.right();
  return Read(place->address, &place->image) == LeafLook::kWhole && place->image.head.low == low &&
         place->image.Covers(low) && place->image.level() == 0;
}

FindResult RolexIndex::Find(const Key& key) {
  LeafPlace place;
  // Find has no errors. A damaged index has lost the key.
  if (!Locate(key.integer(), &place).ok()) return {.record = {}, .witness = {first_leaf_, kAbsentBit}};
  const int slot = FindSlot(place.image, key.integer());
  if (slot < 0) return {.record = {}, .witness = place.witness()};
  return {.record = rdma::GlobalAddress::FromBits(place.image.entry<IntegerEntry>(slot).target)};
}

void RolexIndex::FindMany(std::span<const Key> keys, std::span<FindResult> results) {
  for (size_t i = 0; i < keys.size(); ++i) results[i] = Find(keys[i]);
}

StatusOr<Change> RolexIndex::Insert(Context& context, const Key& key, rdma::GlobalAddress record,
                                    rdma::GlobalAddress* existing) {
  Hands::Lease hand(&hands_, &context);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().editor.Insert(key.integer(), record, existing));
}

StatusOr<Change> RolexIndex::Remove(Context& context, const Key& key, rdma::GlobalAddress record) {
  Hands::Lease hand(&hands_, &context);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().editor.Remove(key.integer(), record));
}

Status RolexIndex::Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  Hands::Lease hand(&hands_, nullptr);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().editor.Replace(key.integer(), from, to));
}

StatusOr<bool> RolexIndex::ScanSome(uint64_t from, uint64_t to, bool reverse, size_t limit, size_t most_leaves,
                                    ScanResult* result, uint64_t* next) const {
  const size_t end = limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + limit;
  LeafPlace place;
  *next = reverse ? to : from;
  for (size_t leaves = 0; leaves < most_leaves; ++leaves) {
    // After the last leaf *next was its high fence plus one.
    if (leaves == 0 || reverse || !GoRight(&place)) GANNET_RETURN_IF_ERROR(Locate(*next, &place));
    if (remote::TakeLeaf(place, from, to, reverse, end, result, next)) return false;
    if (result->entries.size() >= end) return true;
  }
  return true;
}

Status RolexIndex::Scan(const ScanRange& range, ScanResult* result) {
  if (range.limit == 0 || range.to.integer() < range.from.integer()) return absl::OkStatus();
  uint64_t next = 0;
  return ScanSome(range.from.integer(), range.to.integer(), range.reverse, range.limit, SIZE_MAX, result, &next)
      .status();
}

Status RolexIndex::ScanStep(const ScanRange& range, size_t most_witnesses, std::optional<ScanPosition>* position,
                            ScanResult* result) {
  uint64_t from = range.from.integer();
  uint64_t to = range.to.integer();
  if (position->has_value()) {
    const uint64_t at = (*position)->words[0];
    (range.reverse ? to : from) = range.reverse ? std::min(to, at) : std::max(from, at);
  }
  position->reset();
  if (range.limit == 0 || to < from) return absl::OkStatus();
  uint64_t next = 0;
  const StatusOr<bool> more = ScanSome(from, to, range.reverse, range.limit, most_witnesses, result, &next);
  if (!more.ok()) return more.status();
  if (*more) position->emplace().words[0] = next;
  return absl::OkStatus();
}

ScanPosition RolexIndex::PositionBehind(const Key& key, bool reverse) const {
  ScanPosition position;
  position.words[0] = reverse ? key.integer() - 1 : key.integer() + 1;
  return position;
}

bool RolexIndex::Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) {
  constexpr size_t kLeavesPerStep = 16;
  ScanResult result;
  uint64_t next = 0;
  const StatusOr<bool> more = ScanSome(position->next[0], UINT64_MAX, false, SIZE_MAX, kLeavesPerStep, &result, &next);
  for (const Entry& entry : result.entries) records->push_back(entry.record);
  position->next[0] = next;
  // A walk has no errors either; CheckStructure tells about a damaged index.
  return more.value_or(false);
}

Status RolexIndex::BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) {
  LeafPlace first;
  GANNET_RETURN_IF_ERROR(Locate(0, &first));
  if (first.address != first_leaf_ || first.image.head.high != UINT64_MAX || first.image.count<IntegerEntry>() != 0) {
    return absl::FailedPreconditionError("a bulk load needs an empty index");
  }
  const auto each = static_cast<size_t>(std::clamp(std::lround(fill * kPositions), 1L, long{kPositions}));
  const size_t leaves = std::max<size_t>(1, (entries.size() + each - 1) / each);
  rdma::GlobalAddress right;
  uint64_t high = UINT64_MAX;
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
    LeafDraft draft(block.address, block.word, 0, OwnerBits(service_->node().id(), 0));
    draft.set_low(n == 0 ? 0 : entries[from].key.integer());
    draft.set_high(high);
    draft.set_right(right);
    for (size_t i = from; i < to; ++i) draft.Add(IntegerEntry{entries[i].key.integer(), entries[i].record.bits()});
    Posting posting;
    draft.AppendNew(&posting);
    LeafImage image = draft.image();
    image.head.state = draft.unlocked();
    remote::StoreLeaf(image, memory_ + block.address.offset());
    right = block.address;
    high = image.head.low - 1;
  }
  return retraining_->TrainAll(context);
}

Status RolexIndex::ForEachLinked(const std::function<void(rdma::GlobalAddress, const LeafImage&)>& visit) const {
  LeafPlace place;
  uint64_t low = 0;
  // Leaves are added while it walks, but not so many.
  for (uint64_t most = 1000 + 4 * blocks_.bytes() / remote::kLeafBytes;; --most) {
    if (most == 0) {
      return absl::DataLossError(absl::StrCat("the ROLEX index at ", first_leaf_.ToString(), " has no end"));
    }
    if (low == 0 || !GoRight(&place)) GANNET_RETURN_IF_ERROR(Locate(low, &place));
    visit(place.address, place.image);
    if (place.image.head.high == UINT64_MAX) return absl::OkStatus();
    low = place.image.head.high + 1;
  }
}

void RolexIndex::RepairAfter(rdma::NodeId node) {
  IndexService::Lease lease(service_);  // inside the epoch: models may be replaced meanwhile
  absl::flat_hash_set<uint64_t> linked;
  const Status walked =
      ForEachLinked([&linked](rdma::GlobalAddress at, const LeafImage&) { linked.insert(at.offset()); });
  // What a damaged index does not reach any more must not be thrown away.
  const auto is_linked = [&](rdma::GlobalAddress at) { return !walked.ok() || linked.contains(at.offset()); };
  blocks_.ForEach([&](rdma::GlobalAddress at) {
    std::byte* leaf = memory_ + at.offset();
    const uint64_t state = LoadWord(leaf);
    if (IsLocked(state) && !rdma::IsLineBusy(state) && LockOwnerNode(state) == node) {
      remote::RepairLeaf(leaf, is_linked(at));
    }
  });
  blocks_.Sweep(node, is_linked);
  retraining_->CheckAll();
}

Statistics RolexIndex::statistics() {
  IndexService::Lease lease(service_);
  Statistics statistics;
  statistics.registered_bytes = blocks_.bytes() + directory_.bytes() + rdma::SlabAllocator::BlockBytes(kQueueBytes);
  statistics.height = 1;
  const Status walked = ForEachLinked([&statistics](rdma::GlobalAddress, const LeafImage& image) {
    ++statistics.nodes;
    statistics.keys += static_cast<uint64_t>(image.count<IntegerEntry>());
  });
  if (!walked.ok()) statistics.height = 0;  // of a damaged index: what the walk has met
  return statistics;
}

Status RolexIndex::CheckStructure() {
  IndexService::Lease lease(service_);
  Status status;
  absl::flat_hash_set<uint64_t> linked;
  uint64_t low = 0;
  bool ended = false;
  const auto fail = [&status](rdma::GlobalAddress at, auto&&... what) {
    if (status.ok()) status = absl::InternalError(absl::StrCat("leaf ", at.ToString(), ": ", what...));
  };
  const Status walked = ForEachLinked([&](rdma::GlobalAddress at, const LeafImage& image) {
    linked.insert(at.offset());
    const uint64_t state = LoadWord(memory_ + at.offset());
    if (state != image.head.state) return fail(at, "is locked: state ", absl::Hex(state));
    if (image.head.low != low) fail(at, "begins at ", image.head.low, ", not ", low);
    if (image.right().is_null() != (image.head.high == UINT64_MAX)) fail(at, "the chain ends at ", image.head.high);
    ended = image.head.high == UINT64_MAX;
    low = image.head.high + 1;
    absl::flat_hash_set<uint64_t> keys;
    for (uint64_t used = image.used<IntegerEntry>(); used != 0; used &= used - 1) {
      const auto entry = image.entry<IntegerEntry>(std::countr_zero(used));
      if (!image.Covers(entry.key)) fail(at, "has the key ", entry.key, ", which it does not cover");
      if (!keys.insert(entry.key).second) fail(at, "has the key ", entry.key, " twice");
    }
  });
  GANNET_RETURN_IF_ERROR(walked);
  if (!status.ok()) return status;
  if (!ended) return absl::InternalError("the leaves end before the last key");
  uint64_t first = 0;
  const std::vector<const OwnModel*> models = directory_.All();
  for (const OwnModel* const model : models) {
    if (model->model.first() != first) {
      return absl::InternalError(absl::StrCat("a model begins at ", model->model.first(), ", not ", first));
    }
    first = model->model.last() + 1;
  }
  if (models.empty() || models.back()->model.last() != UINT64_MAX) {
    return absl::InternalError("the models end before the last key");
  }
  return blocks_.Check([&linked](rdma::GlobalAddress at) { return linked.contains(at.offset()); });
}

}  // namespace gannet::index::rolex
