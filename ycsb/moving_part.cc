#include "ycsb/moving_part.h"

#include <algorithm>
#include <span>
#include <utility>

#include "index/shared_leaf/claim/claim_ranges.h"

namespace gannet::ycsb {

// A client of the giver stores what it has loaded after its last operation. When all have stored the new number, the
// operations that they had drawn by the old one are over.
int MovingPart::Begin(int machine, int client) {
  if (machine != giver_) return taken();
  const int given = given_.load(std::memory_order_acquire);
  seen_[static_cast<size_t>(client)].store(given, std::memory_order_release);
  return given;
}

bool MovingPart::HasEnded() const {
  const int given = given_.load(std::memory_order_relaxed);
  const std::span<const std::atomic<int>> seen(seen_.get(), static_cast<size_t>(clients_));
  return std::ranges::all_of(seen, [&](const auto& one) { return one.load(std::memory_order_acquire) >= given; });
}

MovingPart::Range MovingPart::SliceAt(int server) const {
  const int given = given_.load(std::memory_order_relaxed);
  const uint64_t end = FirstMovedRankAt(server, given - 1);
  return {.from = cluster_.keys().LoadedKey(FirstMovedRankAt(server, given)),
          .to = given == 1 ? part_.LastKeyAt(server) : cluster_.keys().LoadedKey(end) - 1};
}

std::vector<index::ClaimRange> MovingPart::RangesAt(Cluster* cluster, int server, const MovingPart* moving, int given,
                                                    int taken) {
  const KeySpace& keys = cluster->keys();
  const int machines = cluster->options().machines;
  const int parts = moving == nullptr ? machines : machines - 1;
  std::vector<index::ClaimRange> ranges;
  const auto add = [&](uint64_t first, rdma::NodeId node) {
    ranges.push_back({.first = index::OwnedKey(index::Key(first)), .node = node});
  };
  for (int i = 0; i < parts; ++i) {
    const KeyPart part(&keys, i, parts);
    add(i == 0 ? 0 : keys.LoadedKey(part.FirstRankAt(server)), cluster->machine(i).node->id());
  }
  const auto add_moved = [&](int slices, rdma::NodeId node) {
    add(keys.LoadedKey(moving->FirstMovedRankAt(server, slices)), node);
  };
  if (given > taken) add_moved(given, index::shared_leaf::kNobody);
  if (taken > 0) add_moved(taken, cluster->machine(moving->taker()).node->id());
  return ranges;
}

}  // namespace gannet::ycsb
