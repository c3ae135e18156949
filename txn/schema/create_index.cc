// How secondary indexes are made (txn/store/secondary_index.h), also of tables with rows, while transactions
// run; one alone, or those of all nodes of a fabric together:
//
//   note      the table of the entries enters the catalog, as that of an index that is not complete
//   keep      the index is published: every commit that begins to look for indexes after this keeps it
//   wait      until the transactions that were open, on any node, have ended: all others keep it
//   add       each node's rows are scanned, and what is missing is added, by transactions of some rows each
//   complete  when all of that is durable, the catalog says so, and reads may use the index
//
// A record that a node still owes the end of a transaction (session/pending_operations.h) is locked and in its table's
// index: the scan finds it, and the transaction that looks at it repeats until the pending operation is settled. A node
// that dies in the middle of a build ends it, because a transaction of that node may be completed by others later: no
// change of the catalog is made while a node is dead (NodeLocks).
//
// access/entry_keeper.h says why no entry is wrong in between. A build that ends early, by an error or a crash, leaves
// an index that is not complete: nobody keeps it or reads by it. The next build removes its entries first, because rows
// have changed since, and it may have another function. In between the manifest never calls an index complete that is
// not kept.
#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "base/stop.h"
#include "base/thread.h"
#include "index/registry.h"
#include "index/service.h"
#include "log/manifest/manifest.h"
#include "txn/durable/durability.h"
#include "txn/node/record_walk.h"
#include "txn/run/session.h"
#include "txn/run/transaction_impl.h"
#include "txn/schema/catalog_notes.h"
#include "txn/schema/kept_index.h"
#include "txn/schema/new_table.h"
#include "txn/schema/quiesce.h"
#include "txn/schema/schema.h"
#include "txn/schema/table_options.h"
#include "txn/session/session_registry.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

// Number of the rows that a transaction of the build looks at: few enough to be no obstacle to others.
constexpr size_t kRowsAtOnce = 128;
constexpr uint64_t kLookAtBuildEveryNanos = 500'000;
constexpr absl::string_view kInsteadOfIndex =
    "use CreateIndexOnAllNodes if all are in this process, or create every index, with its table, before it";

// Adds the keys of the next records to *keys. False: not now. A block of a table that is being arranged gets another
// row at once; ArrangeTable waits for guards that are older than this state.
StatusOr<bool> TakeKeys(const LocalNode& local, const Table& table, RecordWalk* walk,
                        std::vector<index::OwnedKey>* keys) {
  const index::IndexService::Guard guard(&local.indexes);
  if (table.state() == Table::State::kBeingArranged) return false;
  const auto records = walk->Next();
  if (!records.ok()) return records.status();
  for (const rdma::GlobalAddress record : *records) {
    keys->push_back(index::LoadKey(local.Direct(record), table.options().key_kind));
  }
  return true;
}

// Calls `use` with the keys of all rows of this node's part of a table, some at a time.
Status ForAllKeys(const LocalNode& local, const Table& table,
                  const std::function<Status(std::span<const index::OwnedKey>)>& use) {
  RecordWalk walk(local, table);
  std::vector<index::OwnedKey> keys;
  while (walk.has_more()) {
    const StatusOr<bool> taken = TakeKeys(local, table, &walk, &keys);
    if (!taken.ok()) return taken.status();
    if (!*taken) {
      Sometimes<"the build of an index waits while its table is arranged">();
      GANNET_RETURN_IF_ERROR(CheckStop(local.options.stop, "a secondary index was built"));
      SleepForNanos(kLookAtBuildEveryNanos);
      continue;
    }
    if (keys.size() < kRowsAtOnce && walk.has_more()) continue;
    for (std::span<const index::OwnedKey> rest(keys); !rest.empty();) {
      GANNET_RETURN_IF_ERROR(CheckStop(local.options.stop, "a secondary index was built"));
      const auto some = rest.first(std::min(kRowsAtOnce, rest.size()));
      GANNET_RETURN_IF_ERROR(use(some));
      rest = rest.subspan(some.size());
    }
    keys.clear();
  }
  return absl::OkStatus();
}

