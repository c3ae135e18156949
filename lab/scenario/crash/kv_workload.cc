// Rows of fixed and of variable length in a hash table and an ordered one: inserted, updated and removed, up to four of
// them and the worker's counter in one transaction. In the workload "rectangles" a table of rectangles takes the place
// of the ordered one: its recovered part is also searched, and its R-tree checked.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/thread.h"
#include "index/catfish/catfish.h"
#include "index/rectangle.h"
#include "lab/scenario/crash/acknowledgements.h"
#include "lab/scenario/crash/counters.h"
#include "lab/scenario/crash/operation.h"
#include "lab/scenario/crash/workload.h"
#include "txn/all_nodes.h"
#include "txn/run/index_cursor.h"

namespace gannet::scenario::crash {
namespace {

// A worker's rectangles overlap each other and those of other workers.
index::RectangleKeyBytes PlaceOf(uint32_t worker, uint64_t key) {
  const auto x = static_cast<double>((worker * 5 + key * 7) % 40);
  const auto y = static_cast<double>((worker * 3 + key * 11) % 30);
  const auto size = static_cast<double>(key % 4);
  return index::RectangleKeyBytes({{x, y, x + size, y + size}, uint64_t{worker} << 32 | key});
}

class KvWorkload final : public Workload {
 public:
  KvWorkload(const CrashOptions& options, const MessagePipe* pipe)
      : options_(options), pipe_(pipe), counters_(options, pipe) {}

  Status CreateTables(txn::Database& database) override {
    const uint64_t rows = kKeysPerWorker * static_cast<uint64_t>(options_.workers());
    txn::TableOptions table{.name = "hash",
                            .payload_bytes = kMostPayloadBytes,
                            .variable_length = true,
                            .expected_rows = rows,
                            .placement = txn::Placement::ByHash()};
    GANNET_RETURN_IF_ERROR(database.CreateTable(table).status());
    table.name = kSecondTable;
    table.key_kind = index::KeyKind::kBytes;
    table.max_key_bytes = spatial() ? index::RectangleKey::kBytes : 16;
    table.index = spatial() ? txn::IndexKind::kCatfish : options_.ordered_index;
    if (spatial()) {  // nodes of few entries, so that the tree is high and changes its shape often
      const auto variant = static_cast<index::CatfishVariant>(options_.seed % 3);
      table.index_options = ToText(index::CatfishOptions{.variant = variant, .node_entries = 5});
    }
    GANNET_RETURN_IF_ERROR(database.CreateTable(table).status());
    return counters_.CreateTable(database);
  }

  Status Prepare(std::span<txn::Database* const>) override { return absl::OkStatus(); }

  Status TellState(std::span<txn::Database* const> databases) override {
    GANNET_RETURN_IF_ERROR(CheckCatalogs(databases));
    StatusOr<uint64_t> rows = counters_.Tell(*databases[0]);
    if (!rows.ok()) return rows.status();
    for (uint32_t worker = 0; worker < static_cast<uint32_t>(options_.workers()); ++worker) {
      const StatusOr<uint64_t> told = TellRows(*databases[0], worker);
      if (!told.ok()) return told.status();
      *rows += *told;
    }
    if (spatial()) GANNET_RETURN_IF_ERROR(CheckRectangles(databases));
    GANNET_RETURN_IF_ERROR(CheckIndex(databases));
    GANNET_RETURN_IF_ERROR(CheckWide(databases));
    const uint64_t beside = KeysOf(databases, kIndex) + KeysOf(databases, kWide);
    pipe_->Send({.kind = MessageKind::kStateEnd, .number = KeysIn(databases) - beside, .a = *rows});
    return absl::OkStatus();
  }

  // Changes the catalog on all nodes together, so that crashes hit that: renames a table to and fro, creates and drops
  // others, widens one that has rows, and makes and drops an index of the rows that the workers change.
  Status WorkBeside(std::span<txn::Database* const> databases) override {
    constexpr uint64_t kPauseNanos = 20'000'000;
    Random random(Mix64(options_.seed) + databases[0]->tables().size());
    const bool is_there =
        std::ranges::any_of(kRenamed, [&](const char* name) { return databases[0]->FindTable(name) != nullptr; });
    if (!is_there) GANNET_RETURN_IF_ERROR(txn::CreateTableOnAllNodes(databases, Small(kRenamed[0])));
    for (;;) {
      SleepForNanos(random.Below(kPauseNanos));
      const uint64_t kind = random.Below(8);
      GANNET_RETURN_IF_ERROR(kind < 3    ? Rename(databases)
                             : kind == 3 ? CreateOrDrop(databases, random)
                             : kind < 6  ? Widen(databases, random)
                                         : ChangeIndex(databases, random));
    }
  }

