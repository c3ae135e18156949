#include "lab/scenario/check/elle.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gannet::scenario {
namespace {

const char* TypeOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return ":ok";
    case Outcome::kFail:
      return ":fail";
    case Outcome::kInfo:
      break;
  }
  return ":info";
}

class EdnWriter {
 public:
  explicit EdnWriter(const AppendHistory& history) : history_(history) {
    for (uint32_t client = 0; client < history.num_clients(); ++client) process_.push_back(client);
  }

  std::string Write() {
    std::vector<uint8_t> completed(history_.size());
    for (const AppendHistory::Event& event : history_.events()) {
      const AppendOperation& operation = history_.operation(event.op);
      if (event.completion) {
        completed[event.op] = 1;
        WriteCompletion(operation, operation.completed);
      } else {
        WriteLine(":invoke", operation, /*with_reads=*/false, operation.invoked);
      }
    }
    for (OperationId op = 0; op < history_.size(); ++op) {
      if (!completed[op]) WriteCompletion(history_.operation(op), last_time_);
    }
    return std::move(text_);
  }

 private:
  void WriteCompletion(const AppendOperation& operation, uint64_t time) {
    WriteLine(TypeOf(operation.outcome), operation, operation.outcome == Outcome::kOk, time);
    if (operation.outcome == Outcome::kInfo) process_[operation.client] += history_.num_clients();
  }

  void WriteLine(const char* type, const AppendOperation& operation, bool with_reads, uint64_t time) {
    last_time_ = std::max(last_time_, time);
    absl::StrAppend(&text_, "{:type ", type, ", :f :txn, :value [");
    for (size_t i = 0; i < operation.micro_ops.size(); ++i) {
      const MicroOp& micro = operation.micro_ops[i];
      absl::StrAppend(&text_, i == 0 ? "" : " ", micro.append ? "[:append " : "[:r ", micro.key, " ");
      if (micro.append) {
        absl::StrAppend(&text_, micro.value, "]");
      } else if (with_reads) {
        absl::StrAppend(&text_, "[", absl::StrJoin(operation.reads[i], " "), "]]");
      } else {
        absl::StrAppend(&text_, "nil]");
      }
    }
    absl::StrAppend(&text_, "], :process ", process_[operation.client], ", :time ", time, ", :index ", index_++, "}\n");
  }

  const AppendHistory& history_;
  std::vector<uint64_t> process_;  // by client
  std::string text_;
  uint64_t index_ = 0;
  uint64_t last_time_ = 0;
};

}  // namespace

std::string ToElleEdn(const AppendHistory& history) {
  return EdnWriter(history).Write();
}

}  // namespace gannet::scenario
