// Judge: knows which operations were begun and acknowledged, and decides whether a state that a child recovered is
// possible. There are two kinds: CounterJudge, below, and that of lists (append_judge.h).
//
// CounterJudge. One worker's operations are done one after the other, so the recovered ones must be a prefix. With
// durability sync, the prefix contains every operation that was acknowledged, and every one seen by a reader that was
// told what it saw, even by an error. With async, it contains every operation that the child knew to be durable, so
// that lost ones were acknowledged after that. It always contains what was recovered before, because a run continues
// only after what it recovered. It contains nothing that was not begun.
//
// How long before the crash the lost operations were acknowledged depends on whether the machine let the child's log
// thread run. So this time is measured, not judged.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "lab/scenario/crash/message.h"
#include "lab/scenario/crash/options.h"

namespace gannet::scenario::crash {

struct JudgeStatistics {
  uint64_t begun = 0;
  uint64_t acknowledged = 0;
  uint64_t observed = 0;
  uint64_t recoveries = 0;                // states that were compared
  uint64_t recovered_unacknowledged = 0;  // operations that survived without an acknowledgement
  uint64_t lost = 0;                      // acknowledged, but lost: async only
  uint64_t most_lost = 0;                 // in one crash
  uint64_t durable_reports = 0;           // async only: number of reports of what is durable
  // The longest time, in one crash, from the acknowledgement of the oldest lost operation to the child's last
  // acknowledgement.
  uint64_t longest_loss_nanos = 0;
};

class Judge {
 public:
  static std::unique_ptr<Judge> Make(const CrashOptions& options);
  virtual ~Judge() = default;

  // Takes a message of the child. DataLoss says what is wrong with the state that it recovered.
  virtual Status Take(const Message& message) = 0;
  // The child is dead: forgets a state that it did not report completely.
  virtual void ChildDied() = 0;
  // The next child begins in a new directory.
  virtual void NewDirectory() {}
  // CrashOptions::lists of the next child. `last`: it reports everything, and ends.
  virtual KeyRange ListsToTell([[maybe_unused]] bool last) const { return {}; }
  // Called after the last child, also if one of them failed: judges all of them together.
  virtual Status Finish() { return absl::OkStatus(); }
  // One line, after Finish; may be empty.
  virtual std::string Verdict() const { return ""; }
  const JudgeStatistics& statistics() const { return statistics_; }

 protected:
  explicit Judge(const CrashOptions& options) : options_(options) {}

  const CrashOptions options_;
  JudgeStatistics statistics_;
};

class CounterJudge : public Judge {
 public:
  Status Take(const Message& message) override;
  void ChildDied() override;
  void NewDirectory() override;

 protected:
  using RowKey = std::tuple<uint64_t, uint32_t, uint64_t>;  // table, worker, key
  struct State {
    std::map<uint32_t, uint64_t> counters;  // by worker
    std::map<RowKey, uint64_t> rows;        // contents
  };

  explicit CounterJudge(const CrashOptions& options) : Judge(options), progress_(WorkersOf(options)) {}
  // Checks that the rows are those that the operations leave. Every worker's number is possible.
  virtual Status CheckRows(const State& state) = 0;
  // Takes a message that CounterJudge does not know.
  virtual Status TakeOther(const Message& message);

 private:
  struct Acknowledged {
    uint64_t number;
    uint64_t nanos;
  };
  struct Progress {
    uint64_t recovered = 0;  // by the last child that reported
    uint64_t promised = 0;   // acknowledged or observed
    uint64_t durable = 0;    // according to the child
    uint64_t acknowledged = 0;
    uint64_t begun = 0;
    std::deque<Acknowledged> waiting = {};  // acknowledged and possibly not durable; async only
  };
  static size_t WorkersOf(const CrashOptions& options);
  Status CheckState();
  Status CheckCounter(uint32_t worker, uint64_t number);
  void NoteAcknowledged(const Message& message, Progress* progress);
  void NoteDurable(uint64_t number, Progress* progress);
  // Time of the oldest acknowledgement of an operation after `number`.
  static uint64_t OldestAcknowledgement(const Progress& progress, uint64_t number);

  std::vector<Progress> progress_;  // by worker
  State state_;                     // as far as it has been reported
  uint64_t last_nanos_ = 0;         // of the child's last acknowledgement
};

}  // namespace gannet::scenario::crash
