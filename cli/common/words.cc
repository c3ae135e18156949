#include "cli/common/words.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"

namespace gannet::cli {

StatusOr<std::vector<std::string>> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && absl::ascii_isspace(static_cast<unsigned char>(c))) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote != 0 ? 0 : c;
    } else if (c == '\\' && i + 1 < line.size()) {
      const char next = line[++i];
      if (quote == 0 || next != quote) words.back() += c;
      words.back() += next;
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) {
    return absl::InvalidArgumentError(std::string("the quote ") + quote + " is not closed; write it \\" + quote +
                                      " in a word in quotes");
  }
  return words;
}

// The three last rows of the table of distances between the beginnings of both words.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string Nearest(std::string_view word, const std::vector<std::string>& choices) {
  std::string nearest;
  size_t least = SIZE_MAX;
  for (const std::string& choice : choices) {
    const size_t distance = EditDistance(word, choice);
    // A third of the word, so that "x" was not meant to be "ls".
    if (distance < least && distance <= std::max(word.size(), choice.size()) / 3) {
      least = distance;
      nearest = choice;
    }
  }
  return nearest;
}

}  // namespace gannet::cli
