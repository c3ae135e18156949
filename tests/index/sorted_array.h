// An index kind that exists only in tests: a sorted array in one block. It shows what a new kind requires: its source
// file, an entry in the registry, and a line in the list of conformance tests.
#pragma once

#include "index/index.h"
#include "index/registry.h"
#include "index/service.h"

namespace gannet::index {

// The first call adds it to the registry. It must come before other threads use the registry.
IndexKind SortedArrayKind();

}  // namespace gannet::index
