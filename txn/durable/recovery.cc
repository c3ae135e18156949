#include "txn/durable/recovery.h"

#include <sys/resource.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/kill_point.h"
#include "rdma/base/clock.h"
#include "rdma/base/thread.h"
#include "txn/durable/latest_changes.h"
#include "txn/durable/table_rebuilder.h"
#include "txn/session_internal.h"

namespace gannet::txn {
namespace {

double SecondsSince(uint64_t start) {
  return static_cast<double>(NowNanos() - start) * 1e-9;
}

// Reads the logs of all nodes, each once.
//
// A change may be taken at once if its epoch is closed by its own batch and by the other nodes' logs, which are read
// first. What is not is kept aside until the end of this node's log is known: transactions of the last, open epoch, and
// the parts of transactions whose decision is another node's.
class LogsReader {
 public:
  LogsReader(log::FileSystem& files, const std::string& directory, int node, int num_nodes,
             const DatabaseOptions& options, const log::CheckpointDescription& checkpoint)
      : files_(files),
        directory_(directory),
        node_(node),
        num_nodes_(num_nodes),
        options_(options),
        checkpoint_(checkpoint) {}

  // Changes of this node's records that the checkpoint leaves go to *changes.
  Status Read(LatestChanges* changes, log::LogEnd* end, RecoveryReport* report);

 private:
  using Id = std::pair<uint64_t, uint64_t>;  // epoch, id
  struct Aside {
    Id id;
    log::TransactionPart part;
    std::string bytes;  // an encoded transaction
  };

  StatusOr<log::LogSummary> ReadOne(int node, uint64_t from_segment, const log::TransactionVisitor& visit) const;
  Status ReadOthers();
  Status Visit(const log::TransactionView& transaction, LatestChanges* changes);
  void NoteDecision(const log::TransactionView& transaction);
  void KeepAside(const log::TransactionView& transaction);
  Status TakeAside(LatestChanges* changes, RecoveryReport* report) const;

  log::FileSystem& files_;
  std::string directory_;
  int node_;
  int num_nodes_;
  const DatabaseOptions& options_;
  const log::CheckpointDescription& checkpoint_;
  uint64_t recovered_ = UINT64_MAX;  // by all logs read so far
  uint64_t last_epoch_ = 0;

