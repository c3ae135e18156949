#include "ycsb/moving_part.h"

#include <algorithm>
#include <span>
#include <utility>

#include "index/dex/dex.h"

namespace gannet::ycsb {

// A client of the giver stores what it has loaded after its last operation. When all have stored the new number, the
// operations that they had drawn by the old one are over.
int MovingPart::Begin(int machine, int client) {
  if (machine != giver_) return taken();
  const int given = given_.load(std::memory_order_acquire);
  seen_[static_cast<size_t>(client)].store(given, std::memory_order_release);
  return given;
}

void MovingPart::Give() {
  const int given = given_.load(std::memory_order_relaxed) + 1;
  SetRanges(&cluster_, giver_, this, given);
  given_.store(given, std::memory_order_release);
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

void MovingPart::Take() {
  const int given = given_.load(std::memory_order_relaxed);
  SetRanges(&cluster_, taker(), this, given);
  taken_.store(given, std::memory_order_release);
}

void MovingPart::SetRanges(Cluster* cluster, int machine, const MovingPart* moving, int moved) {
  const ClusterOptions& o = cluster->options();
  Machine& of = cluster->machine(machine);
  const int parts = moving == nullptr ? o.machines : o.machines - 1;
  for (size_t server = 0; of.claims != nullptr && server < of.caches.size(); ++server) {
    std::vector<index::ClaimRange> ranges;
    const auto add = [&](uint64_t first, int holder) {
      ranges.push_back({.first = index::OwnedKey(index::Key(first)), .node = cluster->machine(holder).node->id()});
    };
    for (int i = 0; i < parts; ++i) {
      const KeyPart part(&cluster->keys(), i, parts);
      add(i == 0 ? 0 : cluster->keys().LoadedKey(part.FirstRankAt(static_cast<int>(server))), i);
    }
    if (moved > 0) {
      add(cluster->keys().LoadedKey(moving->FirstMovedRankAt(static_cast<int>(server), moved)), moving->taker());
    }
    dynamic_cast<index::dex::SharedPages&>(*of.caches[server]).Pin(std::move(ranges));
  }
}

}  // namespace gannet::ycsb
