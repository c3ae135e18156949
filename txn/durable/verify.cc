#include "txn/durable/verify.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/stop.h"
#include "index/registry.h"
#include "log/checkpoint/checkpoint.h"
#include "log/format/segment_format.h"
#include "log/format/transaction_format.h"
#include "log/manifest/manifest.h"
#include "log/segment/end_note.h"
#include "txn/durable/catalog.h"
#include "txn/durable/compare_logs.h"
#include "txn/durable/data_directory.h"

namespace gannet::txn {
namespace {

constexpr const char* kLooking = "the directory was checked";
constexpr size_t kMostProblems = 1000;  // of records that do not fit; a wrong table would fill the screen

// The reason why a record cannot belong to this table; empty if it can.
std::string Misfit(const log::TableDescription* table, uint16_t id, std::span<const std::byte> key,
                   const std::span<const std::byte>* payload) {
  if (table == nullptr) return absl::StrFormat("a record of table %d, which the manifest does not name", id);
  if (table->integer_keys ? key.size() != 8 : key.size() > table->max_key_bytes) {
    return absl::StrFormat("a key of %d bytes does not fit table '%s'", key.size(), table->name);
  }
  if (payload == nullptr) return "";
  const bool is_long_enough = table->variable_length || payload->size() >= table->least_payload_bytes;
  if (payload->size() > table->payload_bytes || !is_long_enough) {
    return absl::StrFormat("a payload of %d bytes does not fit table '%s'", payload->size(), table->name);
  }
  return "";
}

// Checks one node.
class NodeVerifier {
 public:
  NodeVerifier(log::FileSystem* files, const NodeData* node, int threads, const std::atomic<bool>* stop,
               Verification* all)
      : files_(files), node_(node), threads_(threads), stop_(stop), all_(all) {
    result_.path = node->path;
  }

  Status Verify() {
    GANNET_RETURN_IF_ERROR(VerifyLog());
    VerifyEndNote();
    for (const log::CheckpointDescription& checkpoint : node_->manifest.checkpoints) {
      GANNET_RETURN_IF_ERROR(VerifyCheckpoint(checkpoint));
    }
    GANNET_RETURN_IF_ERROR(LookForOthers());
    all_->nodes.push_back(std::move(result_));
    return absl::OkStatus();
  }

 private:
  // A number that was given, and that no table has: logs keep changes of tables that were dropped.
  bool WasDropped(uint16_t id) const { return id < node_->manifest.next_table && TableOf(id) == nullptr; }
  const log::TableDescription* TableOf(uint16_t id) const { return TableById(node_->manifest, id); }

  void Add(std::string file, uint64_t offset, std::string what) {
    const std::lock_guard lock(mutex_);
    if (all_->problems.size() < kMostProblems) all_->problems.push_back({std::move(file), offset, std::move(what)});
  }

  // The first segment that a checkpoint, or recovery without one, needs. Other nodes read the whole log, because it may
  // have decisions about their transactions.
  uint64_t NeededFrom() const {
    const auto& checkpoints = node_->manifest.checkpoints;
    const uint64_t own = checkpoints.empty() ? 0 : checkpoints.back().first_segment;
    if (node_->manifest.num_nodes == 1) return own;
    const StatusOr<log::LogBegin> begin = log::FindLogBegin(*files_, node_->path);
    if (!begin.ok()) return 0;  // reading the log reports the reason
    return std::min(own, begin->segment > 1 ? begin->segment : 0);
  }

  // The part of the log that is needed.
  Status VerifyLog() {
    const log::ReadOptions options{.threads = threads_, .salvage = true, .from_segment = NeededFrom()};
    StatusOr<log::LogSummary> summary =
        log::ReadLog(*files_, node_->path, options, [this](int, const log::TransactionView& transaction) {
          VerifyTransaction(transaction);
          return CheckStop(stop_, kLooking);
        });
    if (absl::IsNotFound(summary.status())) {
      if (node_->manifest.started) {
        Add(node_->path, 0,
            absl::StrFormat("the log is missing (%s), but the node has had one", summary.status().message()));
      }
      return absl::OkStatus();
    }
    if (!summary.ok()) return summary.status();
    for (const log::Damage& damage : summary->damages) Add(damage.file, damage.offset, damage.what);
    result_.log = *std::move(summary);
    return absl::OkStatus();
  }

  // What is wrong with a note that does not count. Reading the log reports the other one.
  void VerifyEndNote() {
    std::string doubt;
    const StatusOr<log::EndNote> note = log::ReadEndNote(*files_, node_->path, &doubt);
    if (note.ok() && !doubt.empty()) Add(node_->path + "/" + log::kEndNoteName, 0, doubt);
  }

  void VerifyTransaction(const log::TransactionView& transaction) {
    for (const log::ChangeView& change : transaction.changes) {
      if (WasDropped(change.table)) continue;
      const bool put = change.kind == log::ChangeKind::kPut;
      const std::string misfit =
          Misfit(TableOf(change.table), change.table, change.key(), put ? &change.payload : nullptr);
      if (misfit.empty()) continue;
      Add(node_->path + "/" + log::SegmentName(transaction.batch.segment), transaction.batch.offset,
          "in the batch here: " + misfit);
    }
  }