StatusOr<TableOptions> OptionsOfEntries(const SecondaryIndexOptions& options, const Table& table) {
  const auto wrong = [&](auto&&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat("index '", options.name, "' of table '", options.table, "': ", what...));
  };
  if (index::FindIndexKind(options.index) == nullptr) {
    return wrong("index is ", static_cast<int>(options.index), ", which is not an IndexKind");
  }
  const index::IndexKindEntry& kind = index::EntryOf(options.index);
  if (!kind.traits.ordered) return wrong("an index of kind ", kind.name, " has no order: choose an ordered kind");
  if (options.placement.replicated) return wrong("placement is Replicated: transactions write entries at one node");
  if (options.wait_for_transactions < absl::ZeroDuration()) {
    return wrong("wait_for_transactions is ", absl::FormatDuration(options.wait_for_transactions),
                 "; it must not be negative");
  }
  if (table.secondary() != nullptr) return wrong("that table is an index itself");
  if (table.options().placement.replicated) return wrong("a replicated table is read-only");
  GANNET_RETURN_IF_ERROR(CheckFields(options, table));
  const size_t most = kind.traits.max_key_bytes;
  if (const size_t least = LeastEntryKeyBytes(options, table); least > most) {
    return wrong("the keys of its entries have ", least, " bytes or more, at most ", most, " with an index of kind ",
                 kind.name, ": take fewer fields, or shorter ones");
  }
  const TableOptions& rows = table.options();
  const bool integer = rows.key_kind == index::KeyKind::kInteger;
  return TableOptions{.name = options.name,
                      .key_kind = index::KeyKind::kBytes,
                      .max_key_bytes = std::min(most, MostEntryKeyBytes(options, table)),
                      .index = options.index,
                      .payload_bytes = options.unique ? rows.max_key_bytes : 0,
                      .variable_length = options.unique && !integer,
                      .expected_rows = options.expected_rows,
                      .placement = options.placement};
}

StatusOr<TableOptions> CompleteEntries(const DatabaseState& node, const SecondaryIndexOptions& options,
                                       const Table& table) {
  StatusOr<TableOptions> asked = OptionsOfEntries(options, table);
  if (!asked.ok()) return asked.status();
  const Table* const found = node.tables.Find(options.name);
  // Nobody asks for a length of the entries' keys: an index that is there keeps that of the version that made it.
  if (found != nullptr && found->secondary() != nullptr && found->options().index == asked->index) {
    asked->max_key_bytes = found->options().max_key_bytes;
  }
  GANNET_RETURN_IF_ERROR(CheckTable(*asked, node.local->data_nodes));
  return CompleteOptions(*std::move(asked));
}

// Makes `entries`, which nobody knows yet, the table of the entries of an index that is not complete.
void MakeSecondary(const SecondaryIndexOptions& options, Table* table, Table* entries) {
  const log::IndexDescription description{.table = table->id(),
                                          .unique = options.unique,
                                          .complete = false,
                                          .by_function = options.function != nullptr,
                                          .fields = DescribeFields(options.fields)};
  entries->SetSecondary(std::make_unique<SecondaryIndex>(table, entries, description, options.fields));
  if (options.function != nullptr) entries->secondary()->SetFunction(options.function);
}

// The program creates an index that the directory has, or whose build failed.
Status TakeOverEntries(DatabaseState& node, const SecondaryIndexOptions& options, Table* table, Table* found,
                       TableOptions complete) {
  if (found->is_created())
    return absl::AlreadyExistsError(absl::StrCat("there is a table or index '", options.name, "'"));
  const int data_nodes = node.local->data_nodes;
  Table as_asked(found->id(), complete, data_nodes, node.node->id());
  MakeSecondary(options, table, &as_asked);
  GANNET_RETURN_IF_ERROR(CheckSameTable(DescribeTable(*found), DescribeTable(as_asked), data_nodes));
  if (options.function != nullptr && !found->secondary()->has_key_function()) {
    found->secondary()->SetFunction(options.function);
  }
  if (!found->has_index()) {  // of the directory, before Start: as TakeOver
    found->SetOptions(std::move(complete));
    GANNET_RETURN_IF_ERROR(MakeIndex(node, found));
  } else if (!found->knows_owners()) {
    return absl::FailedPreconditionError(absl::StrCat(
        found->secondary()->Describe(),
        " has been opened with another SecondaryIndexOptions::placement; create it before Database::Start"));
  }
  found->SetCreated(true);
  return absl::OkStatus();
}

