// Named places at which a crash test may kill the process. Outside such a test a place costs one load of a word that
// never changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/runtime.h"
#include "base/status.h"

namespace gannet::log {

// All places; kill_point.cc has their names in the same order.
enum class KillPoint : uint8_t {
  kCommitLocked,     // before the redo is appended
  kCommitAppended,   // after, before the install
  kCommitInstalled,  // before the worker leaves its slot
  kBatchCollected,   // log thread: the epoch is drained, nothing is written
  kBatchWritten,     // durable, but no waiter has been told
  kSegmentCreated,   // preallocated, or taken for reuse; no header
  kSegmentGrown,     // made longer, no header
  kSegmentBegun,     // header durable
  kSegmentRemoved,   // one of several
  kLogEndNoted,      // LOG-END is written, nothing relies on it yet
  kManifestWritten,  // the temporary file, not renamed
  kManifestRenamed,  // before the directory is synced
  kCheckpointBegun,
  kCheckpointTable,      // after each table
  kCheckpointFinished,   // files synced, not in the manifest
  kCheckpointPublished,  // in the manifest, old one not removed
  kRecoveryRead,         // log and checkpoint read, no new run
  kRecoveryLoaded,       // records are in memory, before the first new segment
  kCount,
};

std::string_view KillPointName(KillPoint point);
std::vector<std::string_view> KillPointNames();

// Makes the process kill itself (SIGKILL) at the `count`-th passage of `name`, counted from 1. InvalidArgument: no such
// name; the message lists the names.
Status ArmKillPoint(std::string_view name, uint64_t count);

namespace internal {
extern std::atomic<int> armed_point;  // -1: none
void Passed(KillPoint point);
}  // namespace internal

inline void MayDieHere(KillPoint point) {
  if (Runtime* runtime = Runtime::Current()) [[unlikely]]
    runtime->Passed(static_cast<int>(point));
  if (internal::armed_point.load(std::memory_order_relaxed) == static_cast<int>(point)) [[unlikely]]
    internal::Passed(point);
}

}  // namespace gannet::log
