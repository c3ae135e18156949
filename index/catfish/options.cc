// The options of a catfish index as text, as tables and manifests have them.
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "index/catfish/catfish.h"

namespace gannet::index {
namespace {

constexpr std::array<absl::string_view, 3> kVariants = {"guttman", "rstar", "hilbert"};

Status Wrong(absl::string_view value, absl::string_view name, absl::string_view valid) {
  return absl::InvalidArgumentError(absl::StrCat("'", value, "' is no ", name, " of a catfish index: ", valid));
}

Status ReadVariant(absl::string_view value, CatfishVariant* variant) {
  for (size_t i = 0; i < kVariants.size(); ++i) {
    if (value != kVariants[i]) continue;
    *variant = static_cast<CatfishVariant>(i);
    return absl::OkStatus();
  }
  return Wrong(value, "variant", "choose guttman, rstar or hilbert");
}

Status ReadNodeEntries(absl::string_view value, uint32_t* node_entries) {
  if (absl::SimpleAtoi(value, node_entries) && *node_entries >= kMinCatfishNodeEntries &&
      *node_entries <= kMaxCatfishNodeEntries) {
    return absl::OkStatus();
  }
  return Wrong(value, "node_entries",
               absl::StrCat("choose a number from ", kMinCatfishNodeEntries, " to ", kMaxCatfishNodeEntries));
}

Status ReadOffloading(absl::string_view value, uint32_t* offloading) {
  if (absl::SimpleAtoi(value, offloading)) return absl::OkStatus();
  return Wrong(value, "offloading", "choose a number of searches, or 0 for no limit");
}

Status ReadWorld(absl::string_view value, std::optional<Rectangle>* world) {
  const std::vector<absl::string_view> parts = absl::StrSplit(value, ':');
  Rectangle box;
  const std::array<double*, 4> numbers = {&box.min_x, &box.min_y, &box.max_x, &box.max_y};
  bool good = parts.size() == numbers.size();
  for (size_t i = 0; good && i < numbers.size(); ++i) good = absl::SimpleAtod(parts[i], numbers[i]);
  if (!good) return Wrong(value, "world", "write it as min_x:min_y:max_x:max_y, four numbers");
  GANNET_RETURN_IF_ERROR(CheckRectangle(box));
  *world = box;
  return absl::OkStatus();
}

}  // namespace

std::string ToText(const CatfishOptions& options) {
  std::string text = absl::StrCat("variant=", kVariants[static_cast<size_t>(options.variant)],
                                  ",node_entries=", options.node_entries, ",offloading=", options.offloading);
  if (options.world.has_value()) {
    const Rectangle& world = *options.world;
    // 17 digits give every double back.
    absl::StrAppendFormat(&text, ",world=%.17g:%.17g:%.17g:%.17g", world.min_x, world.min_y, world.max_x, world.max_y);
  }
  return text;
}

StatusOr<CatfishOptions> CatfishOptionsOf(std::string_view text) {
  CatfishOptions options;
  for (const absl::string_view item :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> option = absl::StrSplit(item, absl::MaxSplits('=', 1));
    if (option.first == "variant") {
      GANNET_RETURN_IF_ERROR(ReadVariant(option.second, &options.variant));
    } else if (option.first == "node_entries") {
      GANNET_RETURN_IF_ERROR(ReadNodeEntries(option.second, &options.node_entries));
    } else if (option.first == "offloading") {
      GANNET_RETURN_IF_ERROR(ReadOffloading(option.second, &options.offloading));
    } else if (option.first == "world") {
      GANNET_RETURN_IF_ERROR(ReadWorld(option.second, &options.world));
    } else {
      return Wrong(option.first, "option", "there are variant, node_entries, offloading and world");
    }
  }
  return options;
}

}  // namespace gannet::index