  Status VerifyCheckpoint(const log::CheckpointDescription& checkpoint) {
    ++result_.checkpoints;
    const std::string path = log::CheckpointDirectory(node_->path, checkpoint.id);
    if (checkpoint.begin_epoch > checkpoint.end_epoch) {
      Add(node_->path + "/MANIFEST", 0,
          absl::StrFormat("checkpoint %d begins with epoch %d, but ends with %d", checkpoint.id, checkpoint.begin_epoch,
                          checkpoint.end_epoch));
    }
    for (const log::CheckpointFile& file : checkpoint.files) {
      GANNET_RETURN_IF_ERROR(VerifyFile(checkpoint, file, path + "/" + file.name));
      result_.checkpoint_bytes += file.bytes;
      result_.checkpoint_records += file.records;
    }
    return absl::OkStatus();
  }

  Status VerifyFile(const log::CheckpointDescription& checkpoint, const log::CheckpointFile& file,
                    const std::string& path) {
    const log::TableDescription* const table = TableOf(file.table);
    const index::IndexKindEntry* const kind = table == nullptr ? nullptr : index::FindIndexKind(table->index);
    const bool ordered = kind != nullptr && kind->traits.keeps_order;
    std::optional<std::string> last;
    uint64_t record_number = 0;
    const auto check = [&](const log::CheckpointRecord& record) {
      ++record_number;
      std::string wrong = record.table == file.table ? Misfit(table, record.table, record.key, &record.payload)
                                                     : absl::StrFormat("it is of table %d", record.table);
      std::string key(reinterpret_cast<const char*>(record.key.data()), record.key.size());
      if (wrong.empty() && ordered && last.has_value() && key <= *last) {
        wrong = key == *last ? "its key is there twice" : "its key is less than the one before";
      }
      if (!wrong.empty()) Add(path, 0, absl::StrFormat("record %d: %s", record_number, wrong));
      last = std::move(key);
    };
    const auto visit = [&](std::span<const log::CheckpointRecord> records) {
      for (const log::CheckpointRecord& record : records) check(record);
      return CheckStop(stop_, kLooking);
    };
    return log::ReadCheckpointFile(*files_, node_->path, log::Identity::FromText(node_->manifest.database),
                                   checkpoint.id, file, visit,
                                   [&](uint64_t offset, const std::string& what) { Add(path, offset, what); });
  }

  // Notes files that are not needed.
  Status LookForOthers() {
    const StatusOr<std::vector<std::string>> names = files_->List(node_->path);
    if (!names.ok()) return names.status();
    std::set<std::string> known = {"MANIFEST", log::kEndNoteName};
    for (const log::CheckpointDescription& checkpoint : node_->manifest.checkpoints) {
      const std::string path = log::CheckpointDirectory(node_->path, checkpoint.id);
      known.insert(path.substr(node_->path.size() + 1));
    }
    size_t spares = 0;
    for (const std::string& name : *names) {
      if (known.contains(name) || log::SegmentOfName(name).has_value()) continue;
      if (name.starts_with(log::kSpareSegmentPrefix)) {
        ++spares;
        continue;
      }
      all_->notes.push_back(
          absl::StrFormat("%s/%s belongs to nothing; a crash while it was made may have left it", node_->path, name));
    }
    if (spares != 0)
      all_->notes.push_back(absl::StrFormat("%s has %d files for segments to come (%s*), ready for the next run",
                                            node_->path, spares, log::kSpareSegmentPrefix));
    return absl::OkStatus();
  }

  log::FileSystem* const files_;
  const NodeData* const node_;
  const int threads_;
  const std::atomic<bool>* const stop_;
  Verification* const all_;
  NodeVerification result_;
  std::mutex mutex_;  // guards the problems while a log is read
};

// The logs must belong together. For the epochs that a node's checkpoint leaves to the logs, the other logs must be
// complete, too, because they have the decisions.
Status CompareNodes(log::FileSystem& files, const std::vector<NodeData>& nodes, Verification* all) {
  std::vector<log::LogSummary> logs;
  for (const NodeVerification& node : all->nodes) logs.push_back(node.log);
  for (Problem& problem : CompareLogs(nodes, logs).problems) all->problems.push_back(std::move(problem));
  for (const NodeData& node : nodes) {
    // A node without a checkpoint needs all of every log.
    const log::CheckpointDescription newest =
        node.manifest.checkpoints.empty() ? log::CheckpointDescription{} : node.manifest.checkpoints.front();
    for (const NodeData& other : nodes) {
      if (&other == &node) continue;
      const StatusOr<log::LogBegin> begin = log::FindLogBegin(files, other.path);
      // This is reported already: there is no log where there should be one, or a damaged first segment.
      if (absl::IsNotFound(begin.status()) || absl::IsDataLoss(begin.status())) continue;
      if (!begin.ok()) return begin.status();
      if (log::ReachesBack(*begin, newest.begin_epoch)) continue;
      all->problems.push_back({other.path, 0,
                               absl::StrFormat("%s: its log begins after epoch %d, but %s needs it from epoch %d on",
                                               log::SegmentMissingBefore(other.path, *begin), begin->closed_epoch,
                                               node.path, newest.begin_epoch)});
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Verification> VerifyDataDirectory(log::FileSystem& files, const std::string& directory, int threads,
                                           const std::atomic<bool>* stop) {
  const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(files, directory);
  if (!nodes.ok()) return nodes.status();
  Verification all;
  for (const NodeData& node : *nodes) {
    NodeVerifier verifier(&files, &node, threads, stop, &all);
    GANNET_RETURN_IF_ERROR(verifier.Verify());
  }
  GANNET_RETURN_IF_ERROR(CompareNodes(files, *nodes, &all));
  return all;
}

std::string ToText(const Problem& problem) {
  return absl::StrFormat("%s at offset %d: %s", problem.file, problem.offset, problem.what);
}

}  // namespace gannet::txn