  coro::Task<Status> Work(txn::Session* session, uint32_t worker) override {
    Acknowledgements acknowledgements(&session->database(), options_.mode, pipe_);
    for (uint64_t number = counters_.last(worker) + 1;; ++number) {
      pipe_->Send({.kind = MessageKind::kBegun, .worker = worker, .number = number});
      const std::vector<KvChange> changes = KvOperation(options_.seed, worker, number);
      const auto apply = [this, worker, number, &changes](txn::Transaction& t) {
        return Apply(t, worker, number, &changes);
      };
      const Status status = co_await session->Run(apply);
      if (!status.ok()) co_return status;
      acknowledgements.Add(worker, number);
      co_await session->worker().Yield();
    }
  }

  coro::Task<Status> Observe(txn::Session* session, uint64_t seed) override { return counters_.Observe(session, seed); }

 private:
  // The names of the table that WorkBeside renames.
  static constexpr std::array kRenamed = {"renamed", "renamed'"};

  // A table of rows of fixed length, which is widened.
  static constexpr char kWide[] = "wide";
  static constexpr uint64_t kWideRows = 16;
  static constexpr size_t kLeastWide = 16;
  // An index of the hash table. Its rows have different contents.
  static constexpr char kIndex[] = "hash_by_content";

  static txn::TableOptions Small(std::string name) {
    return {.name = std::move(name), .payload_bytes = 8, .expected_rows = 10, .placement = txn::Placement::ByHash()};
  }

  static Status Rename(std::span<txn::Database* const> databases) {
    const bool first = databases[0]->FindTable(kRenamed[0]) != nullptr;
    return txn::RenameTableOnAllNodes(databases, kRenamed[first ? 0 : 1], kRenamed[first ? 1 : 0]);
  }

  static Status CreateOrDrop(std::span<txn::Database* const> databases, Random& random) {
    constexpr uint64_t kMostCreated = 8;
    const std::string name = absl::StrCat("created", random.Below(kMostCreated));
    if (databases[0]->FindTable(name) != nullptr) return txn::DropTableOnAllNodes(databases, name);
    return txn::CreateTableOnAllNodes(databases, Small(name));
  }

  // Writes a row of the present size, and makes all longer. A table that is long enough is dropped.
  static Status Widen(std::span<txn::Database* const> databases, Random& random) {
    constexpr size_t kMostWide = 1000;
    const txn::Table* const table = databases[0]->FindTable(kWide);
    if (table == nullptr) {
      txn::TableOptions wide = Small(kWide);
      wide.payload_bytes = kLeastWide;
      return txn::CreateTableOnAllNodes(databases, wide);
    }
    if (table->payload_bytes() > kMostWide) return txn::DropTableOnAllNodes(databases, kWide);
    const uint64_t key = random.Below(kWideRows);
    const std::string row = WideRow(key, table->payload_bytes());
    GANNET_RETURN_IF_ERROR(databases[random.Below(databases.size())]->Run([&](txn::BlockingTransaction& t) {
      return t.Upsert(*t.transaction().session().database().FindTable(kWide), key, row);
    }));
    return txn::WidenTableOnAllNodes(databases, kWide, table->payload_bytes() + random.Below(60));
  }

  // A row as it is written: its key, its length, and other bytes than the zeros that it gets later.
  static std::string WideRow(uint64_t key, uint64_t bytes) {
    std::string row(bytes, 'w');
    std::memcpy(row.data(), &key, sizeof key);
    std::memcpy(row.data() + sizeof key, &bytes, sizeof bytes);
    return row;
  }

  static Status CheckWide(std::span<txn::Database* const> databases) {
    const txn::Table* const table = databases[0]->FindTable(kWide);
    if (table == nullptr) return absl::OkStatus();
    return databases[0]->Run([table](txn::BlockingTransaction& t) -> Status {
      for (uint64_t key = 0; key < kWideRows; ++key) {
        std::string row;
        const Status got = t.Get(*table, key, &row);
        if (absl::IsNotFound(got)) continue;
        GANNET_RETURN_IF_ERROR(got);
        uint64_t written = 0;
        std::memcpy(&written, row.data() + sizeof key, sizeof written);
        std::string expected = WideRow(key, std::clamp<uint64_t>(written, kLeastWide, row.size()));
        expected.resize(table->payload_bytes(), '\0');
        if (row != expected) return absl::DataLossError(absl::StrCat("row ", key, " of a widened table is wrong"));
      }
      return absl::OkStatus();
    });
  }

