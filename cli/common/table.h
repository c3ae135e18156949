// Text tables: the first column is left-aligned, the others right-aligned, each as wide as its widest cell.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace gannet::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  // Adds a row, which has as many cells as the header.
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Adds the row unless all its numbers are zero: the cells behind the first have no digit but 0.
  void AddUnlessZero(std::vector<std::string> row);
  bool empty() const { return rows_.size() == 1; }
  // One line per row, each ended by a newline. A table that is wider than `width` continues below itself: columns that
  // do not fit come in another block, with the first column again.
  std::string ToString(int width = std::numeric_limits<int>::max()) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Breaks each line that is longer than `width` at blanks. What continues a line is indented two columns more than it.
std::string Wrap(std::string_view text, int width);

// "1 batch", "7 batches": for words that take more than an s (Count of base/quantity.h adds one).
std::string CountOf(uint64_t number, std::string_view one, std::string_view many);

}  // namespace gannet::cli
