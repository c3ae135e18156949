// MovingPart: keys that move from one machine to another while clients work: the logical repartitioning of DEX
// (VLDB'24, sections 4 and 8.3). The last machine has no keys at first; the one before it gives it half of its part.
//
// They move in slices, the greatest keys first. For each slice
//
//   1. the giver's clients draw none of its keys any more, and the giver neither keeps nor claims its leaves;
//   2. each of them ends the operation that it had begun before;
//   3. the giver hands back the leaves of the slice that it keeps;
//   4. the taker's clients draw its keys.
//
// So no operation waits for a move; nobody uses the keys of a slice in steps 2 and 3.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "index/index.h"
#include "ycsb/cluster.h"
#include "ycsb/key_space.h"

namespace gannet::ycsb {

// Thread-safe.
class MovingPart {
 public:
  // Slices of the giver's part, and how many of them move.
  static constexpr int kSlices = 32;
  static constexpr int kMoved = kSlices / 2;

  // `clients`: of a machine, one operation at a time each. `cluster` must outlive this, and has two machines or more.
  MovingPart(Cluster* cluster, int clients)
      : cluster_(*cluster),
        giver_(cluster->options().machines - 2),
        part_(&cluster->keys(), giver_, giver_ + 1),
        clients_(clients),
        seen_(std::make_unique<std::atomic<int>[]>(static_cast<size_t>(clients))) {}
  MovingPart(const MovingPart&) = delete;
  MovingPart& operator=(const MovingPart&) = delete;

  // A part can be given in slices if there are so many keys.
  static uint64_t LeastKeys(int servers, int machines) {
    return KeyPart::LeastKeys(servers, machines - 1) * kSlices;
  }

  int giver() const { return giver_; }
  int taker() const { return giver_ + 1; }
  // The keys of both.
  const KeyPart& part() const { return part_; }

  // Client number `client` of the machine begins an operation, and has ended the one before. Returns the number of
  // slices that have moved, as far as it is to know.
  int Begin(int machine, int client);
  // The client begins no more operations.
  void End(int machine, int client) {
    if (machine == giver_) seen_[static_cast<size_t>(client)].store(kSlices, std::memory_order_release);
  }
  // The machine uses the key of this rank, if so many slices have moved.
  bool Uses(int machine, int moved, uint64_t rank) const {
    if (machine < giver_) return true;
    return (part_.PlaceOf(rank) * kSlices < part_.stretch() * static_cast<uint64_t>(kSlices - moved)) ==
           (machine == giver_);
  }

  // One thread takes the steps. This is step 1, for the next slice.
  void Give();
  // Step 2 is over.
  bool HasEnded() const;
  // The keys of the slice at a server.
  struct Range {
    uint64_t from = 0;
    uint64_t to = 0;
  };
  Range SliceAt(int server) const;
  // Step 4.
  void Take();
  int taken() const { return taken_.load(std::memory_order_acquire); }

  // Gives the machine's caches the ranges of all machines, if so many slices have moved. `moving`: null if no keys
  // move.
  static void SetRanges(Cluster* cluster, int machine, const MovingPart* moving, int moved);

 private:
  uint64_t FirstMovedRankAt(int server, int moved) const {
    return part_.FirstRankAt(server) +
           (part_.stretch() * static_cast<uint64_t>(kSlices - moved) + kSlices - 1) / kSlices;
  }

  Cluster& cluster_;
  const int giver_;
  const KeyPart part_;
  const int clients_;
  std::atomic<int> given_{0};
  std::atomic<int> taken_{0};
  const std::unique_ptr<std::atomic<int>[]> seen_;  // of given_, by client of the giver
};

}  // namespace gannet::ycsb