  // Makes the index, also after a crash in the middle of that, or drops it.
  static Status ChangeIndex(std::span<txn::Database* const> databases, Random& random) {
    const txn::SecondaryIndex* const index = databases[0]->FindIndex(kIndex);
    if (index != nullptr && (index->is_complete() || random.OneIn(2))) {
      return txn::DropTableOnAllNodes(databases, kIndex);
    }
    txn::SecondaryIndexOptions options{.name = kIndex, .table = "hash", .unique = random.OneIn(2)};
    if (index != nullptr) options.unique = index->unique();
    options.fields = {txn::IndexField::Unsigned(0, 8)};
    options.placement = txn::Placement::ByHash();
    return txn::CreateIndexOnAllNodes(databases, options);
  }

  // An index that is complete after a crash leads to all rows of its table, in order.
  static Status CheckIndex(std::span<txn::Database* const> databases) {
    const txn::SecondaryIndex* const index = databases[0]->FindIndex(kIndex);
    if (index == nullptr || !index->is_complete()) return absl::OkStatus();
    uint64_t found = 0;
    GANNET_RETURN_IF_ERROR(databases[0]->Run([&](txn::BlockingTransaction& t) -> Status {
      found = 0;
      uint64_t last = 0;
      txn::BlockingIndexCursor cursor = t.RowsBy(*index);
      for (const txn::IndexCursor& row : cursor) {
        uint64_t content = 0;
        std::memcpy(&content, row.payload().data(), sizeof content);
        if (content < last) return absl::DataLossError("an index is not in order after a crash");
        last = content;
        ++found;
      }
      return cursor.status();
    }));
    const uint64_t rows = KeysOf(databases, "hash");
    if (found == rows && KeysOf(databases, kIndex) == rows) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("an index has ", KeysOf(databases, kIndex), " entries and leads to ", found,
                                            " rows of ", rows, " after a crash"));
  }

  static uint64_t KeysOf(std::span<txn::Database* const> databases, std::string_view name) {
    uint64_t keys = 0;
    for (txn::Database* database : databases) {
      for (const txn::TableStatistics& table : database->table_statistics()) {
        if (table.table == name) keys += table.index.keys;
      }
    }
    return keys;
  }

  // All nodes have the same tables, and the renamed one has one name.
  static Status CheckCatalogs(std::span<txn::Database* const> databases) {
    std::vector<std::string> first;
    for (txn::Database* const database : databases) {
      std::vector<std::string> names;
      for (const txn::Table* const table : database->tables()) names.push_back(table->name());
      if (database == databases[0]) first = names;
      if (names != first) return absl::DataLossError("the nodes have different tables after a crash");
    }
    if (std::ranges::all_of(kRenamed,
                            [&](const char* name) { return std::ranges::find(first, name) != first.end(); })) {
      return absl::DataLossError("a renamed table has both names after a crash");
    }
    return absl::OkStatus();
  }

  static constexpr char kSecondTable[] = "second";

  bool spatial() const { return options_.workload == WorkloadKind::kRectangles; }

  // A row's key in its table.
  class RowKey {
   public:
    RowKey(uint64_t table, bool spatial, uint32_t worker, uint64_t key) : number_(uint64_t{worker} << 32 | key) {
      if (table != kOrderedTable) return;
      text_ = spatial ? std::string(PlaceOf(worker, key).view().bytes()) : absl::StrFormat("w%04d/%d", worker, key);
    }
    index::Key get() const { return text_.empty() ? index::Key(number_) : index::Key(std::string_view(text_)); }

   private:
    uint64_t number_;
    std::string text_;
  };

  static const txn::Table& TableOf(txn::Database& database, uint64_t table) {
    return *database.FindTable(table == kHashTable ? "hash" : kSecondTable);
  }

  RowKey KeyOf(uint64_t table, uint32_t worker, uint64_t key) const { return {table, spatial(), worker, key}; }

