#include "lab/scenario/check/list_append.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace gannet::scenario {
namespace {

// Facts about one list.
struct ListFacts {
  struct Element {
    OperationId appended_by;
    WriteId id;
  };
  std::map<uint64_t, Element> elements;
  const List* longest = nullptr;
  OperationId read_by = 0;             // reader of the longest list
  std::map<uint64_t, uint64_t> place;  // by value, in the longest list, from 1
};

std::string ToString(const List& list) {
  return absl::StrFormat("[%s]", absl::StrJoin(list, " "));
}

// Turns lists into reads and writes of versions: each element is a write, its place in the longest list its version.
class ListChecker {
 public:
  explicit ListChecker(const AppendHistory& history) : history_(history) {}

  Report Check(const CheckOptions& options) {
    CollectAppends();
    CollectLongest();
    for (auto& [key, facts] : lists_) CheckElements(key, &facts);
    CheckPrefixes();
    Report report = CheckSerializability(Convert(), options);
    if (anomalies_.empty()) return report;
    report.verdict = Verdict::kViolated;
    report.anomalies.insert(report.anomalies.begin(), anomalies_.begin(), anomalies_.end());
    if (report.anomalies.size() > options.max_anomalies) report.anomalies.resize(options.max_anomalies);
    return report;
  }

 private:
  void CollectAppends() {
    WriteId last = 0;
    for (OperationId op = 0; op < history_.size(); ++op) {
      for (const MicroOp& micro : history_.operation(op).micro_ops) {
        ListFacts& facts = lists_[micro.key];
        if (!micro.append) continue;
        const auto [entry, added] = facts.elements.emplace(micro.value, ListFacts::Element{op, ++last});
        if (added) continue;
        Say(AnomalyKind::kDuplicateWrite, {entry->second.appended_by, op},
            absl::StrFormat("%u was appended to list %u twice", micro.value, micro.key));
      }
    }
  }

  template <class Visit>
  void ForEachRead(Visit visit) {
    for (OperationId op = 0; op < history_.size(); ++op) {
      const AppendOperation& operation = history_.operation(op);
      if (operation.outcome != Outcome::kOk) continue;
      for (size_t i = 0; i < operation.micro_ops.size(); ++i) {
        const MicroOp& micro = operation.micro_ops[i];
        if (!micro.append) visit(op, lists_[micro.key], micro.key, operation.reads[i]);
      }
    }
  }

  void CollectLongest() {
    ForEachRead([](OperationId op, ListFacts& facts, uint64_t, const List& list) {
      if (facts.longest != nullptr && facts.longest->size() >= list.size()) return;
      facts.longest = &list;
      facts.read_by = op;
    });
  }

  // Checks that each element appears once, that its append did not fail, and that appends of one transaction are
  // adjacent.
  void CheckElements(uint64_t key, ListFacts* facts) {
    if (facts->longest == nullptr) return;
    seen_.resize(history_.size());
    std::map<OperationId, size_t> last_place;
    for (size_t i = 0; i < facts->longest->size(); ++i) {
      const uint64_t value = (*facts->longest)[i];
      if (!facts->place.emplace(value, i + 1).second) {
        Say(AnomalyKind::kIncompatibleOrder, {facts->read_by},
            absl::StrFormat("T%u read list %u with %u in it twice", facts->read_by, key, value));
      }
      const auto element = facts->elements.find(value);
      if (element == facts->elements.end()) {
        Say(AnomalyKind::kUnwrittenRead, {facts->read_by},
            absl::StrFormat("T%u read list %u with %u in it, which was never appended", facts->read_by, key, value));
        continue;
      }
      const OperationId by = element->second.appended_by;
      seen_[by] = 1;
      if (history_.operation(by).outcome == Outcome::kFail) {
        Say(AnomalyKind::kAbortedRead, {facts->read_by, by},
            absl::StrFormat("T%u read list %u with %u in it, and T%u, which appended that, failed", facts->read_by, key,
                            value, by));
      }
      const auto [place, first] = last_place.emplace(by, i);
      if (!first && std::exchange(place->second, i) + 1 != i) {
        Say(AnomalyKind::kIntermediateRead, {by},
            absl::StrFormat("list %u has something of others between the elements that T%u appended", key, by));
      }
    }
  }

