// The manifest as text.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "log/checkpoint.h"

namespace gannet::log {

std::string ManifestToJson(const Manifest& manifest);
// Of any text. DataLoss: not a manifest. InvalidArgument: of a newer version. Names that it does not know are ignored.
StatusOr<Manifest> ManifestFromJson(std::string_view text);

}  // namespace gannet::log
