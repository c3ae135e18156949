#include "lab/scenario/crash/workload.h"

namespace gannet::scenario::crash {

std::unique_ptr<Workload> Workload::Make(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe) {
  switch (options.workload) {
    case WorkloadKind::kBank:
      return MakeBankWorkload(options, pipe);
    case WorkloadKind::kTpcc:
      return MakeTpccWorkload(options, cycle, pipe);
    case WorkloadKind::kAppend:
      return MakeAppendWorkload(options, cycle, pipe);
    case WorkloadKind::kLoad:
      return MakeLoadWorkload(options, cycle, pipe);
    case WorkloadKind::kKv:
    case WorkloadKind::kRectangles:
      break;
  }
  return MakeKvWorkload(options, pipe);
}

uint64_t KeysIn(std::span<txn::Database* const> databases) {
  uint64_t keys = 0;
  for (txn::Database* database : databases) {
    for (const txn::TableStatistics& table : database->table_statistics()) keys += table.index.keys;
  }
  return keys;
}

}  // namespace gannet::scenario::crash
