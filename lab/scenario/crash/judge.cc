#include "lab/scenario/crash/judge.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "lab/scenario/crash/append_judge.h"
#include "lab/scenario/crash/load.h"
#include "lab/scenario/crash/operation.h"
#include "lab/scenario/crash/tables.h"

namespace gannet::scenario::crash {
namespace {

// Follows the operations of kv.
class KvJudge final : public CounterJudge {
 public:
  explicit KvJudge(const CrashOptions& options)
      : CounterJudge(options), followed_(static_cast<size_t>(options.workers())) {}

 private:
  Status CheckRows(const State& state) override {
    for (const auto& [worker, number] : state.counters) Follow(worker, number);
    for (const auto& [key, content] : rows_) {
      const auto found = state.rows.find(key);
      if (found == state.rows.end()) return Wrong(state, key, "is missing");
      if (found->second != content) return Wrong(state, key, "has another content");
    }
    for (const auto& [key, content] : state.rows) {
      if (!rows_.contains(key)) return Wrong(state, key, "should not be there");
    }
    return absl::OkStatus();
  }

  void Follow(uint32_t worker, uint64_t number) {
    for (uint64_t& n = followed_[worker]; n < number;) {
      ++n;
      for (const KvChange& change : KvOperation(options_.seed, worker, n)) {
        const RowKey key{change.table, worker, change.key};
        if (change.remove) {
          rows_.erase(key);
        } else {
          rows_[key] = change.content;
        }
      }
    }
  }

  static Status Wrong(const State& state, const RowKey& key, const char* what) {
    const auto& [table, worker, number] = key;
    return absl::DataLossError(absl::StrFormat("after operation %d of worker %d, its row %d of the %s table %s",
                                               state.counters.at(worker), worker, number,
                                               table == kHashTable ? "hash" : "ordered", what));
  }

  std::vector<uint64_t> followed_;
  std::map<RowKey, uint64_t> rows_;
};

// Checks the sum of all accounts, their numbers of transfers, and the journals' ends.
class BankJudge final : public CounterJudge {
 public:
  explicit BankJudge(const CrashOptions& options) : CounterJudge(options) {}

 private:
  Status CheckRows(const State& state) override {
    uint64_t transfers = 0;
    for (const auto& [worker, number] : state.counters) {
      transfers += number;
      GANNET_RETURN_IF_ERROR(CheckJournal(state, worker, number));
    }
    int64_t balance = 0;
    uint64_t moves = 0;
    uint64_t accounts = 0;
    for (const auto& [key, content] : state.rows) {
      const auto& [table, worker, number] = key;
      if (table == kBalances) balance += static_cast<int64_t>(content);
      if (table == kBalances) ++accounts;
      if (table == kMoves) moves += content;
    }
    if (accounts == 0 && transfers == 0) return absl::OkStatus();  // the bank was never opened
    if (accounts != kAccounts)
      return Wrong("accounts", static_cast<int64_t>(kAccounts), static_cast<int64_t>(accounts));
    const int64_t opened = static_cast<int64_t>(kAccounts) * kOpeningBalance;
    if (balance != opened) return Wrong("the sum of all balances", opened, balance);
    if (moves != 2 * transfers) {
      return Wrong("movements on all accounts", static_cast<int64_t>(2 * transfers), static_cast<int64_t>(moves));
    }
    return absl::OkStatus();
  }

  Status CheckJournal(const State& state, uint32_t worker, uint64_t number) {
    const uint64_t first = number < kJournalEntries ? 1 : number - kJournalEntries + 1;
    const auto begin = state.rows.lower_bound({kJournal, worker, 0});
    const auto end = state.rows.upper_bound({kJournal, worker, UINT64_MAX});
    uint64_t expected = first;
    for (auto row = begin; row != end; ++row, ++expected) {
      const uint64_t entry = std::get<2>(row->first);
      if (entry != expected || row->second != ContentOf(BankOperation(options_.seed, worker, entry))) {
        return absl::DataLossError(absl::StrFormat(
            "after transfer %d of worker %d, its journal has entry %d where entry %d should be, or another content",
            number, worker, entry, expected));
      }
    }
    if (expected == number + 1) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrFormat("after transfer %d of worker %d, its journal ends before entry %d", number, worker, expected));
  }

  static Status Wrong(const char* what, int64_t should, int64_t is) {
    return absl::DataLossError(absl::StrFormat("%s: should be %d, but is %d", what, should, is));
  }
};

// The counters show what TPC-C's own conditions do not: no acknowledged order is missing.
class TpccJudge final : public CounterJudge {
 public:
  explicit TpccJudge(const CrashOptions& options) : CounterJudge(options) {}

 private:
  Status CheckRows(const State&) override { return absl::OkStatus(); }
};

}  // namespace

std::unique_ptr<Judge> Judge::Make(const CrashOptions& options) {
  switch (options.workload) {
    case WorkloadKind::kBank:
      return std::make_unique<BankJudge>(options);
    case WorkloadKind::kTpcc:
      return std::make_unique<TpccJudge>(options);
    case WorkloadKind::kAppend:
      return std::make_unique<AppendJudge>(options);
    case WorkloadKind::kLoad:
      return MakeLoadJudge(options);
    case WorkloadKind::kKv:
    case WorkloadKind::kRectangles:
      break;
  }
  return std::make_unique<KvJudge>(options);
}

