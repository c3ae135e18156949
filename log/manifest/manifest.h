// The manifest of a data directory: DIR/MANIFEST is JSON with a checksum, and has the format version, the database, the
// node, the tables, and the checkpoints, newest first, at most two (checkpoint.h). docs/log_format.md has its fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/file/file_system.h"

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
  // Set for a table without variable_length that was widened: logs and checkpoints may have rows of this size and
  // larger, which are filled up with zeros. Else the same as payload_bytes.
  uint32_t least_payload_bytes = 0;
  bool variable_length = false;
  bool replicated = false;
  std::string placement{};  // name of the way in which nodes own keys; empty: not kept
  uint64_t expected_rows = 0;
  // Set if the nodes own ranges of the keys: the smallest key of each node after the first. Decimal, or hexadecimal
  // with 0x.
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

}  // namespace gannet::log
