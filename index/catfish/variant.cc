#include "index/catfish/variant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace gannet::index::catfish {
namespace {

constexpr double kWorst = std::numeric_limits<double>::infinity();

// The entry with the least cost. `cost` gives values that compare, the smaller the better.
template <class Cost>
size_t Cheapest(size_t entries, Cost cost) {
  size_t best = 0;
  auto least = cost(size_t{0});
  for (size_t i = 1; i < entries; ++i) {
    const auto now = cost(i);
    if (now < least) {
      least = now;
      best = i;
    }
  }
  return best;
}

// Guttman's choice: least enlargement, then least area.
size_t LeastEnlargement(std::span<const Entry> entries, const Rectangle& box) {
  return Cheapest(entries.size(),
                  [&](size_t i) { return std::pair(entries[i].box.Enlargement(box), entries[i].box.Area()); });
}

// Growth of the area that entry `i` shares with the others, if it takes `box`.
double OverlapGrowth(std::span<const Entry> entries, size_t i, const Rectangle& box) {
  const Rectangle& before = entries[i].box;
  const Rectangle after = before.Union(box);
  double growth = 0;
  for (size_t other = 0; other < entries.size(); ++other) {
    if (other != i) growth += after.Overlap(entries[other].box) - before.Overlap(entries[other].box);
  }
  return growth;
}

// The R*-tree's choice among leaves: least growth of overlap, then least enlargement, then least area. It takes time
// quadratic in the number of candidates, so of many entries only the 32 with the least enlargement are candidates, as
// in the R*-tree's paper (4.1).
size_t LeastOverlap(std::span<const Entry> entries, const Rectangle& box) {
  constexpr size_t kMostCandidates = 32;
  struct Candidate {
    double enlargement;
    double area;
    size_t entry;
  };
  std::vector<Candidate> candidates;
  candidates.reserve(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    candidates.push_back({entries[i].box.Enlargement(box), entries[i].box.Area(), i});
  }
  // An entry that contains the box costs nothing: no overlap grows.
  size_t containing = entries.size();
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].box.Contains(box)) continue;
    if (containing == entries.size() || candidates[i].area < candidates[containing].area) containing = i;
  }
  if (containing < entries.size()) return containing;
  if (candidates.size() > kMostCandidates) {
    std::nth_element(candidates.begin(), candidates.begin() + kMostCandidates, candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.enlargement < b.enlargement; });
    candidates.resize(kMostCandidates);
  }
  return candidates[Cheapest(candidates.size(),
                             [&](size_t i) {
                               const Candidate& c = candidates[i];
                               return std::tuple(OverlapGrowth(entries, c.entry, box), c.enlargement, c.area);
                             })]
      .entry;
}

// The first child in Hilbert order that reaches up to `position`, else the last one.
size_t ByPosition(std::span<const Entry> entries, uint64_t position) {
  return Cheapest(entries.size(), [&](size_t i) {
    const bool below = entries[i].id < position;
    return std::pair(below, below ? UINT64_MAX - entries[i].id : entries[i].id);
  });
}

// Keeps the first `keep` entries, and returns the others.
std::vector<Entry> CutOff(std::vector<Entry>* entries, size_t keep) {
  std::vector<Entry> rest(entries->begin() + static_cast<ptrdiff_t>(keep), entries->end());
  entries->resize(keep);
  return rest;
}

// The two entries that would waste most area in one node.
std::pair<size_t, size_t> PickSeeds(const std::vector<Entry>& entries) {
  std::pair<size_t, size_t> seeds{0, 1};
  double most = -kWorst;
  for (size_t i = 0; i < entries.size(); ++i) {
    for (size_t j = i + 1; j < entries.size(); ++j) {
      const Rectangle& a = entries[i].box;
      const Rectangle& b = entries[j].box;
      const double waste = a.Union(b).Area() - a.Area() - b.Area();
      if (waste > most) {
        most = waste;
        seeds = {i, j};
      }
    }
  }
  return seeds;
}

// Guttman's quadratic split (3.5.2).
std::vector<Entry> QuadraticSplit(std::vector<Entry>* entries, size_t least) {
  const auto [first, second] = PickSeeds(*entries);
  struct Group {
    std::vector<Entry> entries;
    Rectangle box;
    void Take(const Entry& entry) {
      box = entries.empty() ? entry.box : box.Union(entry.box);
      entries.push_back(entry);
    }
  };
  Group groups[2];
  groups[0].Take((*entries)[first]);
  groups[1].Take((*entries)[second]);
  std::vector<Entry> left = std::move(*entries);
  left.erase(left.begin() + static_cast<ptrdiff_t>(second));  // the greater index first
  left.erase(left.begin() + static_cast<ptrdiff_t>(first));
  while (!left.empty()) {
    // A group that needs all that is left gets it.
    const auto needy =
        std::ranges::find_if(groups, [&](const Group& group) { return group.entries.size() + left.size() <= least; });
    if (needy != std::end(groups)) {
      for (const Entry& entry : left) needy->Take(entry);
      break;
    }
    // Next comes the entry that prefers one of the groups most.
    const size_t next = Cheapest(left.size(), [&](size_t i) {
      return -std::abs(groups[0].box.Enlargement(left[i].box) - groups[1].box.Enlargement(left[i].box));
    });
    const Rectangle& box = left[next].box;
    const auto cost = [&](const Group& group) {
      return std::tuple(group.box.Enlargement(box), group.box.Area(), group.entries.size());
    };
    groups[cost(groups[1]) < cost(groups[0]) ? 1 : 0].Take(left[next]);
    left[next] = left.back();
    left.pop_back();
  }
  *entries = std::move(groups[0].entries);
  return std::move(groups[1].entries);
}

