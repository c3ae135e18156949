// Checkpoints and the manifest of a data directory.
//
//   DIR/MANIFEST            JSON with a checksum: format version, database, node, tables, checkpoints (newest first, at
//                           most two)
//   DIR/log-...             segments (format.h)
//   DIR/checkpoint-<id>/    one or more files per table: blocks of records, each with a CRC32C
//
// A checkpoint is fuzzy: it is written beside a running workload and holds, of every record, some version that was
// committed between its begin epoch and its end epoch. With the log from its first segment on it gives every epoch from
// its end epoch on. It enters the manifest when it is complete, synced and read back (verified), and the log is durable
// up to its end epoch; only then the one before the previous is removed, and the log segments that neither needs.
//
// The files: checkpoint_format.h, docs/log_format.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/file/file_system.h"

namespace gannet::log {

// What the log layer remembers of a table, so that a directory can be read without the program that made it.
struct TableDescription {
  uint16_t id = 0;
  std::string name;
  bool integer_keys = true;
  uint32_t max_key_bytes = 8;
  std::string index;  // "hash", "xstore"
  uint32_t payload_bytes = 0;
  bool variable_length = false;
  bool replicated = false;
  uint64_t expected_rows = 0;
  bool operator==(const TableDescription&) const = default;
};

struct CheckpointFile {
  std::string name;  // in the checkpoint's directory
  uint16_t table = 0;
  uint64_t bytes = 0;
  uint64_t records = 0;
  uint32_t crc = 0;  // over the CRCs of its blocks, in order
  bool operator==(const CheckpointFile&) const = default;
};

struct CheckpointDescription {
  uint64_t id = 0;
  uint64_t begin_epoch = 0;    // everything of earlier epochs is in it
  uint64_t end_epoch = 0;      // nothing of later epochs is in it
  uint64_t first_segment = 0;  // of the log that is needed beside it
  uint64_t wall_nanos = 0;
  // The log has everything that changed since the checkpoint before: so with the log from its first segment on, that
  // one gives the same as this one. False if something was loaded in bulk or nothing was logged, and if nobody knows.
  bool all_logged = false;
  std::vector<CheckpointFile> files{};
  uint64_t bytes() const;
  uint64_t records() const;
  bool operator==(const CheckpointDescription&) const = default;
};

// The version that databases write. Version 1 had neither `database` nor `started`.
inline constexpr uint32_t kManifestVersion = 2;

struct Manifest {
  uint32_t version = kManifestVersion;
  // Which database: drawn when it was created, the same on all of its nodes. Empty: created by version 1.
  std::string database{};
  // False: as the creation of the database left it. The node has not had a log with its name on disk yet, so nothing
  // was ever durable here, and nothing was ever durable at any other node either. True in every manifest of version 1.
  bool started = false;
  uint16_t node = 0;
  uint16_t num_nodes = 1;
  std::string application{};  // what the user of the directory notes here ("tpcc warehouses=2"), free text
  std::vector<TableDescription> tables{};
  std::vector<CheckpointDescription> checkpoints{};  // newest first
  bool log_end = false;                              // LOG-END has been made (end_note.h): it must be there
  bool operator==(const Manifest&) const = default;
};

// NotFound: no manifest, so no database there. DataLoss: damaged. InvalidArgument: of a newer version.
StatusOr<Manifest> ReadManifest(FileSystem& files, const std::string& directory);
// InvalidArgument: a text is not UTF-8.
Status WriteManifest(FileSystem& files, const std::string& directory, const Manifest& manifest);

struct CheckpointRecord {
  uint16_t table = 0;
  uint64_t epoch = 0;  // of the change that made it what it is; 0 if that is not known
  uint64_t version = 0;
  std::span<const std::byte> key;  // as in the log
  std::span<const std::byte> payload;
};

// Writes one checkpoint's files. One thread. After an error it is of no use any more.
class CheckpointWriter {
 public:
  static constexpr size_t kBlockBytes = size_t{1} << 20;  // a larger record gets a larger block of its own
  // A table is split into files of about this size, so that recovery can read them in parallel.
  static constexpr uint64_t kFileBytes = uint64_t{64} << 20;

  // Makes the checkpoint's directory; one that an interrupted checkpoint left behind is removed first.
  // `bytes_per_second` 0: as fast as the disk takes it. `files` must outlive it.
  static StatusOr<std::unique_ptr<CheckpointWriter>> Create(FileSystem* files, const std::string& directory,
                                                            uint64_t id, uint64_t bytes_per_second);
  ~CheckpointWriter();
  // Records of one table come one after the other, between BeginTable and the next. Ordered tables: in key order.
  Status BeginTable(uint16_t table);
  Status Add(const CheckpointRecord& record);
  // Syncs, then reads everything back and checks it. `id` and `files` of the description are filled in.
  Status Finish(CheckpointDescription* description);

 private:
  class Output;  // the file that is being written

  CheckpointWriter(FileSystem* files, std::string directory, uint64_t id, uint64_t bytes_per_second);
  Status BeginFile();
  Status EndFile();
  Status WriteBlock();
  void Throttle(uint64_t bytes);

  FileSystem* const files_;
  const std::string directory_;  // the data directory
  const uint64_t id_;
  const uint64_t bytes_per_second_;
  uint64_t start_nanos_;
  uint64_t written_bytes_ = 0;
  uint16_t table_ = 0;
  uint32_t part_ = 0;               // of the table's files
  std::unique_ptr<Output> output_;  // null: the table has no record yet
  std::vector<CheckpointFile> done_;
};

// Records of one file in the order written; their views are valid during the call. Several files may be read at once by
// several threads. DataLoss names file and offset, and what `visit` was given until then must be thrown away. If
// `damaged` is given, damaged blocks are left out, and told to it at the end. `visit` may be null.
Status ReadCheckpointFile(FileSystem& files, const std::string& directory, uint64_t id, const CheckpointFile& file,
                          const std::function<Status(const CheckpointRecord&)>& visit,
                          const std::function<void(uint64_t offset, const std::string& what)>& damaged);

// Removes checkpoint directories that the manifest does not name, and a manifest that was never finished.
Status RemoveStrayCheckpoints(FileSystem& files, const std::string& directory, const Manifest& manifest);
// Ok if it is not there.
Status RemoveCheckpoint(FileSystem& files, const std::string& directory, uint64_t id);
std::string CheckpointDirectory(const std::string& directory, uint64_t id);

}  // namespace gannet::log
