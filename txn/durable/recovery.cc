#include "txn/durable/recovery.h"

#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "base/thread.h"
#include "log/damage.h"
#include "log/kill_point.h"
#include "txn/durable/latest_changes.h"
#include "txn/durable/logs_reader.h"
#include "txn/durable/table_rebuilder.h"
#include "txn/session/session_internal.h"

namespace gannet::txn {
namespace {

double SecondsSince(uint64_t start) {
  return static_cast<double>(NowNanos() - start) * 1e-9;
}

std::string Keys(const log::TableDescription& table) {
  return table.integer_keys ? "integer keys" : absl::StrCat("keys of at most ", table.max_key_bytes, " bytes");
}

std::string Payload(const log::TableDescription& table) {
  return absl::StrCat("payloads of ", table.variable_length ? "at most " : "", table.payload_bytes, " bytes");
}

std::string Placed(const log::TableDescription& table) {
  if (table.range_starts.empty()) return table.replicated ? "replicated" : "neither replicated nor placed by range";
  return absl::StrCat("placed by range, with starts ", absl::StrJoin(table.range_starts, ", "));
}

// `had`: the table in the directory; `has`: the table that the program creates. Checkpoints of ordered tables are in
// key order, those of others are not, and nothing is converted when a database is opened.
Status CheckTable(const log::TableDescription& had, const log::TableDescription& has, const std::string& directory) {
  const auto differs = [&](absl::string_view was, absl::string_view is) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", had.name, "' in ", directory, " is ", was, ", and the program creates it as ", is,
                     "; create it as it is (to change it, copy its rows to a new table)"));
  };
  if (has.index != had.index) {
    return differs(absl::StrCat("one with index ", had.index), absl::StrCat("one with index ", has.index));
  }
  // The options that the text leaves out have defaults; `has` names all of them.
  const StatusOr<index::OwnOptions> options =
      index::ReadOwnOptions(*index::FindIndexKind(has.index), had.index_options);
  if (!options.ok() || options->text != has.index_options) {
    return differs(absl::StrCat("one with index options '", had.index_options, "'"),
                   absl::StrCat("one with '", has.index_options, "'"));
  }
  if (has.integer_keys != had.integer_keys || has.max_key_bytes != had.max_key_bytes) {
    return differs(absl::StrCat("one with ", Keys(had)), absl::StrCat("one with ", Keys(has)));
  }
  if (has.payload_bytes != had.payload_bytes || has.variable_length != had.variable_length) {
    return differs(absl::StrCat("one with ", Payload(had)), absl::StrCat("one with ", Payload(has)));
  }
  // The rows are where the old placement put them, and would not be found.
  if (has.replicated != had.replicated || has.range_starts != had.range_starts) {
    return differs(Placed(had), Placed(has));
  }
  return absl::OkStatus();
}

Status CheckTables(const LocalNode& local, const NodeData& node) {
  const std::string& directory = node.path;
  for (const log::TableDescription& had : node.manifest.tables) {
    const Table* table = local.TableById(had.id);
    if (table == nullptr || table->name() != had.name) {
      return absl::InvalidArgumentError(absl::StrCat(directory, " has a table '", had.name, "' as number ", had.id,
                                                     "; create the same tables in the same order before Start"));
    }
    GANNET_RETURN_IF_ERROR(CheckTable(had, DescribeTable(*table), directory));
  }
  return absl::OkStatus();
}

std::string WithoutAdvice(const Status& damage) {
  return std::string(absl::StripSuffix(damage.message(), log::kDamageAdvice));
}

std::vector<const Table*> TablesOf(const std::vector<DamagedTable>& damaged) {
  std::vector<const Table*> tables;
  tables.reserve(damaged.size());
  for (const DamagedTable& each : damaged) tables.push_back(each.table);
  return tables;
}

