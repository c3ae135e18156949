// Gannet by Database::Run, the interface of programs without coroutines.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/peers/engine.h"
#include "txn/database.h"

namespace gannet::bench::peers {
namespace {

using txn::BlockingTransaction;
using txn::GetRequest;

constexpr size_t kMostTogether = 100;
// Room for a word, as in examples/word_counts.cc: longer words than those of the benchmark have room, too.
constexpr size_t kRoomForWordBytes = 64;
static_assert(kRoomForWordBytes >= kMaxWordBytes);

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class GannetClient : public Client {
 public:
  GannetClient(const Data* data, txn::Database* database, std::array<const txn::Table*, kTables.size()> tables)
      : data_(data), database_(database), tables_(tables) {}

  Status Insert(Table table, std::span<const uint64_t> rows) override {
    return Run([&](BlockingTransaction& t) -> Status {
      for (const uint64_t row : rows) {
        const Payload payload = data_->payload(table, data_->key(table, row), 0);
        GANNET_RETURN_IF_ERROR(t.Insert(of(table), KeyOf(table, data_->key(table, row)), Bytes(payload.view())));
      }
      return absl::OkStatus();
    });
  }

  Status Read(Table table, std::span<const Key> keys, Digest* digest) override {
    Digest seen;
    const Status status = Run([&](BlockingTransaction& t) -> Status {
      seen = *digest;  // the body may run several times
      for (const Key& key : keys) {
        const auto payload = t.GetView(of(table), KeyOf(table, key));
        if (!payload.ok()) return payload.status();
        seen.AddPayload(Text(*payload));
      }
      return absl::OkStatus();
    });
    *digest = seen;
    return status;
  }

  Status ReadTogether(Table table, std::span<const Key> keys, Digest* digest) override {
    for (; !keys.empty(); keys = keys.subspan(std::min(keys.size(), kMostTogether))) {
      GANNET_RETURN_IF_ERROR(ReadSome(table, keys.first(std::min(keys.size(), kMostTogether)), digest));
    }
    return absl::OkStatus();
  }

  Status Scan(Table table, const Key* from, uint64_t limit, uint64_t* rows, Digest* digest) override {
    // A range of some rows is one Scan; all rows are gone through by a cursor, which needs no memory for them.
    if (from != nullptr) return ScanSome(table, *from, limit, rows, digest);
    Digest seen;
    uint64_t found = 0;
    const Status status = Run([&](BlockingTransaction& t) -> Status {
      seen = *digest;
      found = 0;
      txn::BlockingCursor cursor = t.Rows(of(table));
      for (const txn::Cursor& row : cursor) {
        if (++found > limit) break;
        seen.AddRow(FromKey(table, row.key()), Text(row.payload()));
      }
      return cursor.status();
    });
    *digest = seen;
    *rows += std::min(found, limit);
    return status;
  }

  Status Update(Table table, const Key& key, std::string_view payload) override {
    return Run([&](BlockingTransaction& t) { return t.Update(of(table), KeyOf(table, key), Bytes(payload)); });
  }

  Status Transfer(const Key& from, const Key& to, int64_t amount) override {
    return Run([&](BlockingTransaction& t) -> Status {
      GANNET_RETURN_IF_ERROR(AddTo(t, from, -amount));
      return AddTo(t, to, amount);
    });
  }

 private:
  // std::function takes a reference to the body without memory of its own.
  template <class Body>
  Status Run(Body body) {
    return database_->Run(std::ref(body));
  }
  const txn::Table& of(Table table) const { return *tables_[static_cast<size_t>(table)]; }
  static index::Key KeyOf(Table table, const Key& key) {
    return table == Table::kWords ? index::Key(key.bytes) : index::Key(key.number);
  }
  static Key FromKey(Table table, const index::Key& key) {
    return table == Table::kWords ? Key{.bytes = key.bytes()} : Key{.bytes = {}, .number = key.integer()};
  }

  Status ReadSome(Table table, std::span<const Key> keys, Digest* digest) {
    std::array<Payload, kMostTogether> payloads;
    std::array<GetRequest, kMostTogether> requests;
    const std::span<GetRequest> all = std::span(requests).first(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      all[i].table = &of(table);
      all[i].key = KeyOf(table, keys[i]);
      all[i].out = std::as_writable_bytes(std::span(payloads[i].bytes));
      all[i].up_to_end = true;
    }
    GANNET_RETURN_IF_ERROR(Run([&](BlockingTransaction& t) { return t.GetMany(all); }));
    for (size_t i = 0; i < keys.size(); ++i) {
      GANNET_RETURN_IF_ERROR(all[i].status);
      payloads[i].size = all[i].payload_bytes;
      digest->AddPayload(payloads[i].view());
    }
    return absl::OkStatus();
  }

  Status ScanSome(Table table, const Key& from, uint64_t limit, uint64_t* rows, Digest* digest) {
    static const std::string kLastWord(kMaxWordBytes, '\xff');
    const index::Key last = table == Table::kWords ? index::Key(std::string_view(kLastWord)) : index::Key(UINT64_MAX);
    GANNET_RETURN_IF_ERROR(Run([&](BlockingTransaction& t) {
      return t.Scan(of(table), {.from = KeyOf(table, from), .to = last, .limit = limit}, &found_);
    }));
    *rows += found_.size();
    for (size_t i = 0; i < found_.size(); ++i) digest->AddRow(FromKey(table, found_.key(i)), Text(found_.payload(i)));
    return absl::OkStatus();
  }

  Status AddTo(BlockingTransaction& t, const Key& key, int64_t amount) {
    const auto old = t.GetView(of(Table::kRows), KeyOf(Table::kRows, key));
    if (!old.ok()) return old.status();
    Payload payload;
    payload.size = Text(*old).copy(payload.bytes.data(), payload.bytes.size());
    SetNumber(NumberOf(Text(*old)) + amount, &payload);
    return t.Update(of(Table::kRows), KeyOf(Table::kRows, key), Bytes(payload.view()));
  }

  const Data* data_;
  txn::Database* database_;
  std::array<const txn::Table*, kTables.size()> tables_;
  txn::ScanRows found_;
};

class GannetEngine : public Engine {
 public:
  static StatusOr<std::unique_ptr<Engine>> Open(txn::IndexKind kind, const Data& data, const std::string& directory,
                                                Durability durability) {
    auto engine = std::unique_ptr<GannetEngine>(new GannetEngine(&data, durability));
    // The others wait for a slow disk for any time.
    txn::DatabaseOptions options = {.durable_within = absl::Minutes(10), .memory_bytes = uint64_t{4} << 30};
    if (durability != Durability::kMemory) {
      options.create_if_missing = true;
      options.durability = durability == Durability::kSync ? txn::DurabilityMode::kSync : txn::DurabilityMode::kAsync;
    }
    auto database = durability == Durability::kMemory ? txn::Database::OpenInMemory(options)
                                                      : txn::Database::Open(directory, options);
    if (!database.ok()) return database.status();
    engine->database_ = *std::move(database);
    GANNET_RETURN_IF_ERROR(engine->MakeTables(kind));
    GANNET_RETURN_IF_ERROR(engine->database_->Start());
    return engine;
  }