size_t CounterJudge::WorkersOf(const CrashOptions& options) {
  return options.workload == WorkloadKind::kTpcc ? kTpccWorkers : static_cast<size_t>(options.workers());
}

Status CounterJudge::Take(const Message& message) {
  if (message.worker >= progress_.size()) return absl::InternalError("the child names a worker that does not exist");
  Progress& progress = progress_[message.worker];
  switch (message.kind) {
    case MessageKind::kRecovered:
    case MessageKind::kRunning:
    case MessageKind::kClosed:
      return absl::OkStatus();
    case MessageKind::kCounter:
      state_.counters[message.worker] = message.number;
      return absl::OkStatus();
    case MessageKind::kRow:
      state_.rows[{message.a, message.worker, message.b}] = message.c;
      return absl::OkStatus();
    case MessageKind::kStateEnd:
      if (message.number != message.a) {
        return absl::DataLossError(
            absl::StrFormat("the indexes count %d keys, but %d rows were found", message.number, message.a));
      }
      return CheckState();
    case MessageKind::kBegun:
      ++statistics_.begun;
      progress.begun = std::max(progress.begun, message.number);
      return absl::OkStatus();
    case MessageKind::kAcknowledged:
      NoteAcknowledged(message, &progress);
      return absl::OkStatus();
    case MessageKind::kDurable:
      NoteDurable(message.number, &progress);
      return absl::OkStatus();
    case MessageKind::kObserved:
      ++statistics_.observed;
      progress.promised = std::max(progress.promised, message.number);
      return absl::OkStatus();
    default:
      return TakeOther(message);
  }
}

Status CounterJudge::TakeOther(const Message&) {
  return absl::InternalError("the child sent a message that this workload does not have");
}

void CounterJudge::NoteAcknowledged(const Message& message, Progress* progress) {
  ++statistics_.acknowledged;
  progress->begun = std::max(progress->begun, message.number);
  progress->acknowledged = std::max(progress->acknowledged, message.number);
  progress->promised = std::max(progress->promised, message.number);
  last_nanos_ = std::max(last_nanos_, message.a);
  if (options_.mode == txn::DurabilityMode::kAsync) progress->waiting.push_back({message.number, message.a});
}

// An order of TPC-C may be acknowledged before an earlier one of its district: then it stays in `waiting` for a while.
void CounterJudge::NoteDurable(uint64_t number, Progress* progress) {
  ++statistics_.durable_reports;
  progress->durable = std::max(progress->durable, number);
  std::deque<Acknowledged>& waiting = progress->waiting;
  while (!waiting.empty() && waiting.front().number <= progress->durable) waiting.pop_front();
}

uint64_t CounterJudge::OldestAcknowledgement(const Progress& progress, uint64_t number) {
  uint64_t oldest = UINT64_MAX;
  for (const Acknowledged& waiting : progress.waiting) {
    if (waiting.number > number) oldest = std::min(oldest, waiting.nanos);
  }
  return oldest;
}

void CounterJudge::ChildDied() {
  state_ = {};
}

void CounterJudge::NewDirectory() {
  progress_.assign(progress_.size(), {});
  last_nanos_ = 0;
}

Status CounterJudge::CheckCounter(uint32_t worker, uint64_t number) {
  Progress& progress = progress_[worker];
  const bool sync = options_.mode == txn::DurabilityMode::kSync;
  const uint64_t least = std::max(sync ? progress.promised : progress.durable, progress.recovered);
  if (number < least) {
    return absl::DataLossError(
        absl::StrFormat("worker %d: operation %d was %s, but only those up to %d were recovered", worker, least,
                        least == progress.recovered      ? "recovered before"
                        : !sync                          ? "durable, as the log had said"
                        : least == progress.acknowledged ? "acknowledged"
                                                         : "seen by a reader that was acknowledged",
                        number));
  }
  if (options_.workload != WorkloadKind::kTpcc && number > progress.begun) {
    return absl::DataLossError(absl::StrFormat(
        "worker %d: operation %d was recovered, but only those up to %d were begun", worker, number, progress.begun));
  }
  return absl::OkStatus();
}

Status CounterJudge::CheckState() {
  uint64_t lost = 0;
  uint64_t oldest_lost = last_nanos_;
  for (uint32_t worker = 0; worker < progress_.size(); ++worker) {
    const uint64_t number = state_.counters[worker];  // 0 if there is none
    GANNET_RETURN_IF_ERROR(CheckCounter(worker, number));
    Progress& progress = progress_[worker];
    if (number < progress.acknowledged) lost += progress.acknowledged - number;
    oldest_lost = std::min(oldest_lost, OldestAcknowledgement(progress, number));
    const uint64_t told = std::max(progress.acknowledged, progress.recovered);
    // The first orders of TPC-C come from the load.
    const bool loaded = options_.workload == WorkloadKind::kTpcc && progress.recovered == 0;
    if (number > told && !loaded) statistics_.recovered_unacknowledged += number - told;
    progress = {.recovered = number, .promised = number, .durable = number, .acknowledged = number, .begun = number};
  }
  statistics_.lost += lost;
  statistics_.most_lost = std::max(statistics_.most_lost, lost);
  statistics_.longest_loss_nanos = std::max(statistics_.longest_loss_nanos, last_nanos_ - oldest_lost);
  last_nanos_ = 0;
  ++statistics_.recoveries;
  return CheckRows(std::exchange(state_, {}));
}

}  // namespace gannet::scenario::crash
