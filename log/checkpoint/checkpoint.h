// Checkpoints and the manifest of a data directory.
//
//   DIR/MANIFEST            JSON with a checksum: format version, database, node, tables, checkpoints (newest first, at
//                           most two)
//   DIR/log-...             segments (segment_format.h)
//   DIR/checkpoint-<id>/    one or more files per table: blocks of records, each with a CRC32C
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
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/file/file_system.h"
#include "log/format/identity.h"

namespace gannet::log {

// A table may have the entries of a secondary index of another table (txn/store/secondary_index.h, which gives the
// texts).
struct IndexFieldDescription {
  std::string source;
  std::string type;
  uint32_t offset = 0;
  uint32_t bytes = 0;
  bool operator==(const IndexFieldDescription&) const = default;
};
struct IndexDescription {
  uint16_t table = 0;  // whose rows are indexed
  bool unique = false;
  bool complete = false;     // false: some rows may have no entry yet
  bool by_function = false;  // keys are made by a function of the program; there are no fields
  std::vector<IndexFieldDescription> fields{};
  bool operator==(const IndexDescription&) const = default;
};

// Description of a table in the log layer, so that a directory can be read without the program that made it.
struct TableDescription {
  uint16_t id = 0;
  std::string name;
  bool integer_keys = true;
  uint32_t max_key_bytes = 8;
  std::string index;               // name of its kind, e.g. "hash"
  std::string index_options = {};  // of this kind only; not known to the log
  std::string index_rights{};      // name of its rights; empty: not kept
  uint32_t payload_bytes = 0;
  // Of a table without variable_length that was widened: logs and checkpoints may have rows of this size and larger,
  // which are filled up with zeros. Else the same as payload_bytes.
  uint32_t least_payload_bytes = 0;
  bool variable_length = false;
  bool replicated = false;
  std::string placement{};  // name of the way in which nodes own keys; empty: not kept
  uint64_t expected_rows = 0;
  // If the nodes own ranges of the keys: the smallest key of each node after the first. Decimal, or hexadecimal with
  // 0x.
  std::vector<std::string> range_starts{};
  std::string application{};  // note of the table's user, free text
  std::string key_form{};     // name of the form in which keys are written; empty: not known
  std::optional<IndexDescription> secondary{};
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
  uint64_t first_segment = 0;  // of the log that is needed with it
  uint64_t wall_nanos = 0;
  // True if the log has everything that changed since the previous checkpoint. Then the previous one, with the log from
  // its first segment on, restores the same state as this one. False if data was loaded in bulk, if nothing was logged,
  // or if this is unknown.
  bool all_logged = false;
  std::vector<CheckpointFile> files{};
  uint64_t bytes() const;
  uint64_t records() const;
  bool operator==(const CheckpointDescription&) const = default;
};

// The version that databases write. Version 1 had neither `database` nor `started`.
inline constexpr uint32_t kManifestVersion = 2;
// A manifest is written as this version if a table has keys that may have more than kShortKeyBytes
// (transaction_format.h), which a program of version 2 does not know in the log and in checkpoints; or if a number
// below next_table has no table, because early programs of version 2 do not keep next_table, and would give the number
// of a dropped table to another one, while the log still has changes of the first; or if a table was widened. Such
// programs refuse the directory.
inline constexpr uint32_t kChangedTablesManifestVersion = 3;
// A manifest with a secondary index is written as this version: a program that does not know it would change rows
// without their entries.
inline constexpr uint32_t kSecondaryIndexManifestVersion = 4;
// A manifest with a catalog_generation is written as this version: a program that does not know it would take the
// tables of all nodes' manifests together, so that a dropped table came back without some of its rows.
inline constexpr uint32_t kGenerationManifestVersion = 5;
inline constexpr uint32_t kNewestManifestVersion = kGenerationManifestVersion;

struct Manifest {
  uint32_t version = kManifestVersion;
  // Identity of the database: drawn at random when it was created, the same on all of its nodes. Empty: created by
  // version 1.
  std::string database{};
  // False: unchanged since the creation of the database. The node has not had a log with its name on disk yet, so
  // nothing was ever durable here or at any other node. True in every manifest of version 1.
  bool started = false;
  // Identity of the newest run of which it is known that it has begun: the log must have it. Empty: not known, or from
  // before runs had one.
  std::string run{};
  uint16_t node = 0;
  uint16_t num_nodes = 1;
  std::string application{};  // note of the directory's user ("tpcc warehouses=2"), free text
  std::vector<TableDescription> tables{};
  // Number of the next table, greater than every number that a table has or had: logs and checkpoints name tables by
  // number, so none is used twice. 0: not kept, no table was ever removed.
  uint32_t next_table = 0;
  // Number of the change of the tables that several nodes made together while they ran, and of which `tables` is the
  // result. Of manifests with different numbers only those with the greatest one have the tables of the database.
  uint64_t catalog_generation = 0;
  std::vector<CheckpointDescription> checkpoints{};  // newest first
  bool log_end = false;                              // LOG-END has been created (end_note.h), so it must exist
  bool operator==(const Manifest&) const = default;
};

// NotFound: no manifest, so no database. DataLoss: damaged. InvalidArgument: a newer version.
StatusOr<Manifest> ReadManifest(FileSystem& files, const std::string& directory);
// InvalidArgument: a string is not UTF-8.
Status WriteManifest(FileSystem& files, const std::string& directory, const Manifest& manifest);

// The identity of the database of which `directory` is a part; not known: there is no manifest, or version 1 made it.
// Errors other than NotFound as from ReadManifest.
StatusOr<Identity> ReadIdentity(FileSystem& files, const std::string& directory);

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
  // `bytes_per_second` 0: as fast as the disk takes it. `database`: for a directory that has no manifest yet. `files`
  // must outlive it.
  static StatusOr<std::unique_ptr<CheckpointWriter>> Create(FileSystem* files, const std::string& directory,
                                                            uint64_t id, uint64_t bytes_per_second,
                                                            const Identity& database = {});
  ~CheckpointWriter();
  // Add each record of a table between its BeginTable and the next one. Records of ordered tables come in key order.
  Status BeginTable(uint16_t table);
  Status Add(const CheckpointRecord& record);
  // Syncs, then reads everything back and checks it. Fills in `id` and `files` of the description.
  Status Finish(CheckpointDescription* description);

 private:
  class Output;  // the file that is being written

  CheckpointWriter(FileSystem* files, std::string directory, uint64_t id, const Identity& database,
                   uint64_t bytes_per_second);
  Status BeginFile();
  Status EndFile();
  Status WriteBlock();
  void Throttle(uint64_t bytes);

  FileSystem* const files_;
  const std::string directory_;  // the data directory
  const uint64_t id_;
  const Identity database_;
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
// files at once. DataLoss names file and offset; discard the records visited until then. A file of another database is
// damaged at offset 0, and none of its records is visited. If `damaged` is not null, damaged blocks are left out, and
// it is called with them at the end.
Status ReadCheckpointFile(FileSystem& files, const std::string& directory, uint64_t id, const CheckpointFile& file,
                          const CheckpointVisitor& visit,
                          const std::function<void(uint64_t offset, const std::string& what)>& damaged);

// Removes checkpoint directories, and files in checkpoint directories, that the manifest does not name, and a manifest
// that was never finished.
Status RemoveStrayCheckpoints(FileSystem& files, const std::string& directory, const Manifest& manifest);
// Ok if it does not exist.
Status RemoveCheckpoint(FileSystem& files, const std::string& directory, uint64_t id);
std::string CheckpointDirectory(const std::string& directory, uint64_t id);

}  // namespace gannet::log
