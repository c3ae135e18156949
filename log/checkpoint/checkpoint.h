// Checkpoints of a data directory. DIR/checkpoint-<id>/ has one or more files per table: blocks of records, each with a
// CRC32C.
//
// A checkpoint is fuzzy: it is written while a workload runs and holds, for every record, some version that was
// committed between its begin epoch and its end epoch. With the log from its first segment on, it can restore every
// epoch from its end epoch on. It enters the manifest when it is complete, synced and read back (verified), and when
// the log is durable up to its end epoch. Only then the checkpoint before the previous one is removed, with the log
// segments that neither of the remaining two needs.
//
// The files: checkpoint_format.h, docs/log_format.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "log/file/file_system.h"
#include "log/format/identity.h"
#include "log/manifest/manifest.h"

namespace gannet::log {

struct CheckpointRecord {
  uint16_t table = 0;
  uint64_t epoch = 0;  // of its last change; 0 if unknown
  uint64_t version = 0;
  std::span<const std::byte> key;  // as in the log
  std::span<const std::byte> payload;
};

// Writes one checkpoint's files. One thread. Unusable after an error.
class CheckpointWriter {
 public:
  static constexpr size_t kBlockBytes = size_t{1} << 20;  // a larger record gets a larger block of its own
  // A table is split into files of about this size, so that recovery can read them in parallel.
  static constexpr uint64_t kFileBytes = uint64_t{64} << 20;

  // Creates the checkpoint's directory. If an interrupted checkpoint left one, that is removed first.
  // `bytes_per_second` 0: as fast as the disk takes it. `database`: of the manifest. `files` must outlive it.
  static StatusOr<std::unique_ptr<CheckpointWriter>> Create(FileSystem* files, const std::string& directory,
                                                            const Identity& database, uint64_t id,
                                                            uint64_t bytes_per_second);
  ~CheckpointWriter();
  // Add each record of a table between its BeginTable and the next one. Records of ordered tables come in key order.
  Status BeginTable(uint16_t table);
  Status Add(const CheckpointRecord& record);
  // Syncs, then reads everything back and checks it. Fills in `id` and `files` of the description. `go_on` is asked
  // before each file; its error ends this.
  Status Finish(
      CheckpointDescription* description, absl::FunctionRef<Status()> go_on = [] { return Status(); });

 private:
  class Output;  // the file that is being written

  CheckpointWriter(FileSystem* files, std::string directory, const Identity& database, uint64_t id,
                   uint64_t bytes_per_second);
  Status BeginFile();
  Status EndFile();
  Status WriteBlock();
  void Throttle(uint64_t bytes);

  FileSystem* const files_;
  const std::string directory_;  // the data directory
  const Identity database_;
  const uint64_t id_;
  const uint64_t bytes_per_second_;
  uint64_t start_nanos_;
  uint64_t written_bytes_ = 0;
  uint16_t table_ = 0;
  uint32_t part_ = 0;               // of the table's files
  std::unique_ptr<Output> output_;  // null: the table has no record yet
  std::vector<CheckpointFile> done_;
};

// Takes some records at a time, so that their lookups can overlap. The views are valid during the call.
using CheckpointVisitor = std::function<Status(std::span<const CheckpointRecord>)>;

// Calls `visit`, which may be null, with the records of one file in the order written. Several threads may read several
// files at once. DataLoss names file and offset; discard the records visited until then. A file of another database
// than `database`, that of the manifest, is damaged at offset 0, and none of its records is visited. If `damaged` is
// not null, damaged blocks are left out, and it is called with them at the end.
Status ReadCheckpointFile(FileSystem& files, const std::string& directory, const Identity& database, uint64_t id,
                          const CheckpointFile& file, const CheckpointVisitor& visit,
                          const std::function<void(uint64_t offset, const std::string& what)>& damaged);

// Removes checkpoint directories, and files in checkpoint directories, that the manifest does not name, and a manifest
// that was never finished.
Status RemoveStrayCheckpoints(FileSystem& files, const std::string& directory, const Manifest& manifest);
// Ok if it does not exist.
Status RemoveCheckpoint(FileSystem& files, const std::string& directory, uint64_t id);
// The name is that of a checkpoint in its data directory. All others are none of ours.
bool IsCheckpointName(std::string_view name);
std::string CheckpointDirectory(const std::string& directory, uint64_t id);

}  // namespace gannet::log
