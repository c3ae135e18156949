#include "txn/durable/recovery.h"

#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "base/thread.h"
#include "log/file/damage.h"
#include "log/file/kill_point.h"
#include "log/format/identity.h"
#include "log/manifest/manifest.h"
#include "txn/durable/catalog.h"
#include "txn/durable/latest_changes.h"
#include "txn/durable/logs_reader.h"
#include "txn/durable/table_rebuilder.h"
#include "txn/node/local_node.h"

namespace gannet::txn {
namespace {

double SecondsSince(uint64_t start) {
  return static_cast<double>(NowNanos() - start) * 1e-9;
}

// The database has the tables of the directory: Open or AdoptTables made them, and CreateTable compared them. A node
// that is still in its last run may have noted new ones since then.
Status CheckTables(const LocalNode& local, const std::vector<NodeData>& nodes, const std::string& directory) {
  const StatusOr<Catalog> catalog = CatalogOf(nodes);
  if (!catalog.ok()) return catalog.status();
  for (const log::TableDescription& had : catalog->tables) {
    const Table* table = local.TableById(had.id);
    if (table == nullptr || table->name() != had.name) {
      return absl::FailedPreconditionError(absl::StrCat(directory, " has a table '", had.name, "' as number ", had.id,
                                                        ", and this database does not: open it again"));
    }
    GANNET_RETURN_IF_ERROR(CheckSameTable(had, DescribeTable(*table), local.data_nodes));
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
        database_(log::Identity::FromText(manifest_.database)),
        newest_(manifest_.checkpoints.empty() ? log::CheckpointDescription{} : manifest_.checkpoints.front()),
        counts_(local->tables.id_bound()) {}

  Status Run(log::LogEnd* end, RecoveryReport* report);

 private:
  Status ReadLogs(const log::CheckpointDescription& checkpoint, bool salvage, LatestChanges* changes, log::LogEnd* end,
                  RecoveryReport* report) const;
  std::vector<const Table*> AllTables() const;
  Status MakeTables(LatestChanges* changes, const log::LogEnd& end, RecoveryReport* report);
  Status MakeFromOlder(const log::LogEnd& end, LatestChanges* newest_changes, std::vector<DamagedTable>* damaged,
                       Status* why_not, RecoveryReport* report);

  const LocalNode* local_;
  log::FileSystem* files_;
  const std::string directory_;  // of the cluster
  const std::vector<NodeData>& nodes_;
  const std::string& own_;
  const log::Manifest& manifest_;
  const log::Identity database_;
  const log::CheckpointDescription newest_;
  RecordCounts counts_;
};

std::vector<const Table*> Recovery::AllTables() const {
  std::vector<const Table*> tables;
  for (const Table* table : local_->tables) tables.push_back(table);
  return tables;
}

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
Status Recovery::MakeFromOlder(const log::LogEnd& end, LatestChanges* newest_changes,
                               std::vector<DamagedTable>* damaged, Status* why_not, RecoveryReport* report) {
  const log::CheckpointDescription& older = manifest_.checkpoints[1];
  LatestChanges changes(local_, own_, TablesOf(*damaged), local_->options.recovery_threads, &counts_);
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
  TableRebuilder rebuilder(local_, files_, own_, database_, older, &changes, &counts_);
  std::vector<DamagedTable> also;
  GANNET_RETURN_IF_ERROR(rebuilder.Rebuild(TablesOf(*damaged), local_->options.recovery_threads, &also));
  for (const DamagedTable& each : also) changes.Discard(*each.table);
  for (const DamagedTable& each : *damaged) {
    if (std::ranges::find(also, each.table, &DamagedTable::table) != also.end()) continue;
    newest_changes->Discard(*each.table);
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
  TableRebuilder rebuilder(local_, files_, own_, database_, newest_, changes, &counts_);
  std::vector<DamagedTable> damaged;
  GANNET_RETURN_IF_ERROR(rebuilder.Rebuild(AllTables(), threads, &damaged));
  Status why_not;
  if (manifest_.checkpoints.size() < 2) {
    why_not = absl::NotFoundError("there is none");
  } else if (!newest_.all_logged) {
    why_not = absl::FailedPreconditionError("the log does not have all that changed between the two");
  } else if (!damaged.empty()) {
    GANNET_RETURN_IF_ERROR(MakeFromOlder(end, changes, &damaged, &why_not, report));
  }
  if (!damaged.empty() && !local_->options.salvage) {
    return absl::DataLossError(absl::StrCat(WithoutAdvice(damaged.front().damage),
                                            "; the checkpoint before cannot take its place: ", WithoutAdvice(why_not),
                                            log::kDamageAdvice));
  }
  GANNET_RETURN_IF_ERROR(rebuilder.Salvage(TablesOf(damaged), threads));
  rebuilder.Report(report);
  return absl::OkStatus();
}

Status Recovery::Run(log::LogEnd* end, RecoveryReport* report) {
  const uint64_t start = NowNanos();
  LatestChanges changes(local_, own_, AllTables(), local_->options.recovery_threads, &counts_);
  GANNET_RETURN_IF_ERROR(ReadLogs(newest_, local_->options.salvage, &changes, end, report));
  report->log_seconds = SecondsSince(start);
  log::MayDieHere(log::KillPoint::kRecoveryRead);

  const uint64_t load_start = NowNanos();
  GANNET_RETURN_IF_ERROR(MakeTables(&changes, *end, report));
  report->checkpoint_id = newest_.id;
  report->checkpoint_bytes = newest_.bytes();
  report->records = static_cast<uint64_t>(counts_.records.load());
  for (size_t i = 0; i < counts_.bytes.size(); ++i)
    local_->record_bytes.Settle(static_cast<TableId>(i), counts_.bytes[i].load());
  report->load_seconds = SecondsSince(load_start);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  report->peak_memory_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  log::MayDieHere(log::KillPoint::kRecoveryLoaded);
  return absl::OkStatus();
}

}  // namespace

Status Recover(const LocalNode& local, log::FileSystem& files, const std::string& directory,
               const std::vector<NodeData>& nodes, log::LogEnd* end, RecoveryReport* report) {
  if (std::ssize(nodes) != local.fabric.num_nodes()) {
    return absl::InvalidArgumentError(absl::StrCat(directory, " belongs to a cluster of ", nodes.size(),
                                                   " nodes; open it with as many, not ", local.fabric.num_nodes()));
  }
  GANNET_RETURN_IF_ERROR(CheckTables(local, nodes, directory));
  if (!nodes[local.id()].manifest.checkpoints.empty()) Sometimes<"recovery: a checkpoint is there">();
  return Recovery(&local, &files, directory, nodes).Run(end, report);
}

}  // namespace gannet::txn