StatusOr<Table*> TableToIndex(const DatabaseState& node, const SecondaryIndexOptions& options) {
  Table* const table = node.tables.Find(options.table);
  if (table == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("index '", options.name, "': there is no table '", options.table, "'; create it first"));
  }
  GANNET_RETURN_IF_ERROR(CheckState(*table));
  return table;
}

}  // namespace

// One index that is made on all nodes of a fabric, or on the only one. For one thread.
class IndexBuild {
 public:
  // `options` outlives it.
  IndexBuild(Nodes nodes, const SecondaryIndexOptions& options)
      : nodes_(nodes), options_(options), wait_(options.wait_for_transactions) {
    for (DatabaseState* const node : nodes_) calls_.emplace_back(&node->sessions, "CreateIndex");
  }

  // Finds the index on all nodes, or makes its table there. Call it once. Afterwards Run of this object alone makes the
  // index, or it is complete.
  Status FindOrMake();
  // The index of the first node.
  const SecondaryIndex& index() const { return *entries_.front()->secondary(); }
  // Builds it. After an error it is not complete, and nobody keeps it.
  Status Run();

 private:
  using ChangeEntry = std::function<coro::Task<Status>(EntryKeeper&, const SecondaryIndex&, const index::Key&)>;

  Status CheckMayBeMade() const;
  Status OpenSessions();
  Status KeepAndAdd();
  void GiveUp();
  Status Note(bool complete) { return NoteIndex(nodes_, entries_, complete, "is made"); }
  bool NoteIncomplete();
  Status AwaitOlder();
  // Changes, in transactions of some keys each, the entries that belong to the keys of these tables.
  Status OfAllKeys(const std::vector<Table*>& tables, const ChangeEntry& change);
  Status AddEntries();
  Status RemoveEntries();
  Status AwaitDurable(const DatabaseState& node) const;

  const Nodes nodes_;
  const SecondaryIndexOptions& options_;
  absl::Duration wait_;  // what is left of options_.wait_for_transactions
  // The table whose rows are indexed, and that of the entries, on each node.
  std::vector<Table*> tables_;
  std::vector<Table*> entries_;
  std::list<SessionRegistry::Call> calls_;  // one for each node
  std::vector<std::unique_ptr<Session>> sessions_;
  bool is_new_ = false;  // no earlier build
};

// A node makes an index alone only if the index needs no build: it is complete, or its table has no rows yet.
Status IndexBuild::CheckMayBeMade() const {
  const DatabaseState& node = *nodes_.front();
  const SecondaryIndex* const index = entries_.empty() ? nullptr : std::as_const(*entries_.front()).secondary();
  if (index != nullptr && index->is_complete()) return absl::OkStatus();
  if (node.started) {
    return entries_.empty() || index != nullptr ? CheckChangeable(nodes_, kInsteadOfIndex) : absl::OkStatus();
  }
  if (tables_.front()->id() >= node.first_new_table) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "index '", options_.name, "' of table '", options_.table, "': the directory has the table, possibly with rows; ",
      node.fabric->num_nodes() == 1
          ? "call Database::Start before CreateIndex"
          : "call Database::Start of all nodes, then CreateIndexOnAllNodes, if all are in this process, or copy the "
            "rows to a new table"));
}

