#include "txn/metrics.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "txn/run/database_state.h"

namespace gannet::txn {
namespace {

double Seconds(double nanos) {
  return nanos * 1e-9;
}

void AddDurations(std::vector<MetricFamily>* families, std::string name, std::string help,
                  const DurationCounts& durations) {
  families->push_back({.name = std::move(name), .help = std::move(help), .type = MetricType::kHistogram});
  families->back().AddDurations(durations);
}

void Add(std::vector<MetricFamily>* families, std::string name, std::string help, MetricType type, double value) {
  families->push_back({.name = std::move(name), .help = std::move(help), .type = type});
  families->back().Add(value);
}

void AddCounter(std::vector<MetricFamily>* families, std::string name, std::string help, uint64_t value) {
  Add(families, std::move(name), std::move(help), MetricType::kCounter, static_cast<double>(value));
}

void AddLogMetrics(const Database& database, std::vector<MetricFamily>* families) {
  const log::LogStatistics log = database.log_statistics();
  AddCounter(families, "gannet_log_transactions_total", "Transactions in the log.", log.transactions);
  AddCounter(families, "gannet_log_changes_total", "Changes of rows in the log.", log.changes);
  AddCounter(families, "gannet_log_record_bytes_total", "Bytes of these transactions.", log.record_bytes);
  AddCounter(families, "gannet_log_disk_bytes_total", "Bytes that were written to the log's files.", log.disk_bytes);
  AddCounter(families, "gannet_log_batches_total", "Writes of the log: group commits.", log.batches);
  AddDurations(families, "gannet_log_flush_seconds", "Time of these writes, until the disk has them.", log.flushes);
  AddCounter(families, "gannet_log_failures_total", "Segments of the log that were given up after an error.",
             log.failures);
  Add(families, "gannet_log_healthy", "1 if commits can be made durable now.", MetricType::kGauge,
      database.log_health().ok() ? 1 : 0);
  Add(families, "gannet_durable_epoch", "The newest epoch of commits that is durable.", MetricType::kGauge,
      static_cast<double>(database.durable_epoch()));
}

void AddCheckpointMetrics(const CheckpointStatistics& checkpoints, std::vector<MetricFamily>* families) {
  MetricFamily attempts{
      .name = "gannet_checkpoints_total", .help = "Checkpoints, by their result.", .type = MetricType::kCounter};
  attempts.Add(static_cast<double>(checkpoints.taken), {{"result", "taken"}});
  attempts.Add(static_cast<double>(checkpoints.failed), {{"result", "failed"}});
  families->push_back(std::move(attempts));
  AddCounter(families, "gannet_checkpoint_bytes_total", "Bytes of the checkpoints that were taken.", checkpoints.bytes);
  Add(families, "gannet_checkpoint_seconds", "Time that the last checkpoint took.", MetricType::kGauge,
      checkpoints.seconds);
  Add(families, "gannet_recovery_log_bytes", "Bytes of log that a recovery would read.", MetricType::kGauge,
      static_cast<double>(checkpoints.log_bytes));
}

}  // namespace

void AddMemoryMetrics(const rdma::SlabStatistics& memory, std::vector<MetricFamily>* families) {
  MetricFamily bytes{.name = "gannet_registered_memory_bytes",
                     .help =
                         "Registered memory of this node: capacity, taken, and the part of taken that is free for "
                         "reuse.",
                     .type = MetricType::kGauge};
  bytes.Add(static_cast<double>(memory.capacity_bytes), {{"kind", "capacity"}});
  bytes.Add(static_cast<double>(memory.carved_bytes), {{"kind", "taken"}});
  bytes.Add(static_cast<double>(memory.free_bytes), {{"kind", "free"}});
  families->push_back(std::move(bytes));
}

void AddLoadMetrics(const rdma::NodeLoad& load, std::vector<MetricFamily>* families) {
  if (!load.known()) return;
  Add(families, "gannet_call_threads_busy_ratio",
      "Share of the last milliseconds in which the threads that answer calls were busy, as announced.",
      MetricType::kGauge, load.server_share());
  if (load.link_megabytes_per_second > 0) {
    Add(families, "gannet_link_busy_ratio", "The same for the link, in its busier direction.", MetricType::kGauge,
        load.link_share());
  }
  if (load.verb_picos > 0) {
    Add(families, "gannet_nic_engine_busy_ratio", "The same for the NIC's engine that serves the verbs of others.",
        MetricType::kGauge, load.engine_share());
  }
}

void AddPathMetrics(const std::vector<TablePaths>& paths, std::vector<MetricFamily>* families) {
  if (paths.empty()) return;
  const auto family = [](const char* name, const char* help, MetricType type) {
    return MetricFamily{.name = name, .help = help, .type = type};
  };
  MetricFamily accesses =
      family("gannet_remote_accesses_total", "Accesses to records of other nodes, by the path that they took.",
             MetricType::kCounter);
  MetricFamily compared = family("gannet_remote_accesses_compared_total",
                                 "Accesses for which both paths were compared.", MetricType::kCounter);
  MetricFamily estimates = family("gannet_remote_access_estimated_seconds_total",
                                  "What these were estimated to take on each path.", MetricType::kCounter);
  MetricFamily relief =
      family("gannet_remote_accesses_backed_off_total",
             "Accesses that were not made by a call because the owner was busy.", MetricType::kCounter);
  MetricFamily contrary = family("gannet_remote_accesses_contrary_total", "Accesses on the dearer path, to measure it.",
                                 MetricType::kCounter);
  MetricFamily cost =
      family("gannet_remote_access_contrary_seconds",
             "What these took longer than the cheaper path was estimated to take; may fall.", MetricType::kGauge);
  for (const TablePaths& each : paths) {
    const PathStatistics& p = each.paths;
    const MetricLabels labels = {{"table", each.table}, {"kind", kAccessKindNames[static_cast<size_t>(each.kind)]}};
    const auto add_by_path = [&labels](MetricFamily* of, double one_sided, double call) {
      for (const bool by_call : {false, true}) {
        MetricLabels with_path = labels;
        with_path.emplace_back("path", by_call ? "call" : "one_sided");
        of->Add(by_call ? call : one_sided, std::move(with_path));
      }
    };
    add_by_path(&accesses, static_cast<double>(p.one_sided), static_cast<double>(p.calls));
    if (p.estimated == 0) continue;
    compared.Add(static_cast<double>(p.estimated), labels);
    add_by_path(&estimates, Seconds(p.one_sided_nanos), Seconds(p.call_nanos));
    relief.Add(static_cast<double>(p.backed_off), labels);
    contrary.Add(static_cast<double>(p.contrary), labels);
    cost.Add(Seconds(p.contrary_nanos), labels);
  }
  for (MetricFamily* each : {&accesses, &compared, &estimates, &relief, &contrary, &cost}) {
    families->push_back(std::move(*each));
  }
}

void AddTransactionMetrics(const TransactionStatistics& transactions, std::vector<MetricFamily>* families) {
  MetricFamily commits{
      .name = "gannet_commits_total", .help = "Transactions that committed.", .type = MetricType::kCounter};
  commits.Add(static_cast<double>(transactions.commits_of_readers), {{"kind", "read_only"}});
  commits.Add(static_cast<double>(transactions.commits_of_writers), {{"kind", "writing"}});
  MetricFamily aborts{.name = "gannet_aborts_total",
                      .help = "Attempts that met a conflict and have to run again, by its cause.",
                      .type = MetricType::kCounter};
  for (size_t cause = 0; cause < kAbortCauses; ++cause) {
    aborts.Add(static_cast<double>(transactions.aborts[cause]), {{"cause", kAbortCauseNames[cause]}});
  }
  MetricFamily written{.name = "gannet_rows_written_total",
                       .help = "Rows that committed transactions wrote.",
                       .type = MetricType::kCounter};
  written.Add(static_cast<double>(transactions.rows_inserted), {{"operation", "insert"}});
  written.Add(static_cast<double>(transactions.rows_updated), {{"operation", "update"}});
  written.Add(static_cast<double>(transactions.rows_removed), {{"operation", "remove"}});
  for (MetricFamily* each : {&commits, &aborts, &written}) families->push_back(std::move(*each));
  AddCounter(families, "gannet_rollbacks_total", "Transactions that ended by another error, or by a rollback.",
             transactions.rollbacks);
  AddCounter(families, "gannet_rows_read_total", "Rows that attempts read, also to change them.",
             transactions.rows_read);
  AddDurations(
      families, "gannet_commit_seconds",
      "Time from the begin of a commit that writes to its result; of one in 64, unless they wait for the disk.",
      transactions.commits);
}

void AddCommitMetrics(const Database& database, std::vector<MetricFamily>* families) {
  if (!database.log_description().empty()) {
    AddLogMetrics(database, families);
    AddCheckpointMetrics(database.checkpoint_statistics(), families);
  }
  const PrecedenceStatistics starving = database.precedence_statistics();
  AddCounter(families, "gannet_starving_transactions_total",
             "Times that a transaction lost against others for too long, and asked for precedence.", starving.asked);
  AddCounter(families, "gannet_commits_held_up_total", "Commits that waited for a transaction with precedence.",
             starving.held_up);
  Add(families, "gannet_commits_held_up_seconds_total", "Time that these waited.", MetricType::kCounter,
      Seconds(static_cast<double>(starving.held_up_nanos)));
}

std::vector<MetricFamily> MetricsOf(const Database& database) {
  std::vector<MetricFamily> families;
  AddMemoryMetrics(database.memory_statistics(), &families);
  AddTransactionMetrics(database.transaction_statistics(), &families);
  AddCommitMetrics(database, &families);
  AddLoadMetrics(database.load_of(database.node_id()), &families);
  AddPathMetrics(database.path_statistics(), &families);
  return families;
}

std::string Database::MetricsText() const {
  if (!IsHere()) return {};
  return MetricsToText(MetricsOf(*this));
}

}  // namespace gannet::txn
