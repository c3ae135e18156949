#include "bench/peers/operations.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gannet::bench::peers {
namespace {

constexpr int kManyThreads = 8;

const char* ActionName(Action action) {
  switch (action) {
    case Action::kLoad:
      return "load";
    case Action::kRead:
      return "read";
    case Action::kReadMany:
      return "read_100";
    case Action::kReadTogether:
      return "read_100_together";
    case Action::kScanAll:
      return "scan";
    case Action::kScanSome:
      return "scan_100";
    case Action::kUpdate:
      return "update";
    case Action::kTransfer:
      return "transfer";
  }
  return "";
}

const char* DurabilitySuffix(Durability durability) {
  switch (durability) {
    case Durability::kMemory:
      return "";
    case Durability::kBackground:
      return ".background";
    case Durability::kSync:
      return ".durable";
  }
  return "";
}

class Plan {
 public:
  explicit Plan(std::string only) : only_(std::move(only)) {}
  void Add(Durability durability, Action action, Table table, int threads) {
    Operation operation{.id = absl::StrCat(table == Table::kWords ? "words." : "rows.", ActionName(action),
                                           DurabilitySuffix(durability), threads > 1 ? absl::StrCat(".", threads) : ""),
                        .action = action,
                        .table = table,
                        .durability = durability,
                        .threads = threads};
    if (action != Action::kLoad && operation.id.find(only_) == std::string::npos) return;
    operations_.push_back(std::move(operation));
  }
  std::vector<Operation> Take() {
    // A database is not loaded for nothing.
    std::vector<Operation> needed;
    for (const Operation& operation : operations_) {
      const auto uses = [&](const Operation& other) {
        return other.durability == operation.durability &&
               (other.action != Action::kLoad || other.id.find(only_) != std::string::npos);
      };
      if (std::ranges::any_of(operations_, uses)) needed.push_back(operation);
    }
    return needed;
  }

 private:
  std::string only_;
  std::vector<Operation> operations_;
};

}  // namespace

std::string Describe(const Operation& operation) {
  const char* const what = operation.table == Table::kWords ? "words" : "rows";
  const char* const one = operation.table == Table::kWords ? "a word" : "a row";
  std::string text;
  switch (operation.action) {
    case Action::kLoad:
      text = absl::StrFormat("load %s in random order, %d a transaction", what, kLoadBatch);
      break;
    case Action::kRead:
      text = absl::StrCat("read ", one);
      break;
    case Action::kReadMany:
      text = absl::StrFormat("read %d %s, one after the other", kReadBatch, what);
      break;
    case Action::kReadTogether:
      text = absl::StrFormat("read %d %s at once", kReadBatch, what);
      break;
    case Action::kScanAll:
      text = absl::StrCat("scan all ", what);
      break;
    case Action::kScanSome:
      text = absl::StrFormat("scan %d %s from a random one on", kScanRows, what);
      break;
    case Action::kUpdate:
      text = absl::StrCat("update ", one);
      break;
    case Action::kTransfer:
      text = "transfer: read two rows, write both";
      break;
  }
  if (operation.durability == Durability::kBackground) text += ", log in the background";
  if (operation.durability == Durability::kSync) text += ", durable";
  return text;
}

std::string Unit(const Operation& operation) {
  if (operation.writes()) return "transactions";
  return operation.table == Table::kWords ? "words" : "rows";
}

std::vector<Operation> Operations(const std::string& only) {
  Plan plan(only);
  for (const Table table : kTables) plan.Add(Durability::kMemory, Action::kLoad, table, 1);
  for (const Table table : kTables) {
    for (const Action action : {Action::kRead, Action::kReadMany, Action::kReadTogether, Action::kScanAll,
                                Action::kScanSome, Action::kUpdate}) {
      for (const int threads : {1, 2}) plan.Add(Durability::kMemory, action, table, threads);
    }
  }
  for (const int threads : {1, 2}) plan.Add(Durability::kMemory, Action::kTransfer, Table::kRows, threads);

  plan.Add(Durability::kBackground, Action::kLoad, Table::kRows, 1);
  for (const Action action : {Action::kUpdate, Action::kTransfer}) {
    for (const int threads : {1, 2}) plan.Add(Durability::kBackground, action, Table::kRows, threads);
  }

  for (const Table table : kTables) plan.Add(Durability::kSync, Action::kLoad, table, 1);
  for (const int threads : {1, kManyThreads}) plan.Add(Durability::kSync, Action::kUpdate, Table::kRows, threads);
  return plan.Take();
}

}  // namespace gannet::bench::peers
