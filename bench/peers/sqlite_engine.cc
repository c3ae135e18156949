// SQLite: a connection and prepared statements per thread.
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/peers/engine.h"

namespace gannet::bench::peers {
namespace {

constexpr int kCacheMib = 256;
// How long a writer that waits for another one sleeps. SQLite's own handler sleeps at least 1 ms: longer than a
// transaction takes.
constexpr int kBusySleepMicros = 50;

const char* Name(Table table) {
  return table == Table::kWords ? "words" : "rows";
}

class Statement {
 public:
  Statement() = default;
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Status Prepare(sqlite3* connection, const std::string& sql) {
    connection_ = connection;
    const int code = sqlite3_prepare_v3(connection, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
    return code == SQLITE_OK ? absl::OkStatus() : Error();
  }
  void Bind(int at, Table table, const Key& key) {
    if (table == Table::kWords) {
      Bind(at, key.bytes);
    } else {
      sqlite3_bind_int64(statement_, at, static_cast<sqlite3_int64>(key.number));
    }
  }
  void Bind(int at, std::string_view bytes) {
    sqlite3_bind_blob(statement_, at, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC);
  }
  void Bind(int at, int64_t number) { sqlite3_bind_int64(statement_, at, number); }
  int Step() { return sqlite3_step(statement_); }
  void Reset() { sqlite3_reset(statement_); }
  // Runs a statement without rows. A statement that meets the lock of another connection runs again.
  Status Run() {
    while (true) {
      const int code = Step();
      const Status status = code == SQLITE_DONE ? absl::OkStatus() : Error();
      Reset();
      if (code != SQLITE_BUSY) return status;
    }
  }
  std::string_view bytes(int column) {
    const void* data = sqlite3_column_blob(statement_, column);
    return {static_cast<const char*>(data), static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
  }
  int64_t number(int column) { return sqlite3_column_int64(statement_, column); }
  Status Error() const { return absl::InternalError(absl::StrCat("sqlite: ", sqlite3_errmsg(connection_))); }

 private:
  sqlite3* connection_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

class Connection {
 public:
  Connection() = default;
  ~Connection() { sqlite3_close(connection_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Status Open(const std::string& file, Durability durability) {
    constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(file.c_str(), &connection_, kFlags, nullptr) != SQLITE_OK) {
      return absl::InternalError(absl::StrCat("sqlite: ", file, ": ", sqlite3_errmsg(connection_)));
    }
    sqlite3_busy_handler(
        connection_,
        [](void*, int) {
          usleep(kBusySleepMicros);
          return 1;
        },
        nullptr);
    return Execute(
        absl::StrFormat("PRAGMA journal_mode = WAL; PRAGMA synchronous = %s; PRAGMA cache_size = -%d; "
                        "PRAGMA mmap_size = 1073741824",
                        durability == Durability::kSync ? "FULL" : "OFF", kCacheMib * 1024));
  }
  Status Execute(const std::string& sql) {
    char* message = nullptr;
    if (sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, &message) == SQLITE_OK) return absl::OkStatus();
    const Status status = absl::InternalError(absl::StrCat("sqlite: ", sql, ": ", message));
    sqlite3_free(message);
    return status;
  }
  sqlite3* get() { return connection_; }

 private:
  sqlite3* connection_ = nullptr;
};

class SqliteClient : public Client {
 public:
  explicit SqliteClient(const Data* data) : data_(data) {}

  Status Open(const std::string& file, Durability durability) {
    GANNET_RETURN_IF_ERROR(connection_.Open(file, durability));
    GANNET_RETURN_IF_ERROR(begin_.Prepare(connection_.get(), "BEGIN"));
    GANNET_RETURN_IF_ERROR(begin_write_.Prepare(connection_.get(), "BEGIN IMMEDIATE"));
    GANNET_RETURN_IF_ERROR(commit_.Prepare(connection_.get(), "COMMIT"));
    GANNET_RETURN_IF_ERROR(roll_back_.Prepare(connection_.get(), "ROLLBACK"));
    for (const Table table : kTables) {
      PerTable& of = Of(table);
      const auto prepare = [&](Statement* statement, const char* sql) {
        return statement->Prepare(connection_.get(), absl::StrCat(sql, " "));
      };
      const std::string name = Name(table);
      GANNET_RETURN_IF_ERROR(prepare(&of.insert, ("INSERT INTO " + name + " VALUES (?, ?)").c_str()));
      GANNET_RETURN_IF_ERROR(prepare(&of.get, ("SELECT v FROM " + name + " WHERE k = ?").c_str()));
      GANNET_RETURN_IF_ERROR(prepare(&of.all, ("SELECT k, v FROM " + name + " ORDER BY k LIMIT ?").c_str()));
      GANNET_RETURN_IF_ERROR(
          prepare(&of.range, ("SELECT k, v FROM " + name + " WHERE k >= ? ORDER BY k LIMIT ?").c_str()));
      GANNET_RETURN_IF_ERROR(prepare(&of.update, ("UPDATE " + name + " SET v = ? WHERE k = ?").c_str()));
    }
    return absl::OkStatus();
  }

  Status Insert(Table table, std::span<const uint64_t> rows) override {
    return Write([&]() -> Status {
      Statement& insert = Of(table).insert;
      for (const uint64_t row : rows) {
        const Payload payload = data_->payload(table, data_->key(table, row), 0);
        insert.Bind(1, table, data_->key(table, row));
        insert.Bind(2, payload.view());
        GANNET_RETURN_IF_ERROR(insert.Run());
      }
      return absl::OkStatus();
    });
  }

  Status Read(Table table, std::span<const Key> keys, Digest* digest) override {
    // One statement is a transaction by itself.
    if (keys.size() == 1) return ReadOne(table, keys[0], digest);
    GANNET_RETURN_IF_ERROR(begin_.Run());
    Status status;
    for (const Key& key : keys) {
      status = ReadOne(table, key, digest);
      if (!status.ok()) break;
    }
    status.Update(commit_.Run());
    return status;
  }

  Status Scan(Table table, const Key* from, uint64_t limit, uint64_t* rows, Digest* digest) override {
    Statement& scan = from != nullptr ? Of(table).range : Of(table).all;
    int at = 1;
    if (from != nullptr) scan.Bind(at++, table, *from);
    scan.Bind(at, static_cast<int64_t>(std::min<uint64_t>(limit, INT64_MAX)));
    int code;
    for (code = scan.Step(); code == SQLITE_ROW; code = scan.Step()) {
      Key key;
      if (table == Table::kWords) {
        key.bytes = scan.bytes(0);
      } else {
        key.number = static_cast<uint64_t>(scan.number(0));
      }
      digest->AddRow(key, scan.bytes(1));
      ++*rows;
    }
    const Status status = code == SQLITE_DONE ? absl::OkStatus() : scan.Error();
    scan.Reset();
    return status;
  }

  Status Update(Table table, const Key& key, std::string_view payload) override {
    Statement& update = Of(table).update;
    update.Bind(1, payload);
    update.Bind(2, table, key);
    GANNET_RETURN_IF_ERROR(update.Run());
    return sqlite3_changes(connection_.get()) == 1 ? absl::OkStatus() : absl::NotFoundError("sqlite: no such row");
  }

  Status Transfer(const Key& from, const Key& to, int64_t amount) override {
    return Write([&]() -> Status {
      GANNET_RETURN_IF_ERROR(AddTo(from, -amount));
      return AddTo(to, amount);
    });
  }

 private:
  struct PerTable {
    Statement insert;
    Statement get;
    Statement all;
    Statement range;
    Statement update;
  };
  PerTable& Of(Table table) { return tables_[static_cast<size_t>(table)]; }

  template <class Body>
  Status Write(const Body& body) {
    GANNET_RETURN_IF_ERROR(begin_write_.Run());
    if (Status status = body(); !status.ok()) {
      roll_back_.Run().IgnoreError();  // the first error counts
      return status;
    }
    return commit_.Run();
  }

  Status ReadOne(Table table, const Key& key, Digest* digest) {
    Statement& get = Of(table).get;
    get.Bind(1, table, key);
    const int code = get.Step();
    if (code == SQLITE_ROW) digest->AddPayload(get.bytes(0));
    const Status status = code == SQLITE_ROW    ? absl::OkStatus()
                          : code == SQLITE_DONE ? absl::NotFoundError("sqlite: no such row")
                                                : get.Error();
    get.Reset();
    return status;
  }

  Status AddTo(const Key& key, int64_t amount) {
    Statement& get = Of(Table::kRows).get;
    get.Bind(1, Table::kRows, key);
    if (get.Step() != SQLITE_ROW) {
      const Status status = get.Error();
      get.Reset();
      return status;
    }
    Payload payload;
    payload.size = get.bytes(0).copy(payload.bytes.data(), payload.bytes.size());
    get.Reset();
    SetNumber(NumberOf(payload.view()) + amount, &payload);
    return Update(Table::kRows, key, payload.view());
  }

  const Data* data_;
  Connection connection_;  // outlives the statements
  Statement begin_;
  Statement begin_write_;
  Statement commit_;
  Statement roll_back_;
  std::array<PerTable, kTables.size()> tables_;
};

class SqliteEngine : public Engine {
 public:
  SqliteEngine(const Data* data, std::string file, Durability durability)
      : data_(data), file_(std::move(file)), durability_(durability) {}

  Status Open() {
    connection_ = std::make_unique<Connection>();
    GANNET_RETURN_IF_ERROR(connection_->Open(file_, durability_));
    return connection_->Execute(
        "CREATE TABLE words (k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID; "
        "CREATE TABLE rows (k INTEGER PRIMARY KEY, v BLOB)");
  }
  StatusOr<std::unique_ptr<Client>> OpenClient() override {
    auto client = std::make_unique<SqliteClient>(data_);
    GANNET_RETURN_IF_ERROR(client->Open(file_, durability_));
    return client;
  }
  Status Settle() override { return connection_->Execute("PRAGMA wal_checkpoint(TRUNCATE)"); }
  StatusOr<uint64_t> CountedBytes(Table table) override {
    // Debian's SQLite has the virtual table dbstat.
    Statement pages;
    GANNET_RETURN_IF_ERROR(pages.Prepare(
        connection_->get(), absl::StrFormat("SELECT sum(pgsize) FROM dbstat WHERE name = '%s'", Name(table))));
    if (pages.Step() != SQLITE_ROW) return pages.Error();
    return static_cast<uint64_t>(pages.number(0));
  }
  Status Close() override {
    connection_.reset();
    return absl::OkStatus();
  }

 private:
  const Data* data_;
  std::string file_;
  Durability durability_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace

EngineKind Sqlite() {
  return {
      .name = "SQLite",
      .version = sqlite3_libversion(),
      .settings = {"WAL mode, a connection and prepared statements per thread, cache_size and mmap_size larger than "
                   "the data; words in a table WITHOUT ROWID, accounts by INTEGER PRIMARY KEY",
                   "a writer that waits looks again every 50 us",
                   "memory and background: synchronous = OFF; durable: synchronous = FULL"},
      .open = [](const Data& data, const std::string& directory,
                 Durability durability) -> StatusOr<std::unique_ptr<Engine>> {
        auto engine = std::make_unique<SqliteEngine>(&data, directory + "/data.sqlite", durability);
        GANNET_RETURN_IF_ERROR(engine->Open());
        return engine;
      }};
}

}  // namespace gannet::bench::peers
