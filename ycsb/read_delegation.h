// ReadDelegation: lookups of keys by a client in the leaves of an index of Dolphin, together with those of the other
// clients of this process (read delegation: MSST'24, II-C). A process has at most kMostReads READs of a leaf in flight,
// however many of its clients ask for keys there. A client that comes later waits until one of them is back. Then it,
// or another one that waits, READs the leaf for all that wait (leaf_queues.h). What is READ for a client is READ after
// the client has asked, so lookups stay linearizable.
//
// Why several READs: a client that waits for the next one takes up to twice as long. With a few in flight it waits for
// a part of a round trip only, and only where many ask.
#pragma once

#include <cstdint>

#include "base/coro/task.h"
#include "base/coro/worker.h"
#include "base/status.h"
#include "index/dolphin/remote_dolphin.h"
#include "index/index.h"
#include "ycsb/leaf_queues.h"

namespace gannet::ycsb {

// Not thread-safe; coroutines of the channel's worker may use it at once.
class ReadDelegation {
 public:
  using Index = index::dolphin::RemoteDolphin<index::dolphin::IntegerKeys>;

  static constexpr size_t kMostReads = 6;  // of a leaf, in flight

  // All must outlive this. `queues` are those of lookups only, with kMostReads leaders. `worker` runs the client's
  // coroutines.
  ReadDelegation(Index* index, LeafQueues* queues, coro::Worker* worker)
      : index_(index), queues_(queues), worker_(worker) {}

  // Does what RemoteIndex::Find does.
  coro::Task<StatusOr<index::FindResult>> Find(uint64_t key);

 private:
  // Queues to which one lookup comes: leaves are split meanwhile, or their clients go away.
  static constexpr int kMostTurns = 4;
  // Lookups by one READ. Each looks through the leaf once.
  static constexpr size_t kMostTogether = 64;
  struct Request;
  struct Batch;

  Index* index_;
  LeafQueues* queues_;
  coro::Worker* worker_;
};

}  // namespace gannet::ycsb
