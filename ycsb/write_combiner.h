// WriteCombiner: inserts and updates of values by a client in the leaves of an index of Dolphin, together with those of
// the other clients of this process (write combining: MSST'24, II-C). The client that leads a leaf's queue
// (leaf_queues.h) enters the leaf, makes the changes of all that wait in one stay, and leaves. Of several updates of
// one key only the last is written: the others are overwritten before anybody can READ them.
//
// A leader that finds the leaf full splits it. What it does not decide itself, it leaves to the caller, which then
// makes the change alone: a key that is there, or is not; a leaf that somebody has to himself, or that another one has
// taken the place of.
//
// If the posting fails, it is not known which of the changes were made, and all of them get the error.
#pragma once

#include <cstdint>

#include "base/coro/task.h"
#include "base/coro/worker.h"
#include "base/status.h"
#include "index/dolphin/leaf_changer.h"
#include "index/dolphin/remote_dolphin.h"
#include "ycsb/leaf_queues.h"

namespace gannet::ycsb {

// Not thread-safe; coroutines of the channel's worker may use it at once.
class WriteCombiner {
 public:
  using Keys = index::dolphin::IntegerKeys;
  using Index = index::dolphin::RemoteDolphin<Keys>;

  // All must outlive this. `worker` runs the client's coroutines.
  WriteCombiner(Index* index, LeafQueues* queues, coro::Worker* worker)
      : index_(index), queues_(queues), worker_(worker) {}

  // False: nothing was done, and the caller makes the change. Errors: as those of LeafChanger.
  coro::Task<StatusOr<bool>> Insert(uint64_t key, uint64_t value) { return Make({.key = key, .word = value}); }
  coro::Task<StatusOr<bool>> Update(uint64_t key, uint64_t value) {
    return Make({.key = key, .word = value, .is_update = true});
  }

 private:
  using Changer = index::dolphin::LeafChanger<Keys>;
  using Write = Changer::Together;
  struct Request;
  struct Batch;

  coro::Task<StatusOr<bool>> Make(Write write);
  // Makes the leader's change, and those of all that wait. True: the leader's was made.
  coro::Task<StatusOr<bool>> MakeAll(LeafQueues::Leader* lead, Request* own);

  Index* index_;
  LeafQueues* queues_;
  coro::Worker* worker_;
};

}  // namespace gannet::ycsb
