// The manifest as text.
#pragma once

#include <string>
#include <string_view>

#include "log/checkpoint.h"
#include "rdma/base/status.h"

namespace gannet::log {

std::string ManifestToJson(const Manifest& manifest);
// Of any text. DataLoss: not a manifest. InvalidArgument: of a newer version. Names that it does not know are ignored.
StatusOr<Manifest> ManifestFromJson(std::string_view text);

}  // namespace gannet::log