// Recovery of one node.
class Recovery {
 public:
  Recovery(const LocalNode* local, log::FileSystem* files, const std::string& directory,
           const std::vector<NodeData>& nodes)
      : local_(local),
        files_(files),
        directory_(directory),
        nodes_(nodes),
        own_(nodes[local->id()].path),
        manifest_(nodes[local->id()].manifest),
        newest_(manifest_.checkpoints.empty() ? log::CheckpointDescription{} : manifest_.checkpoints.front()) {}

  Status Run(log::LogEnd* end, RecoveryReport* report);

 private:
  Status ReadLogs(const log::CheckpointDescription& checkpoint, bool salvage, LatestChanges* changes, log::LogEnd* end,
                  RecoveryReport* report) const;
  Status MakeTables(LatestChanges* changes, const log::LogEnd& end, RecoveryReport* report);
  Status MakeFromOlder(const log::LogEnd& end, std::vector<DamagedTable>* damaged, Status* why_not,
                       RecoveryReport* report);

  const LocalNode* local_;
  log::FileSystem* files_;
  const std::string directory_;  // of the cluster
  const std::vector<NodeData>& nodes_;
  const std::string& own_;
  const log::Manifest& manifest_;
  const log::CheckpointDescription newest_;
};

Status Recovery::ReadLogs(const log::CheckpointDescription& checkpoint, bool salvage, LatestChanges* changes,
                          log::LogEnd* end, RecoveryReport* report) const {
  const bool goes_on = !local_->options.directory.empty();  // a caller that only inspects opens a database without one
  LogsReader reader(*files_, nodes_, local_->id(), checkpoint, local_->options.recovery_threads, salvage, goes_on,
                    local_->options.stop);
  return reader.Read(changes, end, report);
}

// Makes the damaged tables from the previous checkpoint. *damaged keeps those that cannot be made, and *why_not gets
// the reason. A table's state is a function of the recovered epoch, so the other tables may come from the newest
// checkpoint. Nothing may be missing from what this reads, also not in salvage.
Status Recovery::MakeFromOlder(const log::LogEnd& end, std::vector<DamagedTable>* damaged, Status* why_not,
                               RecoveryReport* report) {
  const log::CheckpointDescription& older = manifest_.checkpoints[1];
  LatestChanges changes;
  log::LogEnd again;
  RecoveryReport unused;
  *why_not = ReadLogs(older, /*salvage=*/false, &changes, &again, &unused);
  if (absl::IsCancelled(*why_not)) return *why_not;
  if (!why_not->ok()) return absl::OkStatus();
  if (again.recovered_epoch != end.recovered_epoch) {
    return absl::DataLossError(absl::StrCat("the logs gave epoch ", end.recovered_epoch, " first and now ",
                                            again.recovered_epoch, ": does another program write to ", directory_,
                                            "?"));
  }
  TableRebuilder rebuilder(local_, files_, own_, older, &changes);
  std::vector<DamagedTable> also;
  GANNET_RETURN_IF_ERROR(rebuilder.Rebuild(TablesOf(*damaged), local_->options.recovery_threads, &also));
  rebuilder.Count(report);
  for (const DamagedTable& each : *damaged) {
    if (std::ranges::find(also, each.table, &DamagedTable::table) != also.end()) continue;
    report->older_checkpoint_id = older.id;
    report->replaced.push_back(absl::StrCat("table '", each.table->name(), "': ", WithoutAdvice(each.damage)));
  }
  if (!also.empty()) *why_not = also.front().damage;
  std::erase_if(*damaged, [&](const DamagedTable& each) {
    return std::ranges::find(also, each.table, &DamagedTable::table) == also.end();
  });
  return absl::OkStatus();
}

