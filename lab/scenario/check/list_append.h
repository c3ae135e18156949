// AppendHistory: the history of a list-append workload, whose transactions append unique numbers to lists and read
// whole lists. A list that was read shows the order of all appends to it. That is why Elle (VLDB'21) uses this
// workload; elle.h exports the history for Elle.
//
//   const OperationId op = history.Invoke(client, now, {MicroOp::Append(3, 17), MicroOp::Read(4)});
//   history.Complete(op, now, Outcome::kOk, {{}, {1, 2}});     // for each micro-operation the list that it read
//
// A client runs one transaction at a time. If it invokes the next one without completing the previous one, that one is
// kInfo. The numbers appended to a list are unique. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lab/scenario/check/anomaly.h"
#include "lab/scenario/check/history.h"
#include "lab/scenario/check/serializability.h"

namespace gannet::scenario {

struct MicroOp {
  bool append = false;
  uint64_t key = 0;
  uint64_t value = 0;  // of an append

  static MicroOp Append(uint64_t key, uint64_t value) { return {true, key, value}; }
  static MicroOp Read(uint64_t key) { return {false, key, 0}; }
};

using List = std::vector<uint64_t>;

struct AppendOperation {
  uint32_t client = 0;
  Outcome outcome = Outcome::kInfo;
  uint64_t invoked = 0;
  uint64_t completed = kNever;
  std::vector<MicroOp> micro_ops;
  std::vector<List> reads;  // with kOk, one for each micro-operation
};

class AppendHistory {
 public:
  // Invocations and completions in the order in which they happened. A transaction without completion has one event.
  struct Event {
    OperationId op;
    bool completion;
  };

  OperationId Invoke(uint32_t client, uint64_t now, std::vector<MicroOp> micro_ops);
  // With kOk, `reads` has an element for each micro-operation; the elements of appends are ignored.
  void Complete(OperationId op, uint64_t now, Outcome outcome, std::vector<List> reads = {});

  size_t size() const { return operations_.size(); }
  const AppendOperation& operation(OperationId op) const { return operations_[op]; }
  std::span<const Event> events() const { return events_; }
  uint32_t num_clients() const { return static_cast<uint32_t>(running_.size()); }

 private:
  static constexpr OperationId kIdle = UINT32_MAX;
  std::vector<AppendOperation> operations_;
  std::vector<Event> events_;
  std::vector<OperationId> running_;  // by client
};

// Judges such a history: all lists read for a key are prefixes of the longest one, no element's append failed, and the
// graph of serializability.h has no cycle. Operations keep their numbers.
Report CheckListAppend(const AppendHistory& history, const CheckOptions& options = {});

}  // namespace gannet::scenario