// The ways to cut a sorted list of entries in two: boxes of the first i and of the rest.
struct Cuts {
  explicit Cuts(const std::vector<Entry>& entries) : first(entries.size() + 1), rest(entries.size() + 1) {
    for (size_t i = 0; i < entries.size(); ++i) {
      first[i + 1] = i == 0 ? entries[i].box : first[i].Union(entries[i].box);
    }
    for (size_t i = entries.size(); i-- > 0;) {
      rest[i] = i + 1 == entries.size() ? entries[i].box : rest[i + 1].Union(entries[i].box);
    }
  }
  std::vector<Rectangle> first;  // [i]: of the first i entries
  std::vector<Rectangle> rest;   // [i]: of the entries from i on
};

// The R*-tree's split (4.2): the axis along which the cuts have the least margins, then the cut with the least overlap,
// then the least area.
std::vector<Entry> RStarSplit(std::vector<Entry>* entries, size_t least) {
  using Order = bool (*)(const Entry&, const Entry&);
  static constexpr Order kOrders[2][2] = {
      {[](const Entry& a, const Entry& b) {
         return std::tie(a.box.min_x, a.box.max_x) < std::tie(b.box.min_x, b.box.max_x);
       },
       [](const Entry& a, const Entry& b) {
         return std::tie(a.box.max_x, a.box.min_x) < std::tie(b.box.max_x, b.box.min_x);
       }},
      {[](const Entry& a, const Entry& b) {
         return std::tie(a.box.min_y, a.box.max_y) < std::tie(b.box.min_y, b.box.max_y);
       },
       [](const Entry& a, const Entry& b) {
         return std::tie(a.box.max_y, a.box.min_y) < std::tie(b.box.max_y, b.box.min_y);
       }}};
  const size_t last = entries->size() - least;
  std::vector<Entry> best;
  size_t keep = 0;
  double best_margin = kWorst;
  for (const auto& axis : kOrders) {
    double margin = 0;
    std::vector<Entry> best_of_axis;
    size_t keep_of_axis = 0;
    std::pair<double, double> best_cost{kWorst, kWorst};
    for (const Order order : axis) {
      std::vector<Entry> sorted = *entries;
      std::ranges::sort(sorted, order);
      const Cuts cuts(sorted);
      bool better = false;
      for (size_t i = least; i <= last; ++i) {
        margin += cuts.first[i].Margin() + cuts.rest[i].Margin();
        const std::pair cost(cuts.first[i].Overlap(cuts.rest[i]), cuts.first[i].Area() + cuts.rest[i].Area());
        if (cost < best_cost) {
          best_cost = cost;
          keep_of_axis = i;
          better = true;
        }
      }
      if (better) best_of_axis = std::move(sorted);
    }
    if (margin < best_margin) {
      best_margin = margin;
      best = std::move(best_of_axis);
      keep = keep_of_axis;
    }
  }
  *entries = std::move(best);
  return CutOff(entries, keep);
}

}  // namespace

size_t ChooseChild(const Shape& shape, std::span<const Entry> entries, int level, const Rectangle& box,
                   uint64_t position) {
  switch (shape.variant) {
    case CatfishVariant::kGuttman:
      return LeastEnlargement(entries, box);
    case CatfishVariant::kRStar:
      return level == 1 ? LeastOverlap(entries, box) : LeastEnlargement(entries, box);
    case CatfishVariant::kHilbert:
      return ByPosition(entries, position);
  }
  return 0;
}

void SortByPosition(const Shape& shape, std::vector<Entry>* entries, int level) {
  std::vector<std::pair<uint64_t, Entry>> placed;
  placed.reserve(entries->size());
  for (const Entry& entry : *entries) placed.emplace_back(shape.PositionOf(entry, level), entry);
  std::ranges::stable_sort(placed, {}, &std::pair<uint64_t, Entry>::first);
  for (size_t i = 0; i < placed.size(); ++i) (*entries)[i] = placed[i].second;
}

std::vector<Entry> Split(const Shape& shape, std::vector<Entry>* entries, int level) {
  switch (shape.variant) {
    case CatfishVariant::kGuttman:
      return QuadraticSplit(entries, shape.least);
    case CatfishVariant::kRStar:
      return RStarSplit(entries, shape.least);
    case CatfishVariant::kHilbert:
      break;
  }
  SortByPosition(shape, entries, level);
  return CutOff(entries, (entries->size() + 1) / 2);
}

std::vector<Entry> TakeFarthest(std::vector<Entry>* entries) {
  const Rectangle all = BoxOf(*entries);
  const auto distance = [&](const Entry& entry) {
    const double dx = entry.box.CenterX() - all.CenterX();
    const double dy = entry.box.CenterY() - all.CenterY();
    return dx * dx + dy * dy;
  };
  std::ranges::stable_sort(*entries, {}, distance);
  const size_t taken = std::max<size_t>(1, (entries->size() - 1) * 3 / 10);
  return CutOff(entries, entries->size() - taken);
}

}  // namespace gannet::index::catfish
