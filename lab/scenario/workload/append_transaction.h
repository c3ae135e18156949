// The transactions of list-append workloads: the layout of lists in tables, the choice of lists, and the transaction's
// body. Used by the simulation (append.h) and by crash tests (lab/scenario/crash/append_workload.cc).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/coro/task.h"
#include "base/random.h"
#include "base/status.h"
#include "lab/scenario/check/list_append.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::scenario {

// Lists are rows of variable length, in a hash table (even keys) and an ordered one (odd keys).
inline constexpr size_t kListTables = 2;
std::vector<txn::TableOptions> ListTableOptions(const txn::Placement& placement,
                                                txn::IndexKind ordered = txn::IndexKind::kXStore);

// Draws transactions of up to four micro-operations on a few lists at a time: a long list is replaced by a new one.
// Thread-safe, except for the Random.
class AppendPlanner {
 public:
  // List `slot` of generation g has the key g * slots + slot. Generations begin at `generation`; appended numbers are
  // above `value`.
  explicit AppendPlanner(size_t slots, uint64_t generation = 0, uint64_t value = 0)
      : appended_(slots), first_generation_(generation), last_value_(value) {}

  std::vector<MicroOp> Draw(Random& random);
  size_t slots() const { return appended_.size(); }
  // The key of the slot's current list.
  uint64_t KeyOf(uint64_t slot) const;

 private:
  uint64_t KeyAfter(uint64_t slot, uint64_t appends) const;

  std::vector<std::atomic<uint64_t>> appended_;  // by slot: number of appends, including attempted ones
  uint64_t first_generation_;
  std::atomic<uint64_t> last_value_;
};

// Runs one transaction at a time.
class AppendTransaction {
 public:
  explicit AppendTransaction(txn::Database& database);

  // Returns the status of Session::Run; or DataLoss, with torn(), if a valid transaction saw a list that no transaction
  // wrote.
  coro::Task<Status> Run(txn::Session& session, std::vector<MicroOp> micro_ops, txn::RunOutcome* outcome);
  // The list that each micro-operation read, after Run returned Ok.
  const std::vector<List>& lists() const { return lists_; }
  // Called after Run. Describes the torn list; empty if there is none.
  const std::string& torn() const { return torn_; }

 private:
  coro::Task<Status> Attempt(txn::Transaction& transaction);
  coro::Task<Status> Do(txn::Transaction& transaction, const MicroOp& op, List* list);

  std::array<const txn::Table*, kListTables> tables_{};
  std::vector<MicroOp> micro_ops_;
  std::vector<List> lists_;
  std::vector<uint64_t> row_;
  std::string torn_;
};

}  // namespace gannet::scenario
