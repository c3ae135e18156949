#include "index/dex/kept_leaves.h"

#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/backoff.h"
#include "index/lock_word.h"
#include "index/shared_leaf/claim/claim.h"

namespace gannet::index::dex {

template <class Keys>
void KeptLeaves<Keys>::AppendUnlock(rdma::GlobalAddress leaf, uint64_t state, shared_leaf::Lease lease,
                                    shared_leaf::Posting* posting) {
  posting->Write(leaf, std::as_bytes(std::span(&state, 1)));
  posting->operations().back().connection = lease.connection;
}

template <class Keys>
void KeptLeaves<Keys>::AppendWriteBack(const KeptFrame& kept, shared_leaf::Lease lease, shared_leaf::Posting* posting) {
  if constexpr (!Keys::kKeysElsewhere) {
    Image image;
    LeafBody<Keys>::Load(kept.body(), &image);
    const uint32_t dirty = LeafBody<Keys>::GrantOf(kept.body()).dirty();
    if (dirty == 0 || GANNET_MUTANT(kKeptForgotten)) {
      AppendUnlock(kept.leaf(), image.head.state, lease, posting);
      return;
    }
    typename Keys::Draft draft(kept.leaf(), image, OwnerBits(channel_->node(), shared_leaf::kClaimChannel));
    draft.SetChanged(dirty >> 1);
    const size_t before = posting->size();
    draft.AppendChange(posting);
    for (rdma::Operation& operation : posting->operations().subspan(before)) operation.connection = lease.connection;
  }
}

// A leaf whose lease is not that of the present connection is unlocked by the owner, which has lost the connection, and
// this node has lost its changes.
template <class Keys>
coro::Task<void> KeptLeaves<Keys>::WriteBack() {
  std::vector<KeptFrame> frames = paths_->TakeKept();
  std::vector<shared_leaf::Lease> leases;
  shared_leaf::Posting posting;
  std::erase_if(frames, [&](const KeptFrame& frame) {
    const shared_leaf::Grant grant = LeafBody<Keys>::GrantOf(frame.body());
    const shared_leaf::Lease lease = claims_->KnownLease(frame.leaf().node());
    if (lease.number != grant.lease()) {
      Sometimes<"dex: a kept leaf was lost with its connection">();
      cache_->NoteLost(grant.dirty() != 0);
      return true;
    }
    leases.push_back(lease);
    AppendWriteBack(frame, lease, &posting);
    return false;
  });
  if (frames.empty()) co_return;
  if (GANNET_MUTANT(kUnlockedFirst)) {
    shared_leaf::Posting unlocks;
    for (const KeptFrame& frame : frames) {
      AppendUnlock(frame.leaf(), LeafBody<Keys>::StateOf(frame.body()), leases.front(), &unlocks);
    }
    const Status unlocked = co_await channel_->Post(unlocks.operations());
    unlocked.IgnoreError();
  }
  const uint64_t posted_nanos = NowNanos();
  const Status posted = co_await channel_->Post(posting.operations());
  if (posted.ok()) {
    for (const shared_leaf::Lease& lease : leases) claims_->Renew(lease.number, posted_nanos);
    co_return;
  }
  for (size_t i = 0; i < frames.size(); ++i) {
    const uint64_t before = shared_leaf::KeptOf(LeafBody<Keys>::StateOf(frames[i].body()), channel_->node());
    shared_leaf::Posting again;
    AppendWriteBack(frames[i], leases[i], &again);
    const Status written = co_await Post(frames[i].leaf(), before, leases[i], /*check=*/true, &again);
    if (!written.ok()) cache_->NoteLost(LeafBody<Keys>::GrantOf(frames[i].body()).dirty() != 0);
  }
}

// Nobody else can unlock the leaf, so this goes on for as long as the connection lasts.
template <class Keys>
coro::Task<Status> KeptLeaves<Keys>::Post(rdma::GlobalAddress leaf, uint64_t before, shared_leaf::Lease lease,
                                          bool check, shared_leaf::Posting* posting) {
  Backoff backoff;
  for (;; check = true) {
    const uint64_t posted_nanos = NowNanos();
    uint64_t state = before;
    Status status;
    if (check) {
      rdma::Operation read[] = {rdma::Operation::Read(leaf, &state, kWordBytes)};
      read[0].connection = lease.connection;
      status = co_await channel_->Post(read);
      if (status.ok() && state != before) co_return absl::OkStatus();
    }
    if (status.ok()) status = co_await channel_->Post(posting->operations());
    if (status.ok()) {
      claims_->Renew(lease.number, posted_nanos);
      co_return status;
    }
    if (leaves_->is_dead() || claims_->KnownLease(leaf.node()).number != lease.number) co_return status;
    backoff.Pause();
  }
}

template <class Keys>
coro::Task<Status> KeptLeaves<Keys>::WriteThrough(typename Paths<Keys>::KeptLeaf kept) {
  if constexpr (Keys::kKeysElsewhere) {
    co_return absl::InternalError("leaves of byte keys are not kept");
  } else {
    // Until the end nobody reads the copy. If this coroutine is destroyed, or the connection ends, the leaf is lost.
    struct Held {
      ~Held() {
        if (!is_written) paths->Forsake(frame);
      }
      Paths<Keys>* paths;
      LatchedFrame frame;
      bool is_written = false;
    } held{.paths = paths_, .frame = kept.frame};
    const shared_leaf::Lease lease = claims_->KnownLease(owner_);
    if (lease.number != kept.grant.lease()) co_return absl::UnavailableError("the connection to the owner has ended");
    Image image;
    LeafBody<Keys>::Load(kept.frame.body(), &image);
    typename Keys::Draft draft(kept.leaf, image, OwnerBits(channel_->node(), shared_leaf::kClaimChannel));
    draft.SetChanged(kept.grant.dirty() >> 1);
    shared_leaf::Posting posting;
    draft.AppendChange(&posting, Keys::Draft::Then::kKeepLock);
    for (rdma::Operation& operation : posting.operations()) operation.connection = lease.connection;
    const uint64_t before = shared_leaf::KeptOf(kept.state, channel_->node());
    const Status written = co_await Post(kept.leaf, before, lease, /*check=*/false, &posting);
    if (!written.ok()) co_return written;
    image = draft.image();
    image.head.state = draft.unlocked();
    paths_->Wrote(kept.frame, image, lease.number);
    held.is_written = true;
    co_return absl::OkStatus();
  }
}

template <class Keys>
coro::Task<void> KeptLeaves<Keys>::Renew(typename Paths<Keys>::KeptLeaf kept) {
  const shared_leaf::Lease lease = claims_->KnownLease(owner_);
  uint64_t state = 0;
  Status read;
  const uint64_t posted_nanos = NowNanos();
  if (lease.number == kept.grant.lease()) {
    rdma::Operation reads[] = {rdma::Operation::Read(kept.leaf, &state, kWordBytes)};
    reads[0].connection = lease.connection;
    read = co_await channel_->Post(reads);
    if (!read.ok()) co_return;
  }
  if (state == shared_leaf::KeptOf(kept.state, channel_->node())) {
    claims_->Renew(lease.number, posted_nanos);
  } else if (paths_->ForsakeKept(kept)) {
    Sometimes<"dex: a kept leaf was lost with its connection">();
    cache_->NoteLost(kept.grant.dirty() != 0);
  }
}

template <class Keys>
coro::Task<Status> KeptLeaves<Keys>::HandBack(Key from, Key to) {
  Patience patience(leaves_->patience_nanos());
  bool missed = false;
  do {
    missed = false;
    for (std::optional<size_t> at = 0; at.has_value();) {
      at = paths_->TakeKeptFrom(*at, from, to, &missed);
      co_await WriteBack();
    }
    missed |= paths_->has_kept();
    if (!missed) co_return absl::OkStatus();
  } while (patience.Pause());
  co_return absl::UnavailableError("kept leaves cannot be handed back now; try again");
}

template <class Keys>
coro::Task<void> KeptLeaves<Keys>::UnlockIfKept(rdma::GlobalAddress leaf, uint64_t state, shared_leaf::Lease lease) {
  shared_leaf::Posting unlock;
  AppendUnlock(leaf, state, lease, &unlock);
  co_await Post(leaf, shared_leaf::KeptOf(state, channel_->node()), lease, /*check=*/true, &unlock);
}

template class KeptLeaves<shared_leaf::IntegerKeys>;
template class KeptLeaves<shared_leaf::ByteKeys>;

}  // namespace gannet::index::dex