Status IndexBuild::FindOrMake() {
  NodeLocks locks(nodes_);
  GANNET_RETURN_IF_ERROR(locks.Take());
  for (const DatabaseState* const node : nodes_) {
    const StatusOr<Table*> table = TableToIndex(*node, options_);
    if (!table.ok()) return table.status();
    tables_.push_back(*table);
    Table* const found = node->tables.Find(options_.name);
    if (found != nullptr) entries_.push_back(found);
  }
  const StatusOr<TableOptions> complete = CompleteEntries(*nodes_.front(), options_, *tables_.front());
  if (!complete.ok()) return complete.status();
  GANNET_RETURN_IF_ERROR(CheckMayBeMade());
  is_new_ = entries_.empty();
  if (is_new_) {
    StatusOr<std::vector<Table*>> made =
        MakeTables(nodes_, *complete, [&](size_t i, Table* entries) { MakeSecondary(options_, tables_[i], entries); });
    if (!made.ok()) return made.status();
    entries_ = *std::move(made);
  } else {
    GANNET_CHECK(entries_.size() == nodes_.size(), "only some nodes have index '%s'", options_.name);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Status taken = TakeOverEntries(*nodes_[i], options_, tables_[i], entries_[i], *complete);
      if (taken.ok()) continue;
      while (i > 0) entries_[--i]->SetCreated(false);
      return taken;
    }
  }
  SecondaryIndex* const index = entries_.front()->secondary();
  if (!nodes_.front()->started && !index->is_complete()) {  // there are no rows
    index->SetComplete(true);
    SetKept(*nodes_.front(), tables_.front(), index, true);
  }
  return absl::OkStatus();
}

Status IndexBuild::Run() {
  Status built = OpenSessions();
  if (built.ok()) built = KeepAndAdd();
  if (built.ok()) built = Note(/*complete=*/true);
  if (!built.ok()) GiveUp();
  return built;
}

// A node with an open session does not close: all stay open until the index is complete or given up.
Status IndexBuild::OpenSessions() {
  for (DatabaseState* const node : nodes_) {
    StatusOr<std::unique_ptr<Session>> session = Session::Open(*node);
    if (!session.ok()) {
      sessions_.clear();
      return OfNode(nodes_, *node, session.status());
    }
    sessions_.push_back(*std::move(session));
  }
  return absl::OkStatus();
}

Status IndexBuild::KeepAndAdd() {
  for (DatabaseState* const node : nodes_) {
    // Transactions that change rows, and those of the build do, are refused while there are such rows.
    Durability& durability = *node->durability;
    if (durability.has_directory() && durability.loads().any()) {
      GANNET_RETURN_IF_ERROR(OfNode(nodes_, *node, durability.Checkpoint(node->options.stop)));
    }
  }
  // An earlier build ended after it had tried to note that the index is complete.
  GANNET_RETURN_IF_ERROR(Note(/*complete=*/false));
  if (!is_new_) {
    // Transactions that found it kept by an earlier build may still add entries, and call its function.
    GANNET_RETURN_IF_ERROR(SetKeptOnAll(nodes_, entries_, false));
    GANNET_RETURN_IF_ERROR(AwaitOlder());
    for (Table* const entries : entries_) {
      if (options_.function != nullptr) entries->secondary()->SetFunction(options_.function);
    }
  }
  GANNET_RETURN_IF_ERROR(RemoveEntries());
  GANNET_RETURN_IF_ERROR(SetKeptOnAll(nodes_, entries_, true));
  GANNET_RETURN_IF_ERROR(AwaitOlder());
  GANNET_RETURN_IF_ERROR(AddEntries());
  for (DatabaseState* const node : nodes_) GANNET_RETURN_IF_ERROR(OfNode(nodes_, *node, AwaitDurable(*node)));
  return absl::OkStatus();
}

// After an error of the disk nobody knows what the manifests say. While they may call the index complete, it is kept,
// so that the next start finds it right. Nobody else builds or drops it before this function returns.
void IndexBuild::GiveUp() {
  if (NoteIncomplete() && SetKeptOnAll(nodes_, entries_, false).ok()) {
    // What is left in memory is removed now, as far as that is possible, and otherwise before the next build.
    if (!sessions_.empty() && AwaitOlder().ok()) RemoveEntries().IgnoreError();
  }
  AllowBuild(nodes_, entries_);
}

