// The options of a Dolphin index as text, as tables and manifests have them.
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "index/dolphin/dolphin.h"

namespace gannet::index {

std::string ToText(const DolphinOptions& options) {
  return absl::StrCat("key_lines=", options.key_lines);
}

StatusOr<DolphinOptions> DolphinOptionsOf(std::string_view text) {
  DolphinOptions options;
  for (const absl::string_view item :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> option = absl::StrSplit(item, absl::MaxSplits('=', 1));
    if (option.first != "key_lines") {
      return absl::InvalidArgumentError(
          absl::StrCat("'", option.first, "' is no option of a dolphin index: there is key_lines"));
    }
    if (!absl::SimpleAtoi(option.second, &options.key_lines) || options.key_lines < 1 ||
        options.key_lines > dolphin::kMostKeyLines) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", option.second, "' is no number of key lines of a dolphin index: choose one from 1 to ",
                       dolphin::kMostKeyLines));
    }
  }
  return options;
}

}  // namespace gannet::index