  // A search of everything finds the rectangles that lookups find, in their order, and the trees are sound.
  Status CheckRectangles(std::span<txn::Database* const> databases) const {
    for (txn::Database* database : databases) {
      GANNET_RETURN_IF_ERROR(database->FindTable(kSecondTable)->local_index().CheckStructure());
    }
    return databases[0]->Run([&](txn::BlockingTransaction& t) -> Status {
      const txn::Table& table = TableOf(*databases[0], kOrderedTable);
      txn::ScanRows found;
      GANNET_RETURN_IF_ERROR(t.Search(table, index::Rectangle::Everything(), &found, {.keys_only = true}));
      std::vector<std::string> expected;
      for (uint32_t worker = 0; worker < static_cast<uint32_t>(options_.workers()); ++worker) {
        for (uint64_t number = 0; number < kKeysPerWorker; ++number) {
          const RowKey key = KeyOf(kOrderedTable, worker, number);
          const StatusOr<bool> exists = t.Exists(table, key.get());
          if (!exists.ok()) return exists.status();
          if (*exists) expected.emplace_back(key.get().bytes());
        }
      }
      std::ranges::sort(expected);
      bool same = expected.size() == found.size();
      for (size_t i = 0; same && i < found.size(); ++i) same = found.key(i).bytes() == expected[i];
      if (same) return absl::OkStatus();
      return absl::InternalError(absl::StrCat("a search of all rectangles finds ", found.size(), ", and lookups find ",
                                              expected.size(), ", or they differ"));
    });
  }

  // Reports all rows of a worker, and returns their number. One transaction, because over several nodes each may wait
  // for the log.
  StatusOr<uint64_t> TellRows(txn::Database& database, uint32_t worker) const {
    std::vector<Message> messages;
    const Status status = database.Run([&](txn::BlockingTransaction& t) -> Status {
      messages.clear();
      for (uint64_t table = 0; table < kKvTables; ++table) {
        for (uint64_t key = 0; key < kKeysPerWorker; ++key) {
          const StatusOr<uint64_t> content = ReadRow(t, TableOf(database, table), KeyOf(table, worker, key));
          if (absl::IsNotFound(content.status())) continue;
          if (!content.ok()) return content.status();
          messages.push_back({.kind = MessageKind::kRow, .worker = worker, .a = table, .b = key, .c = *content});
        }
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    for (const Message& message : messages) pipe_->Send(message);
    return messages.size();
  }

  // NotFound if there is none.
  static StatusOr<uint64_t> ReadRow(txn::BlockingTransaction& t, const txn::Table& table, const RowKey& key) {
    std::array<std::byte, kMostPayloadBytes> payload{};
    // A read of the first byte also gives the row's length.
    std::array<txn::GetRequest, 1> request;
    request[0] = {.table = &table, .key = key.get(), .out = std::span(payload).first(1), .offset = 0};
    const Status first = t.GetMany(request);
    if (!first.ok()) return first;
    if (!request[0].status.ok()) return request[0].status;
    const std::span<std::byte> whole = std::span(payload).first(request[0].payload_bytes);
    const Status read = t.Get(table, key.get(), whole);
    if (!read.ok()) return read;
    return ContentOf(whole);
  }

  coro::Task<Status> Apply(txn::Transaction& t, uint32_t worker, uint64_t number,
                           const std::vector<KvChange>* changes) const {
    for (const KvChange& change : *changes) {
      const Status status = co_await ApplyOne(t, worker, change);
      if (!status.ok()) co_return status;
    }
    co_return co_await counters_.Set(t, worker, number);
  }

  coro::Task<Status> ApplyOne(txn::Transaction& t, uint32_t worker, const KvChange& change) const {
    const txn::Table& table = TableOf(t.session().database(), change.table);
    const RowKey key = KeyOf(change.table, worker, change.key);
    const std::string payload = PayloadOf(change.content);
    uint64_t old = 0;
    const StatusOr<txn::RecordHandle> handle = co_await t.GetForUpdate(table, key.get(), &old, 0);
    if (absl::IsNotFound(handle.status())) {
      co_return change.remove ? absl::OkStatus() : t.Insert(table, key.get(), payload);
    }
    if (!handle.ok()) co_return handle.status();
    co_return change.remove ? t.Remove(*handle) : t.Update(*handle, payload);
  }

  const CrashOptions options_;
  const MessagePipe* pipe_;
  Counters counters_;
};

}  // namespace

std::unique_ptr<Workload> MakeKvWorkload(const CrashOptions& options, const MessagePipe* pipe) {
  return std::make_unique<KvWorkload>(options, pipe);
}

}  // namespace gannet::scenario::crash