  void CheckPrefixes() {
    ForEachRead([&](OperationId op, ListFacts& facts, uint64_t key, const List& list) {
      if (std::equal(list.begin(), list.end(), facts.longest->begin())) return;
      Say(AnomalyKind::kIncompatibleOrder, {op, facts.read_by},
          absl::StrFormat("list %u: T%u read %s, T%u read %s; neither is a prefix of the other", key, op,
                          ToString(list), facts.read_by, ToString(*facts.longest)));
    });
  }

  History Convert() {
    History result;
    seen_.resize(history_.size());
    for (OperationId op = 0; op < history_.size(); ++op) {
      const AppendOperation& operation = history_.operation(op);
      result.Invoke(operation.client, operation.invoked);
      ConvertAccesses(operation, &result.draft(op));
      Outcome outcome = operation.outcome;
      uint64_t completed = operation.completed;
      if (outcome == Outcome::kInfo) {
        completed = kNever;
        if (seen_[op]) outcome = Outcome::kOk;
      }
      result.Complete(op, completed, outcome);
    }
    return result;
  }

  void ConvertAccesses(const AppendOperation& operation, Draft* draft) {
    for (size_t i = 0; i < operation.micro_ops.size(); ++i) {
      const MicroOp& micro = operation.micro_ops[i];
      const ListFacts& facts = lists_[micro.key];
      const RowKey row{0, micro.key};
      if (micro.append) {
        const auto place = facts.place.find(micro.value);
        const uint64_t version = place == facts.place.end() ? kLastUnordered : place->second;
        draft->Write(row, facts.elements.at(micro.value).id, version);
      } else if (operation.outcome == Outcome::kOk) {
        const List& list = operation.reads[i];
        const auto last = list.empty() ? facts.elements.end() : facts.elements.find(list.back());
        if (!list.empty() && last == facts.elements.end()) continue;  // has been reported
        draft->Read(row, list.empty() ? kAbsent : last->second.id);
      }
    }
  }

  void Say(AnomalyKind kind, std::vector<OperationId> operations, std::string text) {
    anomalies_.push_back({kind, std::move(operations), std::move(text)});
  }

  const AppendHistory& history_;
  std::map<uint64_t, ListFacts> lists_;
  std::vector<uint8_t> seen_;  // by operation: a read saw one of its appends
  std::vector<Anomaly> anomalies_;
};

}  // namespace

OperationId AppendHistory::Invoke(uint32_t client, uint64_t now, std::vector<MicroOp> micro_ops) {
  if (client >= running_.size()) running_.resize(client + 1, kIdle);
  if (running_[client] != kIdle) Complete(running_[client], now, Outcome::kInfo);
  const auto op = static_cast<OperationId>(operations_.size());
  operations_.push_back({.client = client, .invoked = now, .micro_ops = std::move(micro_ops), .reads = {}});
  events_.push_back({op, false});
  running_[client] = op;
  return op;
}

void AppendHistory::Complete(OperationId op, uint64_t now, Outcome outcome, std::vector<List> reads) {
  AppendOperation& operation = operations_[op];
  GANNET_CHECK(running_[operation.client] == op, "operation %u of client %u is not running", op, operation.client);
  GANNET_CHECK(outcome != Outcome::kOk || reads.size() == operation.micro_ops.size(),
               "operation %u: %u reads for %u micro-operations", op, reads.size(), operation.micro_ops.size());
  running_[operation.client] = kIdle;
  operation.outcome = outcome;
  operation.completed = now;
  operation.reads = std::move(reads);
  events_.push_back({op, true});
}

Report CheckListAppend(const AppendHistory& history, const CheckOptions& options) {
  return ListChecker(history).Check(options);
}

}  // namespace gannet::scenario
