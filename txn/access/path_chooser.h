// Chooses the path of a remote read: one-sided (READ the index, READ the record) or a CALL that does both at the owner.
//
// For each (table, node) the chooser keeps running averages of the cost of both paths and prefers the cheaper.
// Sometimes it tries the other, so that it notices when the owner becomes idle or busy, or a cache becomes stale (DEX
// section 6.1, Catfish algorithm 1: offload when the measured cost says so).
#pragma once

#include <cstdint>
#include <vector>

#include "txn/read_path.h"

namespace gannet::txn {

enum class ReadPath : uint8_t { kOneSided, kCall };

struct PathStatistics {
  uint64_t one_sided = 0;
  uint64_t calls = 0;
};

// Not thread-safe: one per session.
class PathChooser {
 public:
  // The other path is tried once in this many choices.
  static constexpr uint32_t kExploreEvery = 256;

  void Resize(size_t places, ReadPathPolicy policy) {
    places_.resize(places);
    policy_ = policy;
  }

  ReadPath Choose(size_t place) {
    if (policy_ != ReadPathPolicy::kAdaptive) {
      return policy_ == ReadPathPolicy::kCall ? ReadPath::kCall : ReadPath::kOneSided;
    }
    Place& p = places_[place];
    ++p.choices;
    const ReadPath best = Best(p);
    if (p.choices % kExploreEvery != 0) return best;
    return best == ReadPath::kCall ? ReadPath::kOneSided : ReadPath::kCall;
  }

  void Record(size_t place, ReadPath path, uint64_t cost_ns) {
    Place& p = places_[place];
    double& average = p.cost_ns[static_cast<int>(path)];
    const double cost = static_cast<double>(cost_ns);
    // The other path is measured rarely, so each measurement must count for more.
    const bool preferred = path == Best(p);
    average = average == 0 ? cost : average + (cost - average) / (preferred ? 16 : 2);
    ++(path == ReadPath::kCall ? statistics_.calls : statistics_.one_sided);
  }

  const PathStatistics& statistics() const { return statistics_; }

 private:
  struct Place {
    double cost_ns[2] = {0, 0};  // by ReadPath; 0: never taken
    uint32_t choices = 0;
  };

  static ReadPath Best(const Place& p) {
    const bool call_is_cheaper = p.cost_ns[1] != 0 && p.cost_ns[1] < p.cost_ns[0];
    return call_is_cheaper ? ReadPath::kCall : ReadPath::kOneSided;
  }

  std::vector<Place> places_;
  ReadPathPolicy policy_ = ReadPathPolicy::kAdaptive;
  PathStatistics statistics_;
};

}  // namespace gannet::txn
