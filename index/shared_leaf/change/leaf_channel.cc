#include "index/shared_leaf/change/leaf_channel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutant.h"
#include "base/runtime.h"
#include "index/backoff.h"

namespace gannet::index::shared_leaf {
namespace {

// READs that go out with that of a leaf.
constexpr size_t kMostAlong = 2;

// False: the operation is no atomic.
bool CarryOutAtomic(std::byte* to, rdma::Operation* operation) {
  if (operation->verb == rdma::Verb::kCompareAndSwap) {
    operation->result = CompareAndSwapWord(to, operation->expected, operation->operand);
    return true;
  }
  if (operation->verb == rdma::Verb::kFetchAndAdd) {
    operation->result = FetchAndAddWord(to, operation->operand);
    return true;
  }
  return false;
}

void StoreWords(std::byte* to, const std::byte* from, size_t size) {
  for (size_t at = 0; at < size; at += kWordBytes) {
    uint64_t word;
    std::memcpy(&word, from + at, kWordBytes);
    StoreWord(to + at, word);
  }
}

}  // namespace

Status ClaimedElsewhere(rdma::GlobalAddress leaf) {
  return absl::AbortedError(absl::StrCat("another node has claimed the leaf at ", leaf.ToString()));
}
bool IsClaimedElsewhere(const Status& status) {
  return absl::IsAborted(status);
}

LeafChannel::LeafChannel(rdma::Channel* channel, rdma::Node* node, rdma::NodeId owner, absl::Duration patience,
                         size_t fence_lines, const LeafBlocks* own, As as, ClaimBoards* boards)
    : channel_(channel),
      node_(node),
      owner_(owner),
      own_life_(node == nullptr ? 0 : node->ConnectionTo(channel->node())),
      fence_lines_(fence_lines),
      own_blocks_(own),
      is_own_(as == As::kOwner && owner == channel->node()),
      by_own_cpu_(is_own_ && (channel->capabilities().cpu_coherent_atomics ||
                              (own != nullptr && own->rights() == IndexRights::kOwnerOnly))),
      boards_(boards),
      owner_bits_(OwnerBits(channel->node(), channel->index())),
      patience_nanos_(static_cast<uint64_t>(absl::ToInt64Nanoseconds(patience))) {
  GANNET_CHECK(!is_own_ || own_blocks_ != nullptr, "an owner of leaves without blocks");
  GANNET_CHECK(channel->index() != kClaimChannel, "a channel has the number of claims: %d", channel->index());
}

Status LeafChannel::CheckAddress(rdma::GlobalAddress leaf) const {
  if (leaf.node() != owner_ || leaf.offset() % kLineBytes != 0 ||
      (own_blocks_ != nullptr && !own_blocks_->MayHave(leaf))) {
    return absl::InvalidArgumentError(absl::StrCat("there is no leaf at ", leaf.ToString()));
  }
  return absl::OkStatus();
}

template <class Head>
coro::Task<StatusOr<LeafLook>> LeafChannel::Read(rdma::GlobalAddress leaf, BasicLeafImage<Head>* image,
                                                 std::span<const rdma::Operation> along, IfKept kept) {
  GANNET_CO_RETURN_IF_ERROR(CheckAddress(leaf));
  const std::byte* const own = is_own_ ? channel_->Local(leaf) : nullptr;
  GANNET_CHECK(along.size() <= (own == nullptr ? kMostAlong : 0), "%d READs with that of a leaf", along.size());
  Backoff backoff;
  uint64_t deadline = 0;
  for (;;) {
    LeafLook look;
    if (own != nullptr) {
      look = own_blocks_->Look(leaf.offset(), image);
      if (look == LeafLook::kWhole && IsKept(image->head.state)) look = LeafLook::kLocked;
    } else {
      Status status;
      const auto bytes = static_cast<uint32_t>(leaf_bytes());
      if (along.empty()) {
        status = co_await channel_->Read(leaf, image, bytes);
      } else {
        std::array<rdma::Operation, 1 + kMostAlong> reads = {rdma::Operation::Read(leaf, image, bytes)};
        std::ranges::copy(along, reads.begin() + 1);
        status = co_await channel_->Post(std::span(reads).first(1 + along.size()));
        along = {};
      }
      GANNET_CO_RETURN_IF_ERROR(status);
      look = JudgeRead(image);
    }
    if (look == LeafLook::kWhole || look == LeafLook::kDead) co_return look;
    if (own == nullptr) channel_->CountRetry();
    if (look == LeafLook::kLocked && IsKept(image->head.state)) {
      if (kept == IfKept::kReturn) co_return look;
      if (is_own_ || LockOwnerNode(image->head.state) == channel_->node()) {
        co_return LeafIsKept(leaf, image->head.state);
      }
    }
    const uint64_t now = NowNanos();
    if (deadline == 0) {
      deadline = now + patience_nanos_;
    } else if (now > deadline) {
      co_return absl::UnavailableError(absl::StrCat("the leaf at ", leaf.ToString(), " stays locked by node ",
                                                    LockOwnerNode(image->head.state), "; try again"));
    }
    backoff.Pause();
  }
}

template <class Head>
coro::Task<StatusOr<LeafLook>> LeafChannel::Glance(rdma::GlobalAddress leaf, BasicLeafImage<Head>* image) {
  GANNET_CO_RETURN_IF_ERROR(CheckAddress(leaf));
  if (!is_own_) {
    const Status status = co_await channel_->Read(leaf, image, static_cast<uint32_t>(leaf_bytes()));
    GANNET_CO_RETURN_IF_ERROR(status);
    co_return JudgeRead(image);
  }
  const LeafLook look = own_blocks_->Look(leaf.offset(), image);
  if (look != LeafLook::kWhole) co_return look;
  // Look may have read a leaf that is locked, as it was before. State words never return, so if it has this one now, it
  // had it all the time.
  const uint64_t state = LoadWord(channel_->Local(leaf));
  co_return !IsLocked(state) && state == image->head.state ? LeafLook::kWhole : LeafLook::kLocked;
}

template coro::Task<StatusOr<LeafLook>> LeafChannel::Glance(rdma::GlobalAddress leaf, LeafImage* image);
template coro::Task<StatusOr<LeafLook>> LeafChannel::Glance(rdma::GlobalAddress leaf, TaggedImage* image);
template coro::Task<StatusOr<LeafLook>> LeafChannel::Read(rdma::GlobalAddress leaf, LeafImage* image,
                                                          std::span<const rdma::Operation> along, IfKept kept);
template coro::Task<StatusOr<LeafLook>> LeafChannel::Read(rdma::GlobalAddress leaf, TaggedImage* image,
                                                          std::span<const rdma::Operation> along, IfKept kept);

// A line that is written as a whole is busy while its words change. So readers try again.
void LeafChannel::CarryOut(std::span<rdma::Operation> operations) {
  for (rdma::Operation& operation : operations) {
    std::byte* const to = channel_->Local(operation.remote);
    if (CarryOutAtomic(to, &operation)) continue;
    auto* const local = static_cast<std::byte*>(operation.local);
    if (operation.verb == rdma::Verb::kRead) {
      for (size_t at = 0; at < operation.size; at += kWordBytes) {
        const uint64_t word = LoadWord(to + at);
        std::memcpy(local + at, &word, kWordBytes);
      }
      PreemptionPoint();
      continue;
    }
    GANNET_CHECK(operation.verb == rdma::Verb::kWrite, "leaves are changed by WRITE, CAS and FAA");
    const std::byte* const from = local;
    if (operation.size % kLineBytes != 0) {
      StoreWords(to, from, operation.size);
      continue;
    }
    for (size_t line = 0; line < operation.size; line += kLineBytes) {
      StoreWord(to + line, rdma::kLineBusy);
      for (size_t at = kLineBytes; at > 0;) {
        at -= kWordBytes;
        uint64_t word;
        std::memcpy(&word, from + line + at, kWordBytes);
        StoreWord(to + line + at, word);
      }
      PreemptionPoint();
    }
  }
}

// Only the lock needs the NIC if its atomics are not atomic with the CPU's. The WRITEs of its holder are stores then: a
// NIC's CAS that meets one of their words expects another, and writes nothing.
coro::Task<Status> LeafChannel::Post(std::span<rdma::Operation> operations) {
  const auto is_write = [](const rdma::Operation& operation) { return operation.verb == rdma::Verb::kWrite; };
  if (by_own_cpu_ || (is_own_ && std::ranges::all_of(operations, is_write))) {
    CarryOut(operations);
    co_return absl::OkStatus();
  }
  if (channel_->is_alone()) co_return channel_->PostAlone(operations);
  const Status status = co_await channel_->Post(operations);
  co_return status;
}

// If this thread is alone, it holds a lock that nobody else could release: a connection that has not ended carries
// verbs sooner or later.
bool LeafChannel::IsOver(uint64_t connection, uint64_t deadline) const {
  if (is_dead() || Connection() != connection) return true;
  return !(channel_->is_alone() && node_ != nullptr) && NowNanos() > deadline;
}

coro::Task<Status> LeafChannel::PostHint(std::span<rdma::Operation> operations) {
  if (by_own_cpu_) {
    for (rdma::Operation& operation : operations) {
      std::byte* const to = channel_->Local(operation.remote);
      if (CarryOutAtomic(to, &operation)) continue;
      GANNET_CHECK(operation.verb == rdma::Verb::kWrite, "hints are WRITEs and FAAs");
      StoreWords(to, static_cast<const std::byte*>(operation.local), operation.size);
    }
    co_return absl::OkStatus();
  }
  const Status status = co_await channel_->Post(operations);
  co_return status;
}

coro::Task<StatusOr<uint64_t>> LeafChannel::ReadWord(rdma::GlobalAddress word, uint64_t connection) {
  if (is_own_) co_return LoadWord(channel_->Local(word));
  const uint64_t deadline = NowNanos() + patience_nanos_;
  Backoff backoff;
  for (;;) {
    uint64_t found = 0;
    rdma::Operation read[] = {rdma::Operation::Read(word, &found, kWordBytes)};
    read[0].connection = connection;
    const Status status = co_await Post(read);
    if (status.ok()) co_return found;
    // An ended connection, or a dead owner: nothing can be done, and nothing needs to be.
    if (!IsUnknownOutcome(status) || IsOver(connection, deadline)) co_return status;
    backoff.Pause();
  }
}

bool LeafChannel::NoteLock(const LeafLock& draft, uint64_t connection) {
  const uint64_t leaf = draft.address().bits();
  const auto held = locked_.find(leaf);
  // The lock of an ended connection was repaired away.
  if (held != locked_.end() && held->second.connection == connection) return false;
  std::optional<LeafWatch::Note> noted(std::in_place);
  if (watch_ != nullptr) noted = watch_->NoteLock(draft.address(), draft.unlocked(), connection);
  if (!noted.has_value()) return false;
  locked_[leaf] = {.connection = connection, .before = draft.unlocked(), .noted = *noted};
  return true;
}

coro::Task<bool> LeafChannel::EndCopies(rdma::GlobalAddress leaf, uint64_t claim) {
  const Status ended = co_await boards_->End(channel_, HolderOf(claim), leaf);
  // Any other error is that of a board that is none: its node does not keep the rules.
  co_return !IsUnknownOutcome(ended);
}

coro::Task<StatusOr<bool>> LeafChannel::Lock(const LeafLock& draft, uint64_t of_blocks) {
  const uint64_t connection = Connection();
  if (of_blocks != 0 && of_blocks != connection) co_return false;
  if (IsClaimedByAnother(draft.unlocked())) co_return ClaimedElsewhere(draft.address());
  if (is_own_ && boards_ != nullptr && IsClaimed(draft.unlocked()) && !GANNET_MUTANT(kClaimNotEnded)) {
    const bool ended = co_await EndCopies(draft.address(), draft.unlocked());
    if (!ended) co_return false;
  }
  if (!NoteLock(draft, connection)) co_return false;
  if (GANNET_MUTANT(kClaimedUnlocked) && !is_own_ && IsClaimed(draft.unlocked())) co_return true;
  rdma::Operation cas[] = {draft.Lock()};
  cas[0].connection = connection;
  Status posted = co_await Post(cas);
  const StatusOr<bool> taken = co_await TakeLock(cas[0], std::move(posted));
  co_return taken;
}

coro::Task<StatusOr<bool>> LeafChannel::TakeLock(rdma::Operation cas, Status posted) {
  if (posted.ok()) {
    const bool locked = cas.result == cas.expected;
    if (!locked) Drop(cas.remote);
    co_return locked;
  }
  if (IsUnknownOutcome(posted)) {
    const StatusOr<uint64_t> state = co_await ReadWord(cas.remote, cas.connection);
    // If that fails, too, the leaf stays noted: no coroutine takes its lock over this connection.
    if (!state.ok()) co_return state.status();
    // No other coroutine of this channel asks for this lock, so one that is ours is this one.
    if (IsOurs(*state)) co_return true;
    Drop(cas.remote);
    co_return false;  // not taken, and it will not be: a verb has no effect after it has completed
  }
  Drop(cas.remote);
  co_return posted;
}

void LeafChannel::Release(rdma::GlobalAddress leaf, std::span<const rdma::Operation> operations) {
  const auto held = locked_.find(leaf.bits());
  const Held was = held->second;
  locked_.erase(held);
  if (watch_ == nullptr) return;
  std::optional<uint64_t> after;
  for (const rdma::Operation& operation : operations) {
    if (operation.remote != leaf) continue;
    if (operation.verb == rdma::Verb::kWrite) {
      after.emplace();
      std::memcpy(&*after, operation.local, kWordBytes);
    } else if (operation.verb == rdma::Verb::kCompareAndSwap) {
      after = operation.operand;
    }
  }
  if (after.has_value() && !IsLocked(*after) && !IsAbsent(*after)) {
    watch_->NoteRelease(
        {.leaf = leaf, .before = was.before, .after = *after, .noted = was.noted, .operations = operations});
  } else {
    watch_->NoteChanged(leaf);
  }
}

// A later claim has another word, so the CAS ends none whose copies may be good.
coro::Task<StatusOr<bool>> LeafChannel::EndClaim(rdma::GlobalAddress leaf, uint64_t claim, EndBy by) {
  if (by == EndBy::kBoard && boards_ != nullptr) {
    const bool ended = co_await EndCopies(leaf, claim);
    if (!ended) co_return false;
  }
  rdma::Operation cas[] = {rdma::Operation::CompareAndSwap(leaf, claim, NextState(claim, false))};
  const Status posted = co_await Post(cas);
  if (!posted.ok()) co_return posted;
  co_return cas[0].result == claim;
}

bool LeafChannel::ChangeAtOnce(const rdma::Operation& lock, Posting* posting) {
  GANNET_CHECK(may_change_at_once(), "the leaf at %s is not this CPU's to change at once", lock.remote.ToString());
  if (IsClaimed(lock.expected)) return false;
  if (CompareAndSwapWord(channel_->Local(lock.remote), lock.expected, lock.operand) != lock.expected) return false;
  PreemptionPoint();
  CarryOut(posting->operations());
  return true;
}

coro::Task<Status> LeafChannel::GiveBack(const LeafLock& draft) {
  Posting posting;
  posting.Add(draft.GiveBack());
  const Status status = co_await Commit(draft.address(), &posting);
  co_return status;
}

coro::Task<Status> LeafChannel::Commit(rdma::GlobalAddress leaf, Posting* posting, size_t changes) {
  const auto held = locked_.find(leaf.bits());
  GANNET_CHECK(held != locked_.end(), "a change of a leaf that is not locked: %s", leaf.ToString());
  for (rdma::Operation& operation : posting->operations()) operation.connection = held->second.connection;
  Status posted = co_await Post(posting->operations());
  Status done =
      co_await TakeChange(leaf, posting->operations().first(std::min(changes, posting->size())), std::move(posted));
  co_return done;
}

coro::Task<Status> LeafChannel::TakeChange(rdma::GlobalAddress leaf, std::span<rdma::Operation> operations,
                                           Status posted) {
  const auto held = locked_.find(leaf.bits());
  GANNET_CHECK(held != locked_.end(), "a change of a leaf that is not locked: %s", leaf.ToString());
  const uint64_t connection = held->second.connection;
  const uint64_t deadline = NowNanos() + patience_nanos_;
  Backoff backoff;
  for (;;) {
    if (posted.ok()) {
      Release(leaf, operations);
      co_return posted;
    }
    // The outcome stays unknown. The owner repairs the leaf when the connection has ended.
    if (!IsUnknownOutcome(posted) || IsOver(connection, deadline)) co_return posted;
    const StatusOr<uint64_t> state = co_await ReadWord(leaf, connection);
    if (!state.ok()) co_return state.status();
    backoff.Pause();
    if (IsOurs(*state)) {
      posted = co_await Post(operations);
      continue;
    }
    // Line 0 was written, so all WRITEs were. The CASes can be repeated at any time. FAAs are hints: they stay undone.
    Posting rest;
    for (const rdma::Operation& operation : operations) {
      if (operation.verb == rdma::Verb::kCompareAndSwap) rest.Add(operation);
    }
    posted = absl::OkStatus();
    if (!rest.empty()) posted = co_await Post(rest.operations());
  }
}

}  // namespace gannet::index::shared_leaf
