// AppendHistory: what the clients of a list-append workload did: transactions that append unique numbers to lists and
// read whole lists. A list that was read tells the order in which everything in it was appended; that is why Elle
// (VLDB'21) asks for this workload, and elle.h writes it for Elle.
//
//   const OperationId op = history.Invoke(client, now, {MicroOp::Append(3, 17), MicroOp::Read(4)});
//   history.Complete(op, now, Outcome::kOk, {{}, {1, 2}});     // for each micro-operation the list that it read
//
// A client runs one transaction at a time: one that it left behind when it invokes the next is kInfo. The numbers
// appended to one list are unique. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scenario/check/anomaly.h"
#include "scenario/check/history.h"
#include "scenario/check/serializability.h"

namespace gannet::scenario {

struct MicroOp {
  bool append = false;
  uint64_t key = 0;
  uint64_t value = 0;  // that is appended

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
  // Invocations and completions in the order in which they happened; a transaction without completion has no second.
  struct Event {
    OperationId op;
    bool completion;
  };

  OperationId Invoke(uint32_t client, uint64_t now, std::vector<MicroOp> micro_ops);
  // With kOk, `reads` has an element for each micro-operation; those of appends are not looked at.
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

// Our own judgement of such a history: all lists that were read of a key are prefixes of the longest, nothing in them
// failed, and the graph of serializability.h has no cycle. Operations keep their numbers.
Report CheckListAppend(const AppendHistory& history, const CheckOptions& options = {});

}  // namespace gannet::scenario
