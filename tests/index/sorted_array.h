// An index kind that exists only in tests: a sorted array in one block, with several version words. It shows what a new
// kind requires: its source file, an entry in the registry, and a line in the list of conformance tests.
#pragma once

#include <functional>

#include "index/index.h"
#include "index/registry.h"
#include "index/service.h"

namespace gannet::index {

// The first call adds it to the registry. It must come before other threads use the registry.
IndexKind SortedArrayKind();

// Calls `act` after the next insert into a sorted array of this process, before the array returns: in the middle of the
// commit that inserts.
void ActAfterNextInsert(std::function<void()> act);

}  // namespace gannet::index