  StatusOr<std::unique_ptr<Client>> OpenClient() override {
    return std::make_unique<GannetClient>(data_, database_.get(), tables_);
  }
  Status Settle() override {
    for (const txn::Table* table : tables_) {
      if (table->index_traits().keeps_order) GANNET_RETURN_IF_ERROR(database_->ArrangeTable(table->name()));
    }
    return durability_ == Durability::kMemory ? absl::OkStatus() : database_->Checkpoint();
  }
  StatusOr<uint64_t> CountedBytes(Table table) override {
    for (const txn::TableStatistics& of : database_->table_statistics()) {
      if (of.table != tables_[static_cast<size_t>(table)]->name()) continue;
      return of.record_bytes + of.own_location_bytes + of.index.registered_bytes + of.index.private_bytes;
    }
    return absl::InternalError("gannet has no statistics of a table that it has");
  }
  Status Close() override { return database_->Close(); }

 private:
  GannetEngine(const Data* data, Durability durability) : data_(data), durability_(durability) {}

  Status MakeTables(txn::IndexKind kind) {
    auto words = database_->CreateTable({.name = "words",
                                         .key_kind = index::KeyKind::kBytes,
                                         .max_key_bytes = kRoomForWordBytes,
                                         .index = kind,
                                         .payload_bytes = kWordPayloadBytes,
                                         .expected_rows = data_->size(Table::kWords)});
    if (!words.ok()) return words.status();
    auto rows = database_->CreateTable({.name = "rows",
                                        .index = kind,
                                        .payload_bytes = kMaxRowPayloadBytes,
                                        .variable_length = true,
                                        .expected_rows = data_->size(Table::kRows)});
    if (!rows.ok()) return rows.status();
    tables_ = {*words, *rows};
    return absl::OkStatus();
  }

  const Data* data_;
  Durability durability_;
  std::unique_ptr<txn::Database> database_;
  std::array<const txn::Table*, kTables.size()> tables_{};
};

EngineKind Gannet(std::string name, txn::IndexKind kind, const std::string& index) {
  return {
      .name = std::move(name),
      .version = GANNET_VERSION,
      .ordered = kind != txn::IndexKind::kHash,
      .settings = {absl::StrCat(index, "; byte keys of up to ", kRoomForWordBytes, " bytes"),
                   kind != txn::IndexKind::kHash ? "after the load Database::ArrangeTable" : "nothing after the load",
                   "Database::Run, serializable; all rows in memory",
                   "memory: OpenInMemory, no log; background: DurabilityMode::kAsync; durable: kSync; group commit "
                   "300 us, the default"},
      .open = [kind](const Data& data, const std::string& directory, Durability durability) {
        return GannetEngine::Open(kind, data, directory, durability);
      }};
}

}  // namespace

EngineKind GannetHash() {
  return Gannet("gannet hash", txn::IndexKind::kHash, "IndexKind::kHash");
}
EngineKind GannetOrdered() {
  return Gannet("gannet ordered", txn::IndexKind::kXStore, "IndexKind::kXStore");
}

}  // namespace gannet::bench::peers
