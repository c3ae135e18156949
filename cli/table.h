// Text tables: the first column is left-aligned, the others right-aligned, each as wide as its widest cell.
#pragma once

#include <string>
#include <vector>

namespace gannet::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  // As many cells as the header has.
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // One line per row, each ended by a newline.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gannet::cli
