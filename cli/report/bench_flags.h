// The flags that `gannet tpcc` and `gannet ycsb` share, and what their marks mean.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "cli/common/flags.h"
#include "index/types.h"

namespace gannet::cli {

// The flag says something that a cluster file says: it cannot be given with --cluster.
inline constexpr Marks kOfServers = 1;
// Only servers in this process can do what the flag says, and a cluster file has no place for it: it cannot be given
// with --cluster.
inline constexpr Marks kOfOneProcess = 8;
// The flag says how data is kept: it needs --dir.
inline constexpr Marks kOfDirectory = 2;
// The report has the flag's value in its part about durability, in the place of the configuration.
inline constexpr Marks kWithDurability = 4;

// `what` tells what the file says and what is the default.
void AddClusterFlags(Flags* flags, std::string* cluster, std::optional<absl::Duration>* wait, const std::string& what);

// `by_verbs` tells how clients change an index, `otherwise` where else the default comes from.
Flag& AddIndexRights(Flags* flags, std::optional<index::IndexRights>* rights, const std::string& by_verbs,
                     const std::string& otherwise);

Flag& AddSeed(Flags* flags, uint64_t* seed);

// `what` ends and is counted in an interval, `otherwise` is the default.
template <class T>
Flag& AddInterval(Flags* flags, T* interval, absl::Duration least, const std::string& what,
                  const std::string& otherwise) {
  return flags->Add(
      "--interval", "interval_seconds", interval, form::Time(least),
      absl::StrCat("Time between two lines of progress, with throughput and latencies (p50/p95/p99) of each ", what,
                   ", on\nstandard error; and between two points of the time series in --json. Default: ", otherwise));
}

}  // namespace gannet::cli
