// DataSet: the rectangles that a spatial experiment loads, and the windows that its clients search, as in the
// evaluation of Catfish (TSAS'22, section 5). The space is the unit square.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "index/rectangle.h"

namespace gannet::experiments {

// The upper bound of a window's edges. It is `most`, or, if `least` is positive, drawn for each window from a power law
// with exponent -0.99 between the two.
struct WindowScale {
  double most = 0;
  double least = 0;
};

enum class DataKind : uint8_t {
  kUniform,  // places and edges are uniform (5.2)
  // Segments of streets: regions with towns of different density, whose streets are mostly parallel to an axis. This
  // replaces rea02, the streets of California (5.4), with its order of inserts: region by region, and in each from
  // north to south and from west to east.
  kRoads,
};
inline constexpr std::string_view kDataNames[] = {"uniform", "roads"};

struct DataOptions {
  DataKind kind = DataKind::kUniform;
  uint64_t rectangles = 1'000'000;
  double most_edge = 1e-4;  // of the loaded rectangles, for kUniform
  WindowScale windows;      // for kUniform. Those of kRoads meet 50 to 150 rectangles, except at the border of a town
  uint64_t seed = 1;
};

// Immutable after its construction.
class DataSet {
 public:
  explicit DataSet(const DataOptions& options);

  // Calls add(box, id) for the rectangles in the order of their inserts, until it fails. Ids count from 0.
  Status ForEach(const std::function<Status(const index::Rectangle& box, uint64_t id)>& add) const;

  index::Rectangle DrawWindow(Random& random) const;
  // A rectangle to insert: as large as a window. Its place follows a power law, away from the centre (5.2.1).
  index::Rectangle DrawInsert(Random& random) const;

 private:
  // A square full of streets.
  struct Town {
    index::Rectangle square;
    uint64_t segments = 0;
  };
  struct Region {
    std::vector<Town> towns;
  };

  void PlanRoads();
  Status ForEachSegment(const std::function<Status(const index::Rectangle& box, uint64_t id)>& add) const;
  // The upper bound of the edges of one window.
  double DrawScale(Random& random) const;

  const DataOptions options_;
  std::vector<Region> regions_;
};

}  // namespace gannet::experiments