  Mutex mutex_;  // of what follows, while a log is read
  std::set<Id> decided_;
  std::vector<Aside> aside_;
};

StatusOr<log::LogSummary> LogsReader::ReadOne(int node, uint64_t from_segment,
                                              const log::TransactionVisitor& visit) const {
  const log::ReadOptions options{
      .threads = options_.recovery_threads, .salvage = options_.salvage, .from_segment = from_segment};
  StatusOr<log::LogSummary> summary = log::ReadLog(files_, NodeDirectory(directory_, node, num_nodes_), options, visit);
  if (absl::IsNotFound(summary.status())) return log::LogSummary{};  // no log yet: nothing recovered
  return summary;
}

void LogsReader::NoteDecision(const log::TransactionView& transaction) {
  if (transaction.part != log::TransactionPart::kDecision) return;
  std::lock_guard lock(mutex_);
  decided_.emplace(transaction.epoch, transaction.id);
}

// Of the epochs that this node's checkpoint leaves, the other logs must have all decisions.
Status LogsReader::ReadOthers() {
  for (int node = 0; node < num_nodes_; ++node) {
    if (node == node_) continue;
    const std::string other = NodeDirectory(directory_, node, num_nodes_);
    StatusOr<log::LogBegin> begin = log::FindLogBegin(files_, other);
    if (absl::IsNotFound(begin.status())) begin = log::LogBegin{};
    if (!begin.ok()) return begin.status();
    if (begin->closed_epoch >= std::max<uint64_t>(checkpoint_.begin_epoch, 1)) {
      return absl::DataLossError(absl::StrCat(other, ": the log begins after epoch ", begin->closed_epoch,
                                              ", but node ", node_, " needs it from epoch ", checkpoint_.begin_epoch,
                                              " on: log files are missing; restore the directory from a backup"));
    }
    StatusOr<log::LogSummary> summary = ReadOne(node, begin->segment > 1 ? begin->segment : 0,
                                                [this](int, const log::TransactionView& transaction) -> Status {
                                                  NoteDecision(transaction);
                                                  return absl::OkStatus();
                                                });
    if (!summary.ok()) return summary.status();
    recovered_ = std::min(recovered_, summary->end.recovered_epoch);
    last_epoch_ = std::max(last_epoch_, summary->end.last_epoch);
  }
  return absl::OkStatus();
}

void LogsReader::KeepAside(const log::TransactionView& transaction) {
  size_t bytes = log::kTransactionHeaderBytes;
  for (const log::ChangeView& change : transaction.changes) {
    bytes += log::ChangeBytes(change.key.size(), change.payload.size());
  }
  Aside aside{{transaction.epoch, transaction.id}, transaction.part, std::string(bytes, '\0')};
  log::TransactionEncoder encoder(reinterpret_cast<std::byte*>(aside.bytes.data()));
  for (const log::ChangeView& change : transaction.changes) {
    std::byte* payload = encoder.Add(change.kind, change.table, change.version, change.key, change.payload.size());
    std::copy(change.payload.begin(), change.payload.end(), payload);
  }
  encoder.Finish(transaction.epoch, transaction.part, transaction.id);
  std::lock_guard lock(mutex_);
  aside_.push_back(std::move(aside));
}

Status LogsReader::Visit(const log::TransactionView& transaction, LatestChanges* changes) {
  if (transaction.epoch > recovered_) return absl::OkStatus();  // some other log does not have its epoch
  if (transaction.epoch < checkpoint_.begin_epoch) return absl::OkStatus();
  NoteDecision(transaction);
  if (transaction.part == log::TransactionPart::kPart || transaction.epoch > transaction.closed_epoch) {
    KeepAside(transaction);
    return absl::OkStatus();
  }
  for (const log::ChangeView& change : transaction.changes) changes->Add(transaction.epoch, change);
  return absl::OkStatus();
}

Status LogsReader::TakeAside(LatestChanges* changes, RecoveryReport* report) const {
  for (const Aside& aside : aside_) {
    if (aside.id.first > recovered_) {
      ++report->undone_transactions;
      continue;
    }
    if (aside.part == log::TransactionPart::kPart && !decided_.contains(aside.id)) {
      ++report->undecided_parts;
      continue;
    }
    log::TransactionDecoder decoder(std::as_bytes(std::span(aside.bytes.data(), aside.bytes.size())));
    const StatusOr<bool> next = decoder.Next();
    if (!next.ok()) return next.status();
    for (log::ChangeView change; decoder.NextChange(&change);) changes->Add(aside.id.first, change);
  }
  return absl::OkStatus();
}

Status LogsReader::Read(LatestChanges* changes, log::LogEnd* end, RecoveryReport* report) {
  GANNET_RETURN_IF_ERROR(ReadOthers());
  const StatusOr<log::LogSummary> summary =
      ReadOne(node_, checkpoint_.first_segment,
              [&](int, const log::TransactionView& transaction) { return Visit(transaction, changes); });
  if (!summary.ok()) return summary.status();
  *end = summary->end;
  recovered_ = std::min(recovered_, end->recovered_epoch);
  end->recovered_epoch = recovered_;
  end->last_epoch = std::max({end->last_epoch, last_epoch_, recovered_});
  report->recovered_epoch = recovered_;
  report->log_segments = summary->segments;
  report->log_bytes = summary->bytes_read;
  report->transactions = summary->transactions;
  report->changes = summary->changes;
  report->torn_tail = summary->torn_tail;
  report->last_commit_wall_nanos = summary->last_batch_wall_nanos;
  for (const log::Damage& damage : summary->damages) {
    report->damages.push_back(absl::StrCat(damage.file, " at ", damage.offset, ": ", damage.what));
  }
  return TakeAside(changes, report);
}

Status CheckTables(const DatabaseState& state, const log::Manifest& manifest, const std::string& directory) {
  if (manifest.num_nodes != state.fabric->num_nodes()) {
    return absl::InvalidArgumentError(absl::StrCat(directory, " belongs to a cluster of ", manifest.num_nodes,
                                                   " nodes; open it with as many, not ", state.fabric->num_nodes()));
  }
  for (const log::TableDescription& had : manifest.tables) {
    const Table* table = state.TableById(had.id);
    if (table == nullptr || table->name() != had.name) {
      return absl::InvalidArgumentError(absl::StrCat(directory, " has a table '", had.name, "' as number ", had.id,
                                                     "; create the same tables in the same order before Start"));
    }
    const log::TableDescription has = DescribeTable(*table);
    if (has.integer_keys != had.integer_keys || has.max_key_bytes != had.max_key_bytes ||
        has.payload_bytes != had.payload_bytes || has.variable_length != had.variable_length) {
      return absl::InvalidArgumentError(absl::StrCat("table '", had.name, "' in ", directory,
                                                     " has other keys or payloads than the one the program creates"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string NodeDirectory(const std::string& directory, int node, int num_nodes) {
  return num_nodes == 1 ? directory : absl::StrCat(directory, "/node-", node);
}

log::TableDescription DescribeTable(const Table& table) {
  const TableOptions& options = table.options();
  return {.id = table.id(),
          .name = options.name,
          .integer_keys = options.key_kind == index::KeyKind::kInteger,
          .max_key_bytes = static_cast<uint32_t>(options.max_key_bytes),
          .index = options.index == IndexKind::kHash ? "hash" : "xstore",
          .payload_bytes = static_cast<uint32_t>(options.payload_bytes),
          .variable_length = options.variable_length,
          .replicated = options.placement.replicated,
          .expected_rows = options.expected_rows};
}

Status Recover(DatabaseState& state, log::FileSystem& files, const std::string& directory, log::LogEnd* end,
               RecoveryReport* report) {
  const int node = state.node->id();
  const std::string own = NodeDirectory(directory, node, state.fabric->num_nodes());
  StatusOr<log::Manifest> manifest = log::ReadManifest(files, own);
  if (absl::IsNotFound(manifest.status())) return absl::OkStatus();
  if (!manifest.ok()) return manifest.status();
  GANNET_RETURN_IF_ERROR(CheckTables(state, *manifest, own));

  const uint64_t start = NowNanos();
  const log::CheckpointDescription checkpoint =
      manifest->checkpoints.empty() ? log::CheckpointDescription{} : manifest->checkpoints.front();
  LatestChanges changes;
  LogsReader reader(files, directory, node, state.fabric->num_nodes(), state.options, checkpoint);
  GANNET_RETURN_IF_ERROR(reader.Read(&changes, end, report));
  if (checkpoint.end_epoch > end->recovered_epoch) {
    return absl::DataLossError(absl::StrCat(own, ": the checkpoint ", checkpoint.id, " goes up to epoch ",
                                            checkpoint.end_epoch, ", but the logs only to ", end->recovered_epoch,
                                            ": log files are missing; restore the directory from a backup"));
  }
  report->log_seconds = SecondsSince(start);
  log::MayDieHere(log::KillPoint::kRecoveryRead);

  const uint64_t load_start = NowNanos();
  TableRebuilder rebuilder(&state, &files, own, checkpoint, &changes);
  GANNET_RETURN_IF_ERROR(rebuilder.RebuildAll(state.options.recovery_threads, report));
  report->checkpoint_id = checkpoint.id;
  report->checkpoint_bytes = checkpoint.bytes();
  report->load_seconds = SecondsSince(load_start);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  report->peak_memory_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  log::MayDieHere(log::KillPoint::kRecoveryLoaded);
  return absl::OkStatus();
}

}  // namespace gannet::txn
