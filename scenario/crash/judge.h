// Judge: knows what was begun and acknowledged, and says whether what a child recovered can be so. There are two kinds:
// CounterJudge, below, and that of lists (append_judge.h).
//
// CounterJudge. The operations of one worker are done one after the other, so what is recovered of them must be a
// prefix: with durability sync, one with every operation that was acknowledged, or seen by a reader that was told what
// it saw, be it by an error; with async, one with every operation that the child knew to be durable, so that what is
// lost was acknowledged after that; and always what was recovered before (a run goes on only after what it recovered).
// Nothing that was not begun.
//
// How long before the crash the lost operations were acknowledged depends on whether the machine let the child's log
// thread run. So that is measured, not judged.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "scenario/crash/message.h"
#include "scenario/crash/options.h"

namespace gannet::scenario::crash {

struct JudgeStatistics {
  uint64_t begun = 0;
  uint64_t acknowledged = 0;
  uint64_t observed = 0;
  uint64_t recoveries = 0;                // states that were compared
  uint64_t recovered_unacknowledged = 0;  // operations that survived though nobody had been told
  uint64_t lost = 0;                      // acknowledged, but gone: async only
  uint64_t most_lost = 0;                 // in one crash
  uint64_t durable_reports = 0;           // async only: how often the child said what is durable
  // From the acknowledgement of the oldest operation that was lost to the last of its child: the longest in one crash.
  uint64_t longest_loss_nanos = 0;
};

class Judge {
 public:
  static std::unique_ptr<Judge> Make(const CrashOptions& options);
  virtual ~Judge() = default;

  // A message of the child. DataLoss says what is wrong with what it recovered.
  virtual Status Take(const Message& message) = 0;
  // The child is dead: a state that it did not finish telling is forgotten.
  virtual void ChildDied() = 0;
  // The next child begins in a new directory.
  virtual void NewDirectory() {}
  // CrashOptions::lists of the next child. `last`: it tells all that there is, and ends.
  virtual KeyRange ListsToTell([[maybe_unused]] bool last) const { return {}; }
  // After the last child, also if one of them failed: what can only be said of all of them together.
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
  // Every worker's number is possible; are the rows what these operations leave?
  virtual Status CheckRows(const State& state) = 0;
  // A message that CounterJudge does not know.
  virtual Status TakeOther(const Message& message);

 private:
  struct Acknowledged {
    uint64_t number;
    uint64_t nanos;
  };
  struct Progress {
    uint64_t recovered = 0;  // by the last child that told
    uint64_t promised = 0;   // acknowledged or observed
    uint64_t durable = 0;    // said the child
    uint64_t acknowledged = 0;
    uint64_t begun = 0;
    std::deque<Acknowledged> waiting = {};  // acknowledged and perhaps not durable; async only
  };
  static size_t WorkersOf(const CrashOptions& options);
  Status CheckState();
  Status CheckCounter(uint32_t worker, uint64_t number);
  void NoteAcknowledged(const Message& message, Progress* progress);
  void NoteDurable(uint64_t number, Progress* progress);
  // Of the operations after `number`.
  static uint64_t OldestAcknowledgement(const Progress& progress, uint64_t number);

  std::vector<Progress> progress_;  // by worker
  State state_;                     // as told so far
  uint64_t last_nanos_ = 0;         // of the child's last acknowledgement
};

}  // namespace gannet::scenario::crash
