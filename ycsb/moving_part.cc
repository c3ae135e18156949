#include "ycsb/moving_part.h"

#include <algorithm>
#include <span>
#include <utility>

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

std::vector<index::ClaimRange> MovingPart::RangesAt(Cluster* cluster, int server, const MovingPart* moving, int moved) {
  const KeySpace& keys = cluster->keys();
  const int machines = cluster->options().machines;
  const int parts = moving == nullptr ? machines : machines - 1;
  std::vector<index::ClaimRange> ranges;
  const auto add = [&](uint64_t first, int holder) {
    ranges.push_back({.first = index::OwnedKey(index::Key(first)), .node = cluster->machine(holder).node->id()});
  };
  for (int i = 0; i < parts; ++i) {
    const KeyPart part(&keys, i, parts);
    add(i == 0 ? 0 : keys.LoadedKey(part.FirstRankAt(server)), i);
  }
  if (moved > 0) add(keys.LoadedKey(moving->FirstMovedRankAt(server, moved)), moving->taker());
  return ranges;
}

}  // namespace gannet::ycsb
