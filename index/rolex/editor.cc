#include "index/rolex/editor.h"

#include <bit>
#include <vector>

#include "absl/strings/str_cat.h"
#include "index/backoff.h"
#include "index/shared_leaf/change/leaf_keys.h"

namespace gannet::index::rolex {

using shared_leaf::LeafLook;

namespace {

// Number of right links that a search follows before it brings the models up to date (Guide::StartOf). The synonym
// table costs fewer round trips than a long chain, and spares them to the next lookups, too. In all it follows at most
// kMostRights.
constexpr int kFewRights = 4;

}  // namespace

template <class Keys>
coro::Task<Status> Editor<Keys>::Locate(Point point, LeafCopy* place) {
  Patience patience(leaves_->patience_nanos());
  // The last attempt began at the first leaf. That two attempts began at one leaf does not tell: the last leaf of a
  // model's table can be the first one of the next model's, too, and dead.
  bool was_leftmost = false;
  for (int attempt = 0;; ++attempt) {
    if (attempt > 2 && (was_leftmost || attempt >= kMostAttempts)) {
      // There is nothing further left. Unless the index is damaged, others have merged leaves while this search passed
      // them. So it begins again, by the models as they are now.
      if (!patience.Pause()) break;
      attempt = 1;
    }
    const StatusOr<rdma::GlobalAddress> begin = co_await guide_->StartOf(point, attempt);
    if (!begin.ok()) co_return begin.status();
    was_leftmost = false;
    place->address = *begin;
    Key last_low{};
    for (int rights = 0; rights < kMostRights; ++rights) {
      const StatusOr<LeafLook> look = co_await leaves_->Read(place->address, &place->image);
      // A wrong address is what a stale or hostile hint may have.
      if (!look.ok() && !absl::IsInvalidArgument(look.status())) co_return look.status();
      if (!look.ok() || *look != LeafLook::kWhole || place->image.level() != 0 ||
          Keys::BeginsBehind(place->image, point)) {
        break;
      }
      if (rights == 0) was_leftmost = Keys::IsFirst(place->image);
      if (rights > 0) {
        const Key low = Keys::LowOf(place->image);
        if (low <= last_low) break;
        guide_->NoteLeaf({low, place->address.offset()});
      }
      if (!Keys::EndsBefore(place->image, point)) {
        Keys::ForgetKeys(&place->keys);
        co_return absl::OkStatus();
      }
      last_low = Keys::LowOf(place->image);
      place->address = place->image.right();
      if (place->address.is_null() || (attempt == 0 && rights == kFewRights)) break;
    }
  }
  co_return absl::DataLossError(
      absl::StrCat("a ROLEX index of node ", leaves_->owner(), " has no way to a key: a client may have damaged it"));
}

template <class Keys>
coro::Task<bool> Editor<Keys>::MergeLeft(const LeafCopy& leaf, Change* change) {
  if (Keys::IsFirst(leaf.image) || leaf.image.template count<Entry>() > shared_leaf::kSparse<Keys>) co_return false;
  const Key low = Keys::LowOf(leaf.image);
  LeafCopy left;
  const Status located = co_await Locate(shared_leaf::PointBelow<Keys>(low), &left);
  if (!located.ok() || left.image.right() != leaf.address || Keys::IsLast(left.image) ||
      Keys::NextLow(left.image) != low || left.image.template count<Entry>() > shared_leaf::kRoomy<Keys>) {
    co_return false;
  }
  const StatusOr<bool> merged = co_await this->changer_.Absorb(left, leaf, change);
  if (!merged.ok() || !*merged) co_return false;
  co_await CountDeath(low);
  co_return true;
}

template <class Keys>
shared_leaf::SplitHint Editor<Keys>::HintOf(std::span<const IndexEntry> rights) {
  const std::optional<typename Guide<Keys>::Synonyms> first = guide_->KnownSynonyms(Keys::KeyOf(rights[0]));
  if (!first.has_value()) return std::nullopt;
  // New leaves of one split are next to each other, so one model is for all of them, or nearly.
  size_t slots = 1;
  while (slots < rights.size()) {
    const auto next = guide_->KnownSynonyms(Keys::KeyOf(rights[slots]));
    if (!next.has_value() || next->table != first->table) break;
    ++slots;
  }
  rdma::Operation take = rdma::Operation::FetchAndAdd(first->table + kUsedOffset, slots);
  take.result = kRetiredBit;  // no slot, until it is known which
  return take;
}

template <class Keys>
coro::Task<void> Editor<Keys>::PublishSplit(uint8_t /*level*/, std::vector<IndexEntry> rights,
                                            shared_leaf::SplitHint taken) {
  std::vector<Synonym> synonyms;
  for (const auto& right : rights) guide_->NoteLeaf(NewLeaf<Keys>::Of(right, leaves_->owner()));
  if (!taken.has_value()) {
    const auto fetched = co_await guide_->SynonymsFor(Keys::KeyOf(rights[0]));
    if (fetched.ok()) taken = HintOf(rights);
    if (!taken.has_value()) co_return;
    const Status posted = co_await leaves_->PostHint({&*taken, 1});
    if (!posted.ok()) co_return;
  }
  if ((taken->result & kRetiredBit) != 0) co_return;
  const uint64_t first = taken->result;
  const rdma::GlobalAddress table(taken->remote.node(), taken->remote.offset() - kUsedOffset);
  for (const auto& right : std::span(rights).first(taken->operand)) {
    // A slot stays empty if the model has made room for others, or for a newer one, since it was taken.
    const auto known = guide_->KnownSynonyms(Keys::KeyOf(right));
    if (!known.has_value() || known->table != table) break;
    synonyms.push_back({known->number, NewLeaf<Keys>::Of(right, leaves_->owner()).leaf});
  }
  std::vector<rdma::Operation> writes;
  for (size_t i = 0; i < synonyms.size(); ++i) {
    writes.push_back(rdma::Operation::Write(&synonyms[i], table + SynonymOffset(first + i), sizeof(Synonym)));
  }
  if (!writes.empty()) {
    const Status written = co_await leaves_->PostHint(writes);
    if (!written.ok()) co_return;
  }
  for (const uint64_t at : {kTrainAt, kUrgentAt}) {
    if (first <= at && at < first + taken->operand) co_await Enqueue(table, at == kUrgentAt);
  }
}

template <class Keys>
coro::Task<void> Editor<Keys>::CountDeath(Key key) {
  const StatusOr<typename Guide<Keys>::Synonyms> synonyms = co_await guide_->SynonymsFor(key);
  if (!synonyms.ok()) co_return;
  rdma::Operation count[] = {rdma::Operation::FetchAndAdd(synonyms->table + kDeadOffset, 1)};
  const Status counted = co_await leaves_->PostHint(count);
  const uint64_t dead = count[0].result + 1;
  if (counted.ok() && dead >= kFewDead && std::has_single_bit(dead)) co_await Enqueue(synonyms->table, false);
}

template <class Keys>
coro::Task<void> Editor<Keys>::Enqueue(rdma::GlobalAddress synonyms, bool urgent) {
  const rdma::GlobalAddress queue = guide_->queue();
  rdma::Operation take[] = {rdma::Operation::FetchAndAdd(queue + (urgent ? kUrgentTailOffset : kTailOffset), 1)};
  const Status taken = co_await leaves_->PostHint(take);
  if (!taken.ok()) co_return;
  const uint64_t table = synonyms.offset();
  rdma::Operation write[] = {
      rdma::Operation::Write(&table, queue + QueueOffset(urgent, take[0].result), sizeof(table))};
  co_await leaves_->PostHint(write);
}

template class Editor<IntegerKeys>;
template class Editor<ByteKeys>;

}  // namespace gannet::index::rolex
