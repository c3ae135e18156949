#include "txn/durable/logs_reader.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sometimes.h"
#include "base/stop.h"
#include "log/file/damage.h"
#include "log/format/segment_format.h"
#include "log/format/transaction_format.h"
#include "txn/durable/compare_logs.h"

namespace gannet::txn {
namespace {

constexpr const char* kReading = "the log was read";

}  // namespace

StatusOr<log::LogSummary> LogsReader::ReadOne(int node, uint64_t from_segment, const log::TransactionVisitor& visit,
                                              const std::function<Status(int thread)>& batch_end) const {
  const NodeData& data = nodes_[static_cast<size_t>(node)];
  const log::ReadOptions options{.threads = threads_,
                                 .salvage = salvage_,
                                 .from_segment = from_segment,
                                 .manifest = make_durable_ && node == node_ ? &data.manifest : nullptr,
                                 .make_durable = make_durable_,
                                 .batch_end = batch_end};
  StatusOr<log::LogSummary> summary = log::ReadLog(files_, data.path, options, visit);
  if (!absl::IsNotFound(summary.status())) return summary;
  if (!data.manifest.started) return log::LogSummary{};  // no log yet: nothing recovered
  const std::string missing =
      absl::StrCat(data.path, ": the log is missing (", summary.status().message(), "), but the node has had one");
  if (!salvage_) return absl::DataLossError(absl::StrCat(missing, log::kDamageAdvice));
  log::LogSummary nothing;
  nothing.damages.push_back({.file = data.path, .offset = 0, .what = missing});
  return nothing;
}

void LogsReader::NoteDecision(const log::TransactionView& transaction) {
  if (transaction.part != log::TransactionPart::kDecision) return;
  std::lock_guard lock(mutex_);
  decided_.emplace(transaction.epoch, transaction.id);
}

// The other logs must have all decisions of the epochs that this node's checkpoint leaves to the log.
Status LogsReader::ReadOthers() {
  for (int node = 0; node < std::ssize(nodes_); ++node) {
    if (node == node_) continue;
    const std::string& other = nodes_[static_cast<size_t>(node)].path;
    StatusOr<log::LogBegin> begin = log::FindLogBegin(files_, other);
    if (absl::IsNotFound(begin.status())) begin = log::LogBegin{};
    if (salvage_ && absl::IsDataLoss(begin.status())) begin = log::LogBegin{};  // reading the log reports it
    if (!begin.ok()) return begin.status();
    if (!log::ReachesBack(*begin, checkpoint_.begin_epoch)) {
      const std::string what =
          absl::StrCat(log::SegmentMissingBefore(other, *begin), ": the log begins after epoch ", begin->closed_epoch,
                       ", but node ", node_, " needs it from epoch ", checkpoint_.begin_epoch, " on");
      GANNET_RETURN_IF_ERROR(Found({.file = other, .offset = 0, .what = what}));
    }
    const auto visit = [this](int, const log::TransactionView& transaction) -> Status {
      NoteDecision(transaction);
      return CheckStop(stop_, kReading);
    };
    StatusOr<log::LogSummary> summary = ReadOne(node, begin->segment > 1 ? begin->segment : 0, visit, {});
    if (!summary.ok()) return summary.status();
    recovered_ = std::min(recovered_, summary->end.recovered_epoch);
    last_epoch_ = std::max(last_epoch_, summary->end.last_epoch);
    logs_[static_cast<size_t>(node)] = *std::move(summary);
  }
  decided_elsewhere_ = std::exchange(decided_, {});
  return absl::OkStatus();
}

Status LogsReader::Found(log::Damage damage) {
  if (!salvage_) return absl::DataLossError(absl::StrCat(damage.file, ": ", damage.what, log::kDamageAdvice));
  damages_.push_back(std::move(damage));
  return absl::OkStatus();
}

Status LogsReader::CheckTogether() {
  LogsTogether together = CompareLogs(nodes_, logs_);
  recovered_ = together.recovered_epoch;
  for (log::Damage& problem : together.problems) GANNET_RETURN_IF_ERROR(Found(std::move(problem)));
  return absl::OkStatus();
}

void LogsReader::KeepAside(const log::TransactionView& transaction) {
  size_t bytes = log::kTransactionOverheadBytes;
  for (const log::ChangeView& change : transaction.changes) {
    bytes += log::MaxChangeBytes(change.key().size(), change.payload.size());
  }
  Aside aside{{transaction.epoch, transaction.id}, transaction.part, std::string(bytes, '\0')};
  log::TransactionEncoder encoder(reinterpret_cast<std::byte*>(aside.bytes.data()));
  for (const log::ChangeView& change : transaction.changes) {
    std::byte* payload = encoder.Add(change.kind, change.table, change.version, change.key(), change.payload.size());
    std::copy(change.payload.begin(), change.payload.end(), payload);
  }
  aside.bytes.resize(encoder.Finish(transaction.epoch, transaction.part, transaction.id));
  std::lock_guard lock(mutex_);
  aside_.push_back(std::move(aside));
}

Status LogsReader::Visit(int thread, const log::TransactionView& transaction) {
  GANNET_RETURN_IF_ERROR(CheckStop(stop_, kReading));
  const bool elsewhere_incomplete = transaction.epoch > recovered_;  // another log does not have its epoch
  if (elsewhere_incomplete && !salvage_) {
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return absl::OkStatus();
  }
  if (transaction.epoch < checkpoint_.begin_epoch) return absl::OkStatus();
  NoteDecision(transaction);
  if (elsewhere_incomplete || transaction.epoch > transaction.closed_later ||
      (transaction.part == log::TransactionPart::kPart &&
       !decided_elsewhere_.contains({transaction.epoch, transaction.id}))) {
    KeepAside(transaction);
    return absl::OkStatus();
  }
  return adders_[static_cast<size_t>(thread)]->Add(transaction.epoch, transaction.changes);
}

Status LogsReader::TakeAside(LatestChanges* changes, RecoveryReport* report) const {
  LatestChanges::Adder adder(changes, 0);
  std::vector<log::ChangeView> views;
  for (const Aside& aside : aside_) {
    if (aside.id.first > recovered_) {
      Sometimes<"recovery: a transaction is undone whose epoch is not complete">();
      ++report->undone_transactions;
      continue;
    }
    if (aside.part == log::TransactionPart::kPart && !decided_.contains(aside.id) &&
        !decided_elsewhere_.contains(aside.id)) {
      Sometimes<"recovery: a part is left out that was never decided">();
      ++report->undecided_parts;
      continue;
    }
    log::TransactionDecoder decoder(std::as_bytes(std::span(aside.bytes.data(), aside.bytes.size())),
                                    log::kFormatVersion);
    views.clear();
    const StatusOr<bool> next = decoder.Next(&views);
    if (!next.ok()) return next.status();
    GANNET_RETURN_IF_ERROR(adder.Add(aside.id.first, views));
    GANNET_RETURN_IF_ERROR(adder.Flush());
  }
  return absl::OkStatus();
}

Status LogsReader::Read(LatestChanges* changes, log::LogEnd* end, RecoveryReport* report) {
  GANNET_RETURN_IF_ERROR(ReadOthers());
  for (int thread = 0; thread < threads_; ++thread)
    adders_.push_back(std::make_unique<LatestChanges::Adder>(changes, static_cast<size_t>(thread)));
  const auto visit = [this](int thread, const log::TransactionView& transaction) { return Visit(thread, transaction); };
  const auto batch_end = [this](int thread) { return adders_[static_cast<size_t>(thread)]->Flush(); };
  StatusOr<log::LogSummary> read = ReadOne(node_, checkpoint_.first_segment, visit, batch_end);
  adders_.clear();
  if (!read.ok()) return read.status();
  log::LogSummary* const summary = &(logs_[static_cast<size_t>(node_)] = *std::move(read));
  *end = summary->end;
  GANNET_RETURN_IF_ERROR(CheckTogether());
  report->undone_transactions = left_out_.load();
  end->recovered_epoch = recovered_;
  end->last_epoch = std::max({end->last_epoch, last_epoch_, recovered_});
  report->recovered_epoch = recovered_;
  report->log_segments = summary->segments;
  report->log_bytes = summary->bytes_read;
  report->transactions = summary->transactions;
  report->changes = summary->changes;
  report->torn_tail = summary->torn_tail;
  if (summary->torn_tail) Sometimes<"recovery: the end of a log is torn">();
  report->last_commit_wall_nanos = summary->last_batch_wall_nanos;
  damages_.insert(damages_.begin(), summary->damages.begin(), summary->damages.end());
  for (const log::Damage& damage : damages_) {
    report->damages.push_back(absl::StrCat(damage.file, " at ", damage.offset, ": ", damage.what));
  }
  return TakeAside(changes, report);
}

}  // namespace gannet::txn
