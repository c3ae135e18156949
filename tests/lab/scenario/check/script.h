// Small hand-written histories.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <utility>

#include "gtest/gtest.h"
#include "lab/scenario/check/history.h"
#include "lab/scenario/check/serializability.h"

namespace gannet::scenario {

class Script {
 public:
  using Body = std::function<void(Draft&)>;

  // Each transaction belongs to a client of its own.
  OperationId Ok(uint64_t from, uint64_t to, const Body& body) { return Add(from, to, Outcome::kOk, body); }
  OperationId Fail(uint64_t from, uint64_t to, const Body& body) { return Add(from, to, Outcome::kFail, body); }
  OperationId Info(uint64_t from, uint64_t to, const Body& body) { return Add(from, to, Outcome::kInfo, body); }
  // The client died.
  OperationId Dead(uint64_t from, const Body& body) {
    const OperationId op = history.Invoke(clients_++, from);
    body(history.draft(op));
    return op;
  }

  History history;

 private:
  OperationId Add(uint64_t from, uint64_t to, Outcome outcome, const Body& body) {
    const OperationId op = Dead(from, body);
    history.Complete(op, to, outcome);
    return op;
  }
  uint32_t clients_ = 0;
};

inline constexpr RowKey kX{0, 10};
inline constexpr RowKey kY{0, 20};
inline constexpr RowKey kZ{0, 30};

// Reads the row as `seen` and writes it as `id`.
inline void Modify(Draft& draft, RowKey row, WriteId seen, WriteId id) {
  draft.Read(row, seen);
  draft.Write(row, id);
}
inline void RemoveSeen(Draft& draft, RowKey row, WriteId seen, WriteId id) {
  draft.Read(row, seen);
  draft.Remove(row, id);
}
// Scans the whole table.
inline void ScanAll(Draft& draft, std::initializer_list<std::pair<RowKey, WriteId>> rows) {
  draft.BeginScan({});
  for (const auto& [row, id] : rows) draft.Row(row.key, id);
  draft.EndScan();
}

inline Report ExpectOk(const Script& script) {
  Report report = CheckSerializability(script.history);
  EXPECT_EQ(report.verdict, Verdict::kSerializable) << report.ToString();
  EXPECT_TRUE(report.anomalies.empty()) << report.ToString();
  return report;
}
inline Report ExpectViolated(const Script& script, AnomalyKind kind) {
  Report report = CheckSerializability(script.history);
  EXPECT_EQ(report.verdict, Verdict::kViolated) << report.ToString();
  EXPECT_TRUE(report.Has(kind)) << "expected " << NameOf(kind) << "\n" << report.ToString();
  return report;
}

}  // namespace gannet::scenario
