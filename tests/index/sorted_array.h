// A kind of index that only tests know: a sorted array in one block. It shows what a new kind takes: this folder's
// file, an entry in the registry, and a line in the list of conformance tests.
#pragma once

#include "index/index.h"
#include "index/registry.h"
#include "index/service.h"

namespace gannet::index {

// Added to the registry by the first call, which comes before other threads use the registry.
IndexKind SortedArrayKind();

}  // namespace gannet::index
