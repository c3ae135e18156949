// The options of a ROLEX index as text, as tables and manifests have them.
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "index/rolex/rolex.h"

namespace gannet::index {

std::string ToText(const RolexOptions& options) {
  return absl::StrCat("epsilon=", options.epsilon);
}

StatusOr<RolexOptions> RolexOptionsOf(std::string_view text) {
  RolexOptions options;
  for (const absl::string_view item :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> option = absl::StrSplit(item, absl::MaxSplits('=', 1));
    if (option.first != "epsilon") {
      return absl::InvalidArgumentError(
          absl::StrCat("'", option.first, "' is no option of a rolex index: there is epsilon"));
    }
    if (!absl::SimpleAtoi(option.second, &options.epsilon) || options.epsilon < 1 ||
        options.epsilon > kMaxRolexEpsilon) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", option.second, "' is no epsilon of a rolex index: choose a number from 1 to ", kMaxRolexEpsilon));
    }
  }
  return options;
}

}  // namespace gannet::index
