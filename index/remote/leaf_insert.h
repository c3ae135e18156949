// Inserts several keys into shared leaves, those of one leaf under one lock (RemoteIndex::InsertMany). A leaf that has
// no room is left to others: its split is not part of this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/sometimes.h"
#include "base/status.h"
#include "index/index.h"
#include "index/remote/leaf.h"
#include "index/remote/leaf_change.h"
#include "index/remote/leaf_channel.h"
#include "index/remote/leaf_draft.h"
#include "index/remote/posting.h"

namespace gannet::index::remote {

// `locate(key, LeafPlace*)`: a task that finds the leaf that covers a key. `room(place)`: number of entries for which a
// leaf has room.
template <class Locate, class Room>
coro::Task<Status> InsertIntoLeaves(LeafChannel* leaves, Locate locate, Room room, std::span<Insertion> insertions,
                                    uint64_t connection) {
  constexpr int kTries = 3;  // of a leaf that others change
  std::vector<Insertion*> sorted;
  for (Insertion& insertion : insertions) sorted.push_back(&insertion);
  std::ranges::sort(sorted, {}, [](const Insertion* one) { return one->key.integer(); });
  LeafPlace place;
  int tries = 0;
  for (size_t at = 0; at < sorted.size();) {
    const Status located = co_await locate(sorted[at]->key.integer(), &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    LeafDraft draft(place.address, place.image, leaves->owner_bits());
    std::vector<Insertion*> added;
    const size_t most = room(place);
    size_t end = at;
    for (; end < sorted.size() && place.image.Covers(sorted[end]->key.integer()); ++end) {
      Insertion& one = *sorted[end];
      const int slot = FindSlot(place.image, one.key.integer());
      if (slot >= 0) {
        one.outcome = Insertion::Outcome::kExists;
        one.existing = rdma::GlobalAddress::FromBits(place.image.entry<IntegerEntry>(slot).target);
      } else if (added.size() < most && draft.Add(IntegerEntry{one.key.integer(), one.record.bits()}) >= 0) {
        added.push_back(&one);
      } else {
        Sometimes<"leaf: an insert by verbs meets a full leaf">();
      }
    }
    bool done = true;
    if (!added.empty()) {
      const LeafChannel::Alone alone(leaves, connection);
      // Nothing suspends until `alone` ends.
      const StatusOr<bool> locked = co_await leaves->Lock(draft);
      done = locked.ok() && *locked;
      Status status = locked.status();
      if (done) {
        Posting posting;
        draft.AppendChange(&posting);
        status = co_await leaves->Commit(place.address, &posting);
      }
      if (!status.ok()) {
        for (Insertion* const one : added) one->outcome = Insertion::Outcome::kUnknown;
        co_return status;
      }
    }
    if (!done && ++tries < kTries) {
      Sometimes<"leaf: an insert by verbs meets a leaf that has changed">();
      continue;
    }
    if (done && !added.empty()) {
      if (added.size() > 1) Sometimes<"leaf: inserts by verbs share a lock">();
      added.front()->change.AddChanged(place.address, place.image.head.state, draft.unlocked());
      for (Insertion* const one : added) one->outcome = Insertion::Outcome::kDone;
    }
    tries = 0;
    at = end;
  }
  co_return absl::OkStatus();
}

}  // namespace gannet::index::remote
