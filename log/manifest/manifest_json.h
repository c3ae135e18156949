// The manifest as text.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "log/manifest/manifest.h"

namespace gannet::log {

std::string ManifestToJson(const Manifest& manifest);
// Accepts any text. DataLoss: not a manifest. InvalidArgument: a newer version. Unknown names are ignored.
StatusOr<Manifest> ManifestFromJson(std::string_view text);

}  // namespace gannet::log
