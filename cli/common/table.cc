#include "cli/common/table.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/quantity.h"

namespace gannet::cli {
namespace {

constexpr size_t kGap = 2;

// Appends `line`, which is too long, in several lines.
void WrapLine(std::string_view line, size_t width, std::string* text) {
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::string further(std::min(indent + 2, width / 2), ' ');
  std::string begun(line.substr(0, indent));
  bool has_word = false;
  for (const absl::string_view word : absl::StrSplit(absl::string_view(line.data(), line.size()).substr(indent), ' ')) {
    if (has_word && begun.size() + 1 + word.size() > width) {
      begun.erase(begun.find_last_not_of(' ') + 1);
      absl::StrAppend(text, begun, "\n");
      begun = further;
      has_word = false;
    }
    if (!has_word && word.empty()) continue;  // blanks between words that a break has parted
    absl::StrAppend(&begun, has_word ? " " : "", word);
    has_word = true;
  }
  absl::StrAppend(text, begun);
}

}  // namespace

void Table::AddUnlessZero(std::vector<std::string> row) {
  const auto is_zero = [](const std::string& cell) { return cell.find_first_of("123456789") == std::string::npos; };
  if (!std::all_of(row.begin() + 1, row.end(), is_zero)) Add(std::move(row));
}

std::string Table::ToString(int width) const {
  std::vector<size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (size_t first = 1, end = 1; end < widths.size() || end == 1; first = end) {
    size_t block = widths[0];
    // A column that is too wide on its own gets a block, too.
    while (end < widths.size() && (end == first || block + kGap + widths[end] <= static_cast<size_t>(width))) {
      block += kGap + widths[end++];
    }
    for (const auto& row : rows_) {
      text += row[0] + std::string(widths[0] - row[0].size(), ' ');
      for (size_t i = first; i < end; ++i) text += std::string(widths[i] - row[i].size() + kGap, ' ') + row[i];
      text += '\n';
    }
    if (widths.size() == 1) break;
  }
  return text;
}

std::string Wrap(std::string_view text, int width) {
  std::string wrapped;
  bool first = true;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    if (!first) wrapped += '\n';
    first = false;
    if (line.size() <= static_cast<size_t>(width)) {
      absl::StrAppend(&wrapped, line);
    } else {
      WrapLine({line.data(), line.size()}, static_cast<size_t>(width), &wrapped);
    }
  }
  return wrapped;
}

std::string CountOf(uint64_t number, std::string_view one, std::string_view many) {
  return WithCommas(number) + " " + std::string(number == 1 ? one : many);
}

}  // namespace gannet::cli