// True: after a crash the index is not complete. Of several nodes, one manifest is enough for that.
bool IndexBuild::NoteIncomplete() {
  if (nodes_.size() == 1) return Note(/*complete=*/false).ok();
  NodeLocks locks(nodes_);
  return locks.Take().ok() && TakeBackOn(nodes_);
}

// A grace period is one of all nodes. The limit is one for all that a build awaits.
Status IndexBuild::AwaitOlder() {
  const uint64_t start = NowNanos();
  const Status awaited = AwaitOlderTransactions(*nodes_.front(), wait_, "the secondary index was not made");
  wait_ = std::max(absl::ZeroDuration(), wait_ - absl::Nanoseconds(NowNanos() - start));
  return awaited;
}

// Each node's part of a table, one after the other: at the same time they would be obstacles to each other.
Status IndexBuild::OfAllKeys(const std::vector<Table*>& tables, const ChangeEntry& change) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const SecondaryIndex& index = *entries_[i]->secondary();
    const auto use = [&](std::span<const index::OwnedKey> keys) -> Status {
      const auto body = [&](Transaction& t) -> coro::Task<Status> {
        for (const index::OwnedKey& key : keys) {
          coro::Task<Status> changing = change(t.impl_->access().entries(), index, key.view());
          const Status changed = co_await changing;
          if (!changed.ok()) co_return changed;
        }
        co_return absl::OkStatus();
      };
      const Status done = sessions_[i]->RunBlocking(body);
      // If another transaction had the key of a unique index first, the next attempt says of which rows it is.
      return absl::IsAlreadyExists(done) ? sessions_[i]->RunBlocking(body) : done;
    };
    GANNET_RETURN_IF_ERROR(ForAllKeys(*nodes_[i]->local, *tables[i], use));
  }
  return absl::OkStatus();
}

Status IndexBuild::AddEntries() {
  return OfAllKeys(tables_, [](EntryKeeper& entries, const SecondaryIndex& index, const index::Key& row) {
    return entries.AddEntry(index, row);
  });
}

Status IndexBuild::RemoveEntries() {
  return OfAllKeys(entries_, [](EntryKeeper& entries, const SecondaryIndex& index, const index::Key& entry) {
    return entries.RemoveEntryByKey(index, entry);
  });
}

// If the catalog said first that the index is complete, a crash might take entries that it needs.
Status IndexBuild::AwaitDurable(const DatabaseState& node) const {
  Durability& durability = *node.durability;
  if (!durability.has_directory()) return absl::OkStatus();
  if (node.options.durability == DurabilityMode::kNone) return durability.Checkpoint(node.options.stop);
  const uint64_t epoch = durability.logged_epoch();
  const uint64_t start = NowNanos();
  const uint64_t most = NanosOf(node.options.durable_within);
  while (durability.durable_epoch() < epoch) {
    if (NowNanos() - start > most) {
      const Status health = durability.health();
      return absl::UnavailableError(absl::StrCat("a secondary index did not become durable within ",
                                                 absl::FormatDuration(node.options.durable_within), ": ",
                                                 health.ok() ? "the disk is slow" : health.message()));
    }
    SleepForNanos(kLookAtBuildEveryNanos);
  }
  return absl::OkStatus();
}

StatusOr<const SecondaryIndex*> Schema::CreateIndex(const SecondaryIndexOptions& options) {
  GANNET_RETURN_IF_ERROR(nodes_.front()->sessions.CheckHome());
  IndexBuild build(nodes_, options);
  GANNET_RETURN_IF_ERROR(build.FindOrMake());
  if (!build.index().is_complete()) GANNET_RETURN_IF_ERROR(build.Run());
  return &build.index();
}

}  // namespace gannet::txn
