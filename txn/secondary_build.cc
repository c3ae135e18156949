// How a database makes secondary indexes (txn/secondary_index.h), also of tables with rows, while transactions run:
//
//   note      the table of the entries enters the catalog, as that of an index that is not complete
//   keep      the index is published: every commit that begins to look for indexes after this keeps it
//   wait      until the transactions that were open have ended: all others keep it
//   add       the rows are scanned, and what is missing is added, by transactions of some rows each
//   complete  when all of that is durable, the catalog says so, and reads may use the index
//
// access/secondary.cc says why no entry is wrong in between. A build that ends early, by an error or a crash, leaves an
// index that is not complete: nobody keeps it or reads by it. The next build removes its entries first, because rows
// have changed since. In between the manifest never calls an index complete that is not kept.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/stop.h"
#include "index/service.h"
#include "log/checkpoint.h"
#include "txn/access/key_status.h"
#include "txn/database.h"
#include "txn/durable/catalog.h"
#include "txn/durable/durability.h"
#include "txn/owner/index_damage.h"
#include "txn/session.h"
#include "txn/session/session_internal.h"
#include "txn/session/transaction_impl.h"

namespace gannet::txn {
namespace {

// Number of the rows that a transaction of the build looks at: few enough to be no obstacle to others.
constexpr size_t kRowsAtOnce = 128;
constexpr uint64_t kLookEveryNanos = 500'000;

// Calls `use` with the keys of all rows of this node's part of a table, some at a time.
Status ForAllKeys(const LocalNode& local, const Table& table,
                  const std::function<Status(std::span<const index::OwnedKey>)>& use) {
  index::WalkPosition position;
  std::vector<rdma::GlobalAddress> records;
  std::vector<index::OwnedKey> keys;
  for (bool more = true; more;) {
    records.clear();
    {
      index::IndexService::Lease lease(&local.indexes);
      more = table.local_index().Walk(&position, &records);
      for (const rdma::GlobalAddress record : records) {
        if (table.index_traits().client_writes && !IsRecordOf(local, table, record)) {
          local.index_damage.NoteStray(table, record);
          return IndexDamaged(table);
        }
        keys.push_back(index::LoadKey(local.Direct(record), table.options().key_kind));
      }
    }
    if (keys.size() < kRowsAtOnce && more) continue;
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

}  // namespace

const SecondaryIndex* Database::FindIndex(std::string_view name) const {
  const Table* const entries = FindTable(name);
  return entries == nullptr ? nullptr : entries->secondary();
}

// The commit looks at the set of tables first (TransactionImpl::Commit).
void Database::SetKept(Table* table, const SecondaryIndex* index, bool kept) {
  SecondaryIndexes indexes = table->secondary_indexes() == nullptr ? SecondaryIndexes() : *table->secondary_indexes();
  std::erase(indexes, index);
  if (kept) indexes.push_back(index);
  state_->tables.NoteSecondaryIndex();
  table->SetSecondaryIndexes(std::move(indexes));
}

Status Database::AdoptSecondary(const Catalog& catalog) {
  for (const log::TableDescription& description : catalog.tables) {
    if (!description.secondary.has_value()) continue;
    Table* const entries = state_->tables.ById(description.id);
    Table* const table = state_->tables.ById(description.secondary->table);
    const auto wrong = [&](const absl::StatusCode code, auto&&... what) {
      return Status(code, absl::StrCat("secondary index '", description.name, "' of the manifest: ", what...));
    };
    if (table == nullptr || table->secondary() != nullptr || table == entries) {
      return wrong(absl::StatusCode::kDataLoss, "it is of table number ", description.secondary->table,
                   ", which is no table of rows");
    }
    StatusOr<std::vector<IndexField>> fields = IndexFieldsOf(*description.secondary);
    if (!fields.ok()) return wrong(fields.status().code(), fields.status().message());
    entries->secondary_.reset(new SecondaryIndex(table, entries, *description.secondary, *std::move(fields)));
    entries->DeriveWrites();
    if (description.secondary->complete) SetKept(table, entries->secondary(), true);
  }
  return absl::OkStatus();
}

StatusOr<TableOptions> Database::OptionsOfEntries(const SecondaryIndexOptions& options, const Table& table) const {
  const auto wrong = [&](auto&&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat("index '", options.name, "' of table '", options.table, "': ", what...));
  };
  if (index::FindIndexKind(options.index) == nullptr) {
    return wrong("index is ", static_cast<int>(options.index), ", which is not an IndexKind");
  }
  const index::IndexKindEntry& kind = index::EntryOf(options.index);
  if (!kind.traits.ordered) return wrong("an index of kind ", kind.name, " has no order: choose an ordered kind");
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

StatusOr<Table*> Database::FindOrMakeEntries(const SecondaryIndexOptions& options, Table* table) {
  StatusOr<TableOptions> asked = OptionsOfEntries(options, *table);
  if (!asked.ok()) return asked.status();
  Table* const found = state_->tables.Find(options.name);
  // Nobody asks for a length of the entries' keys: an index that is there keeps that of the version that made it.
  if (found != nullptr && found->secondary() != nullptr && found->options().index == asked->index) {
    asked->max_key_bytes = found->options().max_key_bytes;
  }
  GANNET_RETURN_IF_ERROR(CheckTable(*asked, data_nodes()));
  StatusOr<TableOptions> complete = Complete(*std::move(asked));
  if (!complete.ok()) return complete.status();
  const log::IndexDescription description{.table = table->id(),
                                          .unique = options.unique,
                                          .complete = false,
                                          .by_function = options.function != nullptr,
                                          .fields = DescribeFields(options.fields)};
  const auto prepare = [&](Table* entries) {
    entries->secondary_.reset(new SecondaryIndex(table, entries, description, options.fields));
    entries->DeriveWrites();
    if (options.function != nullptr) entries->secondary_->SetFunction(options.function);
  };
  const bool is_complete = found != nullptr && found->secondary() != nullptr && found->secondary()->is_complete();
  if (state_->started) {
    // One that is not complete would be built, too.
    const bool builds = found == nullptr || (found->secondary() != nullptr && !is_complete);
    if (builds) GANNET_RETURN_IF_ERROR(CheckChangeable("create every index, with its table, before it"));
  } else if (table->id() < state_->first_new_table && !is_complete) {
    if (state_->fabric->num_nodes() > 1) {
      return absl::UnimplementedError(absl::StrCat(
          "index '", options.name, "' of table '", options.table,
          "': on several nodes an index is created with its table, before there are rows; copy them to a new table"));
    }
    return absl::FailedPreconditionError(absl::StrCat("index '", options.name, "' of table '", options.table,
                                                      "': the directory has the table, possibly with rows; call "
                                                      "Database::Start before CreateIndex"));
  }
  if (found == nullptr) return MakeTable(*std::move(complete), prepare);
  if (found->created_) return absl::AlreadyExistsError(absl::StrCat("there is a table or index '", options.name, "'"));
  Table as_asked(found->id(), *complete, data_nodes(), node_id());
  prepare(&as_asked);
  GANNET_RETURN_IF_ERROR(CheckSameTable(DescribeTable(*found), DescribeTable(as_asked), data_nodes()));
  if (options.function != nullptr && !found->secondary_->has_key_function()) {
    found->secondary_->SetFunction(options.function);
  }
  if (found->local_index_ == nullptr) {  // of the directory, before Start: as TakeOver
    found->options_ = *std::move(complete);
    found->placement_name_ = found->options_.placement.name();
    found->Derive();
    GANNET_RETURN_IF_ERROR(MakeIndex(found));
  } else if (!found->knows_owners()) {
    return absl::FailedPreconditionError(absl::StrCat(
        found->secondary()->Describe(),
        " has been opened with another SecondaryIndexOptions::placement; create it before Database::Start"));
  }
  found->created_ = true;
  return found;
}

StatusOr<const SecondaryIndex*> Database::CreateIndex(const SecondaryIndexOptions& options) {
  Table* table = nullptr;
  Table* entries = nullptr;
  {
    const std::lock_guard lock(state_->create_mutex);
    GANNET_RETURN_IF_ERROR(state_->sessions.CheckOpen());
    table = state_->tables.Find(options.table);
    if (table == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("index '", options.name, "': there is no table '", options.table, "'; create it first"));
    }
    GANNET_RETURN_IF_ERROR(CheckLife(*table));
    const StatusOr<Table*> found = FindOrMakeEntries(options, table);
    if (!found.ok()) return found.status();
    entries = *found;
    SecondaryIndex* const index = entries->secondary_.get();
    if (index->is_complete()) return index;
    if (!state_->started) {
      index->complete_.store(true, std::memory_order_release);  // there are no rows
      SetKept(table, index, true);
      return index;
    }
  }
  GANNET_RETURN_IF_ERROR(BuildIndex(table, entries, options.wait_for_transactions));
  return entries->secondary();
}

Status Database::BuildIndex(Table* table, Table* entries, absl::Duration wait) {
  StatusOr<std::unique_ptr<Session>> session = OpenSession();
  Status built = session.status();
  if (built.ok()) built = BuildKept(session->get(), table, entries, wait);
  if (built.ok()) built = NoteIndex(entries, /*complete=*/true);
  if (!built.ok()) GiveUpIndex(session.ok() ? session->get() : nullptr, table, entries, wait);
  return built;
}

// An error of the disk does not tell what the manifest says now. As long as it may call the index complete, the index
// is kept: so it is right, whatever the next start finds.
void Database::GiveUpIndex(Session* session, Table* table, Table* entries, absl::Duration wait) {
  const bool is_noted = NoteIndex(entries, /*complete=*/false).ok();
  {
    const std::lock_guard lock(state_->create_mutex);
    entries->created_ = false;
    if (!is_noted) return;
    SetKept(table, entries->secondary(), false);
  }
  // What is left in memory is removed now, as far as that is possible, and otherwise before the next build.
  if (session != nullptr && AwaitOlderTransactions(wait, "the secondary index was not made").ok()) {
    RemoveAllEntries(session, *entries->secondary()).IgnoreError();
  }
}

Status Database::BuildKept(Session* session, Table* table, Table* entries, absl::Duration wait) {
  const SecondaryIndex& index = *entries->secondary();
  // Transactions that change rows, and those of the build do, are refused while there are such rows.
  if (state_->durability->has_directory() && state_->durability->loads().any()) GANNET_RETURN_IF_ERROR(Checkpoint());
  // An earlier build ended after it had tried to note that the index is complete.
  GANNET_RETURN_IF_ERROR(NoteIndex(entries, /*complete=*/false));
  GANNET_RETURN_IF_ERROR(RemoveAllEntries(session, index));
  {
    const std::lock_guard lock(state_->create_mutex);
    SetKept(table, &index, true);
  }
  GANNET_RETURN_IF_ERROR(AwaitOlderTransactions(wait, "the secondary index was not made"));
  GANNET_RETURN_IF_ERROR(AddAllEntries(session, index));
  return MakeIndexDurable();
}

Status Database::AddAllEntries(Session* session, const SecondaryIndex& index) {
  return ForAllKeys(*state_->local, index.table(), [&](std::span<const index::OwnedKey> keys) {
    const auto body = [&](Transaction& t) -> coro::Task<Status> {
      for (const index::OwnedKey& key : keys) {
        coro::Task<Status> adding = t.impl_->access().AddEntry(index, key.view());
        const Status added = co_await adding;
        if (!added.ok()) co_return added;
      }
      co_return absl::OkStatus();
    };
    return session->RunBlocking(body);
  });
}

Status Database::RemoveAllEntries(Session* session, const SecondaryIndex& index) {
  return ForAllKeys(*state_->local, index.entries(), [&](std::span<const index::OwnedKey> keys) {
    const auto body = [&](Transaction& t) -> coro::Task<Status> {
      for (const index::OwnedKey& key : keys) {
        coro::Task<Status> removing = t.impl_->access().RemoveEntryByKey(index, key.view());
        const Status removed = co_await removing;
        if (!removed.ok()) co_return removed;
      }
      co_return absl::OkStatus();
    };
    return session->RunBlocking(body);
  });
}

// If the catalog said first that the index is complete, a crash might take entries that it needs.
Status Database::MakeIndexDurable() {
  if (!state_->durability->has_directory()) return absl::OkStatus();
  if (state_->options.durability == DurabilityMode::kNone) return Checkpoint();
  const uint64_t epoch = logged_epoch();
  const uint64_t start = NowNanos();
  const auto most = static_cast<uint64_t>(absl::ToInt64Nanoseconds(state_->options.durable_within));
  while (durable_epoch() < epoch) {
    if (NowNanos() - start > most) {
      const Status health = log_health();
      return absl::UnavailableError(absl::StrCat("a secondary index did not become durable within ",
                                                 absl::FormatDuration(state_->options.durable_within), ": ",
                                                 health.ok() ? "the disk is slow" : health.message()));
    }
    SleepForNanos(kLookEveryNanos);
  }
  return absl::OkStatus();
}

Status Database::NoteIndex(Table* entries, bool complete) {
  const std::lock_guard lock(state_->create_mutex);
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckOpen());
  Catalog catalog = DescribeCatalog();
  std::ranges::find(catalog.tables, entries->id(), &log::TableDescription::id)->secondary->complete = complete;
  const Status noted = state_->durability->NoteCatalog(catalog);
  if (!noted.ok()) {
    return Status(noted.code(), absl::StrCat("the manifest could not be written when ",
                                             entries->secondary()->Describe(), " was made: ", noted.message()));
  }
  entries->secondary_->complete_.store(complete, std::memory_order_release);
  return absl::OkStatus();
}

}  // namespace gannet::txn
