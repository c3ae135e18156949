// What the manifest of a data directory says about TPC-C.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace gannet::cli {

struct TpccDirectory {
  int nodes = 0;  // 0: there is no database yet, and one may be created
  int warehouses = 0;
  uint64_t seed = 0;    // of the population
  bool loaded = false;  // false: a load that did not finish left tables without rows
};

// Looks without opening the database. An error, in words that go after the directory's name, if there is something
// there that is not TPC-C data.
StatusOr<TpccDirectory> LookIntoTpccDirectory(const std::string& directory);

// The manifest's note.
std::string TpccApplication(int warehouses, uint64_t seed);

}  // namespace gannet::cli