Status Recovery::MakeTables(LatestChanges* changes, const log::LogEnd& end, RecoveryReport* report) {
  const int threads = local_->options.recovery_threads;
  TableRebuilder rebuilder(local_, files_, own_, newest_, changes);
  std::vector<const Table*> tables;
  for (const std::unique_ptr<Table>& table : local_->tables) tables.push_back(table.get());
  std::vector<DamagedTable> damaged;
  GANNET_RETURN_IF_ERROR(rebuilder.Rebuild(tables, threads, &damaged));
  Status why_not;
  if (manifest_.checkpoints.size() < 2) {
    why_not = absl::NotFoundError("there is none");
  } else if (!newest_.all_logged) {
    why_not = absl::FailedPreconditionError("the log does not have all that changed between the two");
  } else if (!damaged.empty()) {
    GANNET_RETURN_IF_ERROR(MakeFromOlder(end, &damaged, &why_not, report));
  }
  if (!damaged.empty() && !local_->options.salvage) {
    return absl::DataLossError(absl::StrCat(WithoutAdvice(damaged.front().damage),
                                            "; the checkpoint before cannot take its place: ", WithoutAdvice(why_not),
                                            log::kDamageAdvice));
  }
  GANNET_RETURN_IF_ERROR(rebuilder.Salvage(TablesOf(damaged), threads));
  rebuilder.Count(report);
  return absl::OkStatus();
}

Status Recovery::Run(log::LogEnd* end, RecoveryReport* report) {
  const uint64_t start = NowNanos();
  LatestChanges changes;
  GANNET_RETURN_IF_ERROR(ReadLogs(newest_, local_->options.salvage, &changes, end, report));
  if (newest_.end_epoch > end->recovered_epoch) {
    return absl::DataLossError(absl::StrCat(own_, ": the checkpoint ", newest_.id, " goes up to epoch ",
                                            newest_.end_epoch, ", but the logs only to ", end->recovered_epoch,
                                            ": log files are missing; restore the directory from a backup"));
  }
  report->log_seconds = SecondsSince(start);
  log::MayDieHere(log::KillPoint::kRecoveryRead);

  const uint64_t load_start = NowNanos();
  GANNET_RETURN_IF_ERROR(MakeTables(&changes, *end, report));
  report->checkpoint_id = newest_.id;
  report->checkpoint_bytes = newest_.bytes();
  report->load_seconds = SecondsSince(load_start);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  report->peak_memory_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  log::MayDieHere(log::KillPoint::kRecoveryLoaded);
  return absl::OkStatus();
}

}  // namespace

log::TableDescription DescribeTable(const Table& table) {
  const TableOptions& options = table.options();
  return {.id = table.id(),
          .name = options.name,
          .integer_keys = options.key_kind == index::KeyKind::kInteger,
          .max_key_bytes = static_cast<uint32_t>(options.max_key_bytes),
          .index = index::EntryOf(options.index).name,
          .index_options = options.index_options,
          .payload_bytes = static_cast<uint32_t>(options.payload_bytes),
          .variable_length = options.variable_length,
          .replicated = options.placement.replicated,
          .expected_rows = options.expected_rows,
          .range_starts =
              options.placement.ranges == nullptr ? std::vector<std::string>() : options.placement.ranges->texts()};
}

Status Recover(const LocalNode& local, log::FileSystem& files, const std::string& directory, log::LogEnd* end,
               RecoveryReport* report) {
  const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(files, directory);
  if (!nodes.ok()) return nodes.status();
  if (std::ssize(*nodes) != local.fabric.num_nodes()) {
    return absl::InvalidArgumentError(absl::StrCat(directory, " belongs to a cluster of ", nodes->size(),
                                                   " nodes; open it with as many, not ", local.fabric.num_nodes()));
  }
  GANNET_RETURN_IF_ERROR(CheckTables(local, (*nodes)[local.id()]));
  if (!(*nodes)[local.id()].manifest.checkpoints.empty()) Sometimes<"recovery: a checkpoint is there">();
  return Recovery(&local, &files, directory, *nodes).Run(end, report);
}

Status Recover(Database& database, log::FileSystem& files, const std::string& directory, log::LogEnd* end,
               RecoveryReport* report) {
  return Recover(*database.state().local, files, directory, end, report);
}

}  // namespace gannet::txn
