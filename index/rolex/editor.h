// Editor: finds and changes the leaves of a ROLEX index by verbs (FAST'23, 3.4), for a client, and for the owner over a
// channel of its own. Leaves are found by models and right links; they are not trusted (remote/leaf.h), so every loop
// is bounded. Not thread-safe; coroutines of the channel's worker may use it at once.
#pragma once

#include <cstdint>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/remote/block_source.h"
#include "index/remote/leaf_change.h"
#include "index/remote/leaf_channel.h"
#include "index/rolex/synonyms.h"

namespace gannet::index::rolex {

using remote::IntegerEntry;
using remote::LeafPlace;

// Who knows models: a client's cache, or the owner.
class Guide {
 public:
  virtual ~Guide() = default;
  // The leaf where the search for `key` begins. Attempt 0: what is known leads there; 1: what is known is brought up to
  // date before; from 2 on, leaves further and further left.
  virtual coro::Task<StatusOr<rdma::GlobalAddress>> LeadTo(uint64_t key, int attempt) = 0;
  // The search came to the leaf with this low fence by right links.
  virtual void NoteLeaf(const Synonym& leaf) = 0;
  // The synonym table of the model for `key`.
  virtual coro::Task<StatusOr<rdma::GlobalAddress>> SynonymsFor(uint64_t key) = 0;
  // The queues of the index.
  virtual rdma::GlobalAddress queue() const = 0;
};

class Editor {
 public:
  // All must outlive this.
  Editor(remote::LeafChannel* leaves, remote::BlockSource* blocks, Guide* guide)
      : leaves_(leaves), changer_(leaves, blocks), guide_(guide) {}

  // The leaf that covers `key`.
  coro::Task<Status> Locate(uint64_t key, LeafPlace* place);

  // As those of LocalIndex. Replace with a null `from`: whatever the key is mapped to.
  coro::Task<StatusOr<Change>> Insert(uint64_t key, rdma::GlobalAddress record, rdma::GlobalAddress* existing);
  coro::Task<StatusOr<Change>> Remove(uint64_t key, rdma::GlobalAddress record);
  coro::Task<Status> Replace(uint64_t key, rdma::GlobalAddress from, rdma::GlobalAddress to);
  // Replaces the entry of a slot. False: the leaf has changed, or is being changed.
  coro::Task<StatusOr<bool>> TryReplace(const LeafPlace& place, int slot, IntegerEntry entry) {
    StatusOr<bool> done = co_await changer_.Replace(place, slot, entry);
    co_return done;
  }

 private:
  // The following are hints for others. If one fails, the index works as before.
  coro::Task<void> AddSynonym(Synonym leaf);
  coro::Task<void> CountDeath(uint64_t key);
  coro::Task<void> Enqueue(rdma::GlobalAddress synonyms, bool urgent);
  // Merges a leaf that has few entries with its left neighbour. True: *change has the words of both.
  coro::Task<bool> MergeLeft(const LeafPlace& leaf, Change* change);

  remote::LeafChannel* leaves_;
  remote::LeafChanger changer_;
  Guide* guide_;
};

// How far left an attempt begins (Guide::LeadTo): 0, 0, 1, 2, 4, ...
constexpr uint64_t StepsLeft(int attempt) {
  return attempt < 2 ? 0 : uint64_t{1} << (attempt - 2 < 32 ? attempt - 2 : 32);
}
inline constexpr int kMostAttempts = 40;

}  // namespace gannet::index::rolex
