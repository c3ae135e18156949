// LiveLines: what a benchmark prints while it runs, one line per interval, below a header that names the columns:
//
//       time  transactions/s          new_order            payment  (p50/p95/p99 in us)
//      0.5 s          60,841     11.3/17.5/38.7        3.2/5.2/8.1
//
// The header comes first, again after every 20 lines, and when a kind of operation appears for the first time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/report.h"

namespace gannet::cli {

class LiveLines {
 public:
  // A column of its own, such as {"transactions/s", "351,099"}.
  struct Rate {
    std::string_view name;
    std::string value;
  };

  // `kinds`: names of Interval::kinds. `width`: columns of the terminal. In a narrow one latencies of 10 us and more
  // have no fraction, then only the first rate is shown, then only the first kinds, and the header says so. None: no
  // limit.
  LiveLines(std::vector<std::string> kinds, std::optional<int> width);

  // The lines to print for an interval, each ended by a newline. `rates` are always of the same columns.
  std::string Next(const std::vector<Rate>& rates, const bench::Interval& interval);

 private:
  // How much fits beside each other.
  struct Form {
    size_t rates = 0;  // the first so many
    bool short_latencies = false;
    size_t KindWidth(const std::string& name) const;
  };

  size_t WidthOf(const Form& form, const std::vector<Rate>& rates) const;
  std::string Header(const std::vector<Rate>& rates);

  const std::vector<std::string> names_;
  const std::optional<int> width_;
  std::vector<bool> seen_;  // by kind: it had an operation
  Form form_;
  std::vector<size_t> shown_;  // kinds that have a column
  int until_header_ = 0;       // lines
  int digits_ = 0;             // of times; 0: not known yet
  std::optional<bool> warming_up_;
};

}  // namespace gannet::cli
