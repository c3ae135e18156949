#include "index/dex/remote_dex.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/backoff.h"
#include "index/shared_leaf/claim/claim_ranges.h"

namespace gannet::index {
namespace dex {

namespace {

constexpr uint64_t kAskAgainNanos = 1'000'000;

}  // namespace

template <class Keys>
RemoteDex<Keys>::RemoteDex(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const DexClientOptions& options,
                           const std::shared_ptr<SharedPages>& pages)
    : Base(channel, owner, id, options, pages, {.expected_fill = Keys::kSlots / 2.0, .caches_leaves = true}),
      paths_(pages->cache(), pages->tree()),
      pages_(pages),
      claims_(options.rights == IndexRights::kOwnerOnly ? nullptr : options.claims),
      kept_(&leaves_, claims_, pages->cache(), &paths_) {
  leaves_.set_watch(this);
  paths_.set_claims(claims_);
}

template <class Keys>
void RemoteDex<Keys>::Forget(const index::Key& key) {
  LeafCopy leaf;
  shared_leaf::Grant grant;
  if (this->is_ready() && paths_.FindLeaf(Keys::At(Keys::KeyFrom(key)), &leaf, &grant)) paths_.Forget(leaf.address);
}

template <class Keys>
typename RemoteDex<Keys>::CopyState RemoteDex<Keys>::StateOf(rdma::GlobalAddress leaf, uint64_t word,
                                                             shared_leaf::Grant grant) {
  CopyState state;
  if (claims_ == nullptr || grant.is_none()) return state;
  if (GANNET_MUTANT(kOldConnection)) grant = {claims_->KnownLease(this->owner_).number, grant.bits()};
  if (grant.is_kept()) state.word = shared_leaf::KeptOf(word, self());
  state.is_good = grant.is_kept() ? claims_->Lasts(grant.lease()) : claims_->IsGood(leaf, grant);
  if (state.is_good) return state;
  if (!grant.is_kept() && claims_->IsEnded(leaf, grant)) {
    // Only once: the pause, in which the leaf is not claimed again, begins when it was ended. The copy is a hint then.
    claims_->NoteEnded(leaf);
    paths_.Weaken(leaf);
    return state;
  }
  // If there is another connection by now, the owner has ended all claims of the one before.
  const shared_leaf::Lease lease = claims_->KnownLease(this->owner_);
  if (lease.number != grant.lease()) return state;
  state.connection = lease.connection;
  state.lease = lease.number;
  return state;
}

template <class Keys>
std::optional<FindResult> RemoteDex<Keys>::FindInCopy(const Key& key, CopyState* state) {
  FindResult found;
  Witness leaf;
  shared_leaf::Grant grant;
  const bool lasts =
      GANNET_MUTANT(kClockAtRead) && claims_ != nullptr && claims_->Lasts(claims_->KnownLease(this->owner_).number);
  if (!paths_.FindEntry(key, &found.record, &leaf, &grant, &state->is_busy)) return std::nullopt;
  *state = StateOf(leaf.word, leaf.seen, grant);
  state->is_good |= lasts && !grant.is_none() && !claims_->IsEnded(leaf.word, grant);
  if (found.record.is_null()) found.witness = leaf;
  return found;
}

template <class Keys>
bool RemoteDex<Keys>::FindCopy(const Key& key, LeafCopy* leaf, CopyState* state) {
  shared_leaf::Grant grant;
  if (!paths_.FindLeaf(Keys::At(key), leaf, &grant)) return false;
  *state = StateOf(leaf->address, leaf->image.head.state, grant);
  return true;
}

template <class Keys>
bool RemoteDex<Keys>::CopyOf(rdma::GlobalAddress leaf, Image* image, CopyState* state) {
  shared_leaf::Grant grant;
  if (!paths_.LoadLeaf(leaf, image, &grant)) return false;
  *state = StateOf(leaf, image->head.state, grant);
  return true;
}

// A claim that was ended, or never made, is made by a CAS. (To give the copy the board's new value because the word is
// that of the claim would be wrong: the owner has raised the board, and is about to change the leaf by a CAS that
// expects this word.)
template <class Keys>
void RemoteDex<Keys>::NoteCurrent(const LeafCopy& leaf, const CopyState& copy, uint64_t posted_nanos) {
  if (copy.connection != 0) {
    claims_->Renew(copy.lease, posted_nanos);
  } else if (copy.word == 0 && (MustAskForRanges() || IsToClaim(leaf))) {
    to_claim_.push_back(leaf);
  }
}

template <class Keys>
bool RemoteDex<Keys>::MustAskForRanges() {
  if (claims_ == nullptr || asks_ranges_) return asks_ranges_;
  const SharedPages::Asked now = {.connection = claims_->ConnectionTo(this->owner_),
                                  .word = claims_->RangesWordOf(this->owner_)};
  if (!pages_->MayBeOld(now) || NowNanos() < ask_again_nanos_) return false;
  asks_ranges_ = pages_->BeginAsking();
  return asks_ranges_;
}

// The owner raises the word of those boards that it was told, when it has the new ranges. So the board is told first,
// then the word is read, then the ranges.
template <class Keys>
coro::Task<void> RemoteDex<Keys>::AskForRanges() {
  asks_ranges_ = false;
  const shared_leaf::Lease lease = co_await claims_->LeaseFrom(this->channel_, this->owner_, this->call_timeout_);
  const SharedPages::Asked asked = {.connection = lease.connection, .word = claims_->RangesWordOf(this->owner_)};
  StatusOr<std::vector<ClaimRange>> ranges = absl::UnavailableError("the owner takes no board now");
  if (lease.connection != 0) {
    ranges = co_await shared_leaf::ReadRanges(this->channel_, this->owner_, this->id_, this->call_timeout_);
  }
  pages_->EndAsking();
  // The message may hold anything.
  if (ranges.ok() && shared_leaf::CheckRanges(*ranges, Keys::kKind, this->max_key_bytes_, rdma::kMaxNodes).ok()) {
    pages_->SetRanges(*std::move(ranges), asked);
  } else {
    ask_again_nanos_ = NowNanos() + kAskAgainNanos;
  }
}

template <class Keys>
std::optional<rdma::NodeId> RemoteDex<Keys>::ClaimerOf(const Key& key, std::optional<Key>* until) {
  if (pages_->ranges_number() == 0) return std::nullopt;
  if (ranges_number_ != pages_->ranges_number()) {
    ranges_number_ = pages_->ranges_number();
    ranges_.clear();
    for (const ClaimRange& range : pages_->ranges())
      ranges_.emplace_back(Keys::KeyFrom(range.first.view()), range.node);
  }
  const auto next = std::ranges::upper_bound(ranges_, key, {}, &std::pair<Key, rdma::NodeId>::first);
  if (next == ranges_.begin()) return std::nullopt;
  if (next != ranges_.end()) *until = next->first;
  return std::prev(next)->second;
}

template <class Keys>
bool RemoteDex<Keys>::IsToClaim(const LeafCopy& leaf) {
  std::optional<Key> until;
  if (claims_ == nullptr || ClaimerOf(Keys::LowOf(leaf.image), &until) != self()) return false;
  // A leaf with keys of two nodes is kept by none: the other one would wait for it. Nor is the root, whose split by
  // others changes more than one leaf.
  if (keeps_leaves() && (leaf.address == this->root_ || (until.has_value() && Keys::IsLast(leaf.image)) ||
                         (until.has_value() && *until < Keys::NextLow(leaf.image)))) {
    return false;
  }
  return claims_->MayClaim(leaf.address) && NowNanos() >= ask_again_nanos_;
}

template <class Keys>
void RemoteDex<Keys>::KeepLeaf(const LeafCopy& leaf) {
  if (MustAskForRanges()) {
    to_claim_.push_back(leaf);  // or not, as they will say
  } else if (!IsToClaim(leaf)) {
    paths_.KeepLeaf(leaf);
  } else if (!paths_.HasClaimed(leaf.address, leaf.image.head.state) && paths_.AdmitsLeaf()) {
    to_claim_.push_back(leaf);
  }
}

// The owner's CAS has expected the word with which the leaf was READ, so the image is that of the new word.
template <class Keys>
coro::Task<void> RemoteDex<Keys>::EndOthersClaims(std::vector<LeafCopy>* leaves, std::vector<WordChange>* made) {
  std::vector<WordChange> claims;
  for (const LeafCopy& leaf : *leaves) {
    const uint64_t word = leaf.image.head.state;
    if (leaves_.IsClaimedByAnother(word)) claims.push_back({.word = leaf.address, .before = word, .after = word});
  }
  for (size_t first = 0; first < claims.size(); first += shared_leaf::kMostClaims) {
    const std::span<WordChange> some =
        std::span(claims).subspan(first, std::min(shared_leaf::kMostClaims, claims.size() - first));
    const Status ended = co_await this->calls_.EndClaims(some);
    if (!ended.ok()) {  // some may have been ended, as the next READs will show
      for (WordChange& claim : some) claim.after = claim.before;
    }
  }
  auto claim = claims.begin();
  for (LeafCopy& leaf : std::exchange(*leaves, {})) {
    if (claim != claims.end() && claim->word == leaf.address) {
      const WordChange change = *claim++;
      if (change.after == change.before) {
        paths_.KeepLeaf(leaf, /*admitted=*/true);
        continue;
      }
      Sometimes<"dex: the claim of another node is ended, for its range is this node's now">();
      made->push_back(change);
      claims_->chains().Note(leaf.address, change.before, change.after);
      leaf.image.head.state = change.after;
    }
    leaves->push_back(std::move(leaf));
  }
}

// Between the CAS of a claim and its copy, a thread of this process could READ the leaf, find no copy to weaken, and
// change the leaf by a CAS from the claim; then the copy would come, and be wrong. So the copy is announced before.
template <class Keys>
coro::Task<void> RemoteDex<Keys>::ClaimOrKeep(std::vector<WordChange>* made) {
  std::vector<LeafCopy> leaves = std::exchange(to_claim_, {});
  const shared_leaf::Lease lease = co_await claims_->LeaseFrom(this->channel_, this->owner_, this->call_timeout_);
  if (lease.number == 0) {
    ask_again_nanos_ = NowNanos() + kAskAgainNanos;
    for (const LeafCopy& leaf : leaves) paths_.KeepLeaf(leaf, /*admitted=*/true);
    co_return;
  }
  co_await EndOthersClaims(&leaves, made);
  std::erase_if(leaves, [this](const LeafCopy& leaf) { return !paths_.Announce(leaf.address); });
  if (leaves.empty()) co_return;
  Announced announced{.paths = &paths_, .leaves = std::move(leaves)};
  std::vector<rdma::Operation> operations;
  std::vector<shared_leaf::Grant> grants;
  for (LeafCopy& leaf : announced.leaves) {
    uint64_t& state = leaf.image.head.state;
    operations.push_back(rdma::Operation::CompareAndSwap(leaf.address, state, 0));
    operations.back().connection = lease.connection;
    if (keeps_leaves()) {
      state = NextState(state, false);
      grants.push_back(shared_leaf::Grant::Kept(lease.number, 0));
      operations.back().operand = shared_leaf::KeptOf(state, self());
    } else {
      state = GANNET_MUTANT(kClaimSameVersion) ? VersionOf(state) | OwnerBits(self(), shared_leaf::kClaimChannel)
                                               : shared_leaf::ClaimOf(state, self());
      grants.push_back(claims_->NewGrant(leaf.address, lease.number));
      operations.back().operand = state;
    }
  }
  const uint64_t posted_nanos = NowNanos();
  const Status posted = co_await this->channel_->Post(operations);
  if (posted.ok()) claims_->Renew(lease.number, posted_nanos);
  for (size_t i = 0; i < operations.size(); ++i, ++announced.settled) {
    const LeafCopy& leaf = announced.leaves[i];
    if (posted.ok() && operations[i].result == operations[i].expected) {
      made->push_back({leaf.address, operations[i].expected, leaf.image.head.state});
      if (!keeps_leaves()) claims_->chains().Note(leaf.address, operations[i].expected, leaf.image.head.state);
      if (shared_leaf::IsClaimedBy(self(), operations[i].expected)) claims_->NoteAgain(leaf.address);
      if (GANNET_MUTANT(kBoardAfter)) grants[i] = claims_->NewGrant(leaf.address, lease.number);
      paths_.KeepClaimed(leaf, grants[i]);
      continue;
    }
    // It has changed; or the claim may have been made, without a copy.
    if (!posted.ok() && keeps_leaves()) co_await kept_.UnlockIfKept(leaf.address, leaf.image.head.state, lease);
    paths_.Withdraw(leaf.address);
  }
}

template <class Keys>
coro::Task<void> RemoteDex<Keys>::MakeClaims(std::vector<WordChange>* made) {
  if (asks_ranges_) {
    const std::vector<LeafCopy> leaves = std::exchange(to_claim_, {});
    co_await AskForRanges();
    for (const LeafCopy& leaf : leaves) KeepLeaf(leaf);
  }
  if (!to_claim_.empty()) co_await ClaimOrKeep(made);
  if (paths_.has_kept()) co_await kept_.WriteBack();
}

// This does not ask for the ranges: they may have moved, and the leaf be kept still.
template <class Keys>
coro::Task<StatusOr<bool>> RemoteDex<Keys>::ChangeKept(shared_leaf::KeptEdit<Keys> edit) {
  using Kept = typename Paths<Keys>::Kept;
  const bool through = claims_->keeping() == shared_leaf::Keeping::kWriteThrough;
  Patience patience(leaves_.patience_nanos());
  LeafCopy place;  // where a search has found the leaf: the way to it may lead elsewhere
  bool is_read = false;
  int busy = 0;
  for (;;) {
    typename Paths<Keys>::KeptLeaf kept;
    switch (paths_.ChangeKept(edit, place.address, through, &kept)) {
      case Kept::kDone:
        co_return true;
      case Kept::kToWrite: {
        const Status written = co_await kept_.WriteThrough(kept);
        if (!written.ok()) co_return written;
        co_return true;
      }
      case Kept::kNotFound:
        co_return absl::NotFoundError(absl::StrCat("the key ", Keys::ToString(edit.key), " is not mapped to that"));
      case Kept::kExists:
        co_return absl::AlreadyExistsError(absl::StrCat("the key ", Keys::ToString(edit.key), " is in the index"));
      case Kept::kFull:
        // Splits are made by verbs.
        paths_.Forget(kept.leaf);
        co_await kept_.WriteBack();
        co_return false;
      case Kept::kLeaseOver:
        co_await kept_.Renew(kept);
        break;
      case Kept::kBusy:
        // The latch may be that of a coroutine of this thread, which goes on when this one waits for a verb.
        if (++busy % Base::kBusyLooks == 0) {
          LeafCopy ignored;
          const Status located = co_await this->LocateLeaf(edit.key, &ignored);
          located.IgnoreError();
        }
        break;
      case Kept::kNotKept: {
        if (is_read) {
          paths_.Expect(place);  // by the editor, which is next
          co_return false;
        }
        const Status located = co_await this->LocateLeaf(edit.key, &place);
        is_read = located.ok();
        if (is_read) continue;
        if (!shared_leaf::IsLeafKept(located)) co_return located;
        if (paths_.has_kept()) co_await kept_.WriteBack();
        break;
      }
    }
    if (!patience.Pause()) {
      co_return absl::UnavailableError(
          absl::StrCat("the copy of a kept leaf stays latched, or its lease over; the key is ",
                       Keys::ToString(edit.key), "; try again"));
    }
  }
}

template <class Keys>
std::optional<shared_leaf::LeafWatch::Note> RemoteDex<Keys>::NoteLock(rdma::GlobalAddress leaf, uint64_t state,
                                                                      uint64_t connection) {
  const std::optional<uint64_t> mark = paths_.Weaken(leaf);
  if (!mark.has_value()) return std::nullopt;
  Note note{.grant = 0, .mark = *mark};
  if (claims_ == nullptr || !shared_leaf::IsClaimedBy(self(), state)) return note;
  const shared_leaf::Lease lease = claims_->KnownLease(this->owner_);
  // The channel names no connection to its own node.
  const bool is_same = lease.connection == connection || this->owner_ == self();
  if (lease.number != 0 && is_same) note.grant = claims_->NewGrant(leaf, lease.number).bits();
  return note;
}

template <class Keys>
void RemoteDex<Keys>::NoteRelease(const Release& release) {
  // If the lock was given back, the word is that of before, which an owner may have seen that has raised the board
  // since.
  const bool is_new = release.after != release.before && shared_leaf::IsClaimedBy(self(), release.after);
  paths_.TakeChange(release, leaves_.leaf_bytes(),
                    is_new ? shared_leaf::Grant(release.noted.grant) : shared_leaf::Grant());
}

template <class Keys>
rdma::GlobalAddress RemoteDex<Keys>::ExpectLeaf(const Key& key) {
  // Others may have filled the cache, and this client does not know the schema yet.
  if (!this->is_ready()) return {};
  const std::optional<blink::Start> start = paths_.StartFor(Keys::At(key), 0);
  return start.has_value() && start->above == 1 ? start->node : rdma::GlobalAddress();
}

template <class Keys>
size_t RemoteDex<Keys>::LeavesFrom(const Cut& next, const Key& to, bool reverse, size_t entries,
                                   std::span<rdma::GlobalAddress, kMostReads> leaves) {
  const size_t most = fill_.LeavesFor(entries, kMostReads);
  double skipped = 0;
  const size_t known =
      paths_.LeavesFrom(Keys::PointOf(next, reverse), to, reverse, std::span(leaves).first(most), &skipped);
  return reverse ? known : std::min(known, fill_.LeavesBehind(skipped, entries, kMostReads));
}

template <class Keys>
ReadEstimate RemoteDex<Keys>::Estimate(std::span<const index::Key> keys) const {
  constexpr size_t kLooks = 8;
  const size_t looks = std::min(kLooks, keys.size());
  double levels = 0;   // to READ
  double missing = 0;  // lookups that READ anything
  for (size_t i = 0; i < looks; ++i) {
    const int read = paths_.LevelsToRead(Keys::At(Keys::KeyFrom(keys[i * keys.size() / looks])));
    levels += read;
    missing += read > 0 ? 1 : 0;
  }
  const auto n = static_cast<double>(keys.size());
  const double share = looks == 0 ? 0 : n / static_cast<double>(looks);
  levels *= share;
  missing *= share;
  ReadEstimate estimate{.reads = levels, .bytes = levels * static_cast<double>(leaves_.leaf_bytes()), .keys = n};
  // The leaves come by one posting, if they are all that is missing. An inner node of byte keys is READ with the low
  // fences of its children, in another posting.
  const double inner = levels - missing;
  const double of_inner = Keys::kKeysElsewhere ? 2 : 1;
  estimate.lasting_postings = of_inner * inner;
  estimate.postings = estimate.lasting_postings + std::ceil(missing / static_cast<double>(kMostReads));
  if (!this->is_ready()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

template <class Keys>
ReadEstimate RemoteDex<Keys>::Estimate(const ScanRange& range) const {
  ReadEstimate estimate = this->EstimateScan(range, Keys::kSlots / 2.0, Keys::kSlots * 0.7);
  const Key first = Keys::KeyFrom(range.reverse ? range.to : range.from);
  const int levels = paths_.LevelsToRead(Keys::At(first));
  if (levels == 0) {
    estimate.reads = std::max(estimate.reads - 1, 0.0);
    estimate.postings = std::max(estimate.postings - 1, 0.0);
  } else {
    estimate.postings += levels - 1;
    estimate.lasting_postings += levels - 1;
  }
  if (!this->is_ready()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

template class RemoteDex<shared_leaf::IntegerKeys>;
template class RemoteDex<shared_leaf::ByteKeys>;

}  // namespace dex

StatusOr<std::unique_ptr<RemoteIndex>> ConnectDex(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                  const DexClientOptions& options) {
  return shared_leaf::Connect<dex::RemoteDex>(channel, owner, id, options);
}

}  // namespace gannet::index
