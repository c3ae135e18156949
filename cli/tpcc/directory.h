// The information about TPC-C in the manifest of a data directory.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "index/registry.h"

namespace gannet::cli {

struct TpccDirectory {
  int nodes = 0;  // 0: there is no database yet, and one may be created
  int warehouses = 0;
  uint64_t seed = 0;  // of the population
  index::IndexKind ordered_index = index::IndexKind::kXStore;
  index::IndexRights index_rights = index::IndexRights::kOwnerOnly;  // of the ordered tables
  bool loaded = false;  // false: a load that was not finished left tables without rows
};

// Reads the directory without opening the database. If it contains anything but TPC-C data, returns an error whose text
// follows the directory's name.
StatusOr<TpccDirectory> LookIntoTpccDirectory(const std::string& directory);

// The manifest's note.
std::string TpccApplication(int warehouses, uint64_t seed, index::IndexKind ordered_index,
                            index::IndexRights index_rights);

}  // namespace gannet::cli
