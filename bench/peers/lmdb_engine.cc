// LMDB: a read transaction of each thread is renewed for every transaction, as its documentation advises.
#include <lmdb.h>

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/peers/engine.h"

namespace gannet::bench::peers {
namespace {

// Address space only.
constexpr size_t kMapBytes = size_t{8} << 30;

Status ToStatus(int code, const char* call) {
  if (code == MDB_SUCCESS) return absl::OkStatus();
  const std::string text = absl::StrCat("lmdb: ", call, ": ", mdb_strerror(code));
  return code == MDB_NOTFOUND ? absl::NotFoundError(text) : absl::InternalError(text);
}

std::string_view Text(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

// The environment and its tables. Accounts have MDB_INTEGERKEY: numbers of the machine's byte order.
struct Environment {
  MDB_env* env = nullptr;
  std::array<MDB_dbi, kTables.size()> tables{};

  MDB_dbi of(Table table) const { return tables[static_cast<size_t>(table)]; }
};

// A key that LMDB accepts, valid as long as this and the key.
class LmdbKey {
 public:
  LmdbKey(Table table, const Key& key) : number_(key.number) {
    if (table == Table::kWords) {
      value_ = {.mv_size = key.bytes.size(), .mv_data = const_cast<char*>(key.bytes.data())};
    } else {
      value_ = {.mv_size = sizeof number_, .mv_data = &number_};
    }
  }
  LmdbKey(const LmdbKey&) = delete;
  LmdbKey& operator=(const LmdbKey&) = delete;
  MDB_val* get() { return &value_; }
  static Key From(Table table, const MDB_val& value) {
    if (table == Table::kWords) return {.bytes = Text(value)};
    Key key;
    std::memcpy(&key.number, value.mv_data, sizeof key.number);
    return key;
  }

 private:
  size_t number_;
  MDB_val value_;
};

class LmdbClient : public Client {
 public:
  LmdbClient(const Data* data, const Environment* environment) : data_(data), environment_(environment) {}
  ~LmdbClient() override {
    for (MDB_cursor* cursor : cursors_) {
      if (cursor != nullptr) mdb_cursor_close(cursor);
    }
    if (reader_ != nullptr) mdb_txn_abort(reader_);
  }
  LmdbClient(const LmdbClient&) = delete;
  LmdbClient& operator=(const LmdbClient&) = delete;

  Status Open() {
    GANNET_RETURN_IF_ERROR(ToStatus(mdb_txn_begin(environment_->env, nullptr, MDB_RDONLY, &reader_), "mdb_txn_begin"));
    for (const Table table : kTables) {
      MDB_cursor** cursor = &cursors_[static_cast<size_t>(table)];
      GANNET_RETURN_IF_ERROR(ToStatus(mdb_cursor_open(reader_, environment_->of(table), cursor), "mdb_cursor_open"));
    }
    mdb_txn_reset(reader_);
    return absl::OkStatus();
  }

  Status Insert(Table table, std::span<const uint64_t> rows) override {
    return Write([&](MDB_txn* t) -> Status {
      for (const uint64_t row : rows) {
        const Payload payload = data_->payload(table, data_->key(table, row), 0);
        GANNET_RETURN_IF_ERROR(Put(t, table, data_->key(table, row), payload.view(), MDB_NOOVERWRITE));
      }
      return absl::OkStatus();
    });
  }

  Status Read(Table table, std::span<const Key> keys, Digest* digest) override {
    GANNET_RETURN_IF_ERROR(ToStatus(mdb_txn_renew(reader_), "mdb_txn_renew"));
    Status status;
    for (const Key& key : keys) {
      MDB_val payload;
      status = ToStatus(mdb_get(reader_, environment_->of(table), LmdbKey(table, key).get(), &payload), "mdb_get");
      if (!status.ok()) break;
      digest->AddPayload(Text(payload));
    }
    mdb_txn_reset(reader_);
    return status;
  }

  Status Scan(Table table, const Key* from, uint64_t limit, uint64_t* rows, Digest* digest) override {
    MDB_cursor* const cursor = cursors_[static_cast<size_t>(table)];
    GANNET_RETURN_IF_ERROR(ToStatus(mdb_txn_renew(reader_), "mdb_txn_renew"));
    int code = mdb_cursor_renew(reader_, cursor);
    MDB_val key{};
    MDB_val payload{};
    if (code == MDB_SUCCESS && from != nullptr) {
      LmdbKey first(table, *from);
      key = *first.get();
      code = mdb_cursor_get(cursor, &key, &payload, MDB_SET_RANGE);
    } else if (code == MDB_SUCCESS) {
      code = mdb_cursor_get(cursor, &key, &payload, MDB_FIRST);
    }
    uint64_t found = 0;
    while (code == MDB_SUCCESS) {
      digest->AddRow(LmdbKey::From(table, key), Text(payload));
      if (++found == limit) break;
      code = mdb_cursor_get(cursor, &key, &payload, MDB_NEXT);
    }
    mdb_txn_reset(reader_);
    *rows += found;
    return code == MDB_NOTFOUND ? absl::OkStatus() : ToStatus(code, "mdb_cursor_get");
  }

  Status Update(Table table, const Key& key, std::string_view payload) override {
    return Write([&](MDB_txn* t) { return Put(t, table, key, payload, 0); });
  }

  Status Transfer(const Key& from, const Key& to, int64_t amount) override {
    return Write([&](MDB_txn* t) -> Status {
      GANNET_RETURN_IF_ERROR(AddTo(t, from, -amount));
      return AddTo(t, to, amount);
    });
  }

 private:
  template <class Body>
  Status Write(const Body& body) {
    MDB_txn* t = nullptr;
    GANNET_RETURN_IF_ERROR(ToStatus(mdb_txn_begin(environment_->env, nullptr, 0, &t), "mdb_txn_begin"));
    if (Status status = body(t); !status.ok()) {
      mdb_txn_abort(t);
      return status;
    }
    return ToStatus(mdb_txn_commit(t), "mdb_txn_commit");
  }

  Status Put(MDB_txn* t, Table table, const Key& key, std::string_view payload, unsigned flags) {
    MDB_val value{.mv_size = payload.size(), .mv_data = const_cast<char*>(payload.data())};
    return ToStatus(mdb_put(t, environment_->of(table), LmdbKey(table, key).get(), &value, flags), "mdb_put");
  }

  Status AddTo(MDB_txn* t, const Key& key, int64_t amount) {
    MDB_val old;
    GANNET_RETURN_IF_ERROR(
        ToStatus(mdb_get(t, environment_->of(Table::kRows), LmdbKey(Table::kRows, key).get(), &old), "mdb_get"));
    Payload payload;
    payload.size = Text(old).copy(payload.bytes.data(), payload.bytes.size());
    SetNumber(NumberOf(Text(old)) + amount, &payload);
    return Put(t, Table::kRows, key, payload.view(), 0);
  }

  const Data* data_;
  const Environment* environment_;
  MDB_txn* reader_ = nullptr;
  std::array<MDB_cursor*, kTables.size()> cursors_{};
};

class LmdbEngine : public Engine {
 public:
  LmdbEngine(const Data* data, Durability durability) : data_(data), durability_(durability) {}
  ~LmdbEngine() override { CloseEnvironment(); }

  Status Open(const std::string& directory) {
    GANNET_RETURN_IF_ERROR(ToStatus(mdb_env_create(&environment_.env), "mdb_env_create"));
    mdb_env_set_mapsize(environment_.env, kMapBytes);
    mdb_env_set_maxdbs(environment_.env, kTables.size());
    const unsigned flags = MDB_NOTLS | (durability_ == Durability::kSync ? 0 : MDB_NOSYNC);
    GANNET_RETURN_IF_ERROR(ToStatus(mdb_env_open(environment_.env, directory.c_str(), flags, 0644), "mdb_env_open"));
    MDB_txn* t = nullptr;
    GANNET_RETURN_IF_ERROR(ToStatus(mdb_txn_begin(environment_.env, nullptr, 0, &t), "mdb_txn_begin"));
    for (const Table table : kTables) {
      const bool words = table == Table::kWords;
      const int code = mdb_dbi_open(t, words ? "words" : "rows", MDB_CREATE | (words ? 0 : MDB_INTEGERKEY),
                                    &environment_.tables[static_cast<size_t>(table)]);
      if (code != MDB_SUCCESS) {
        mdb_txn_abort(t);
        return ToStatus(code, "mdb_dbi_open");
      }
    }
    return ToStatus(mdb_txn_commit(t), "mdb_txn_commit");
  }

  StatusOr<std::unique_ptr<Client>> OpenClient() override {
    auto client = std::make_unique<LmdbClient>(data_, &environment_);
    GANNET_RETURN_IF_ERROR(client->Open());
    return client;
  }
  Status Settle() override { return ToStatus(mdb_env_sync(environment_.env, 1), "mdb_env_sync"); }
  StatusOr<uint64_t> CountedBytes(Table table) override {
    MDB_txn* t = nullptr;
    GANNET_RETURN_IF_ERROR(ToStatus(mdb_txn_begin(environment_.env, nullptr, MDB_RDONLY, &t), "mdb_txn_begin"));
    MDB_stat stat{};
    const int code = mdb_stat(t, environment_.of(table), &stat);
    mdb_txn_abort(t);
    GANNET_RETURN_IF_ERROR(ToStatus(code, "mdb_stat"));
    return stat.ms_psize * (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages);
  }
  Status Close() override {
    CloseEnvironment();
    return absl::OkStatus();
  }

 private:
  void CloseEnvironment() {
    if (environment_.env != nullptr) mdb_env_close(environment_.env);
    environment_.env = nullptr;
  }

  const Data* data_;
  Durability durability_;
  Environment environment_;
};

}  // namespace

EngineKind Lmdb() {
  return {.name = "LMDB",
          .version = absl::StrCat(MDB_VERSION_MAJOR, ".", MDB_VERSION_MINOR, ".", MDB_VERSION_PATCH),
          .settings = {"MDB_NOTLS; a read transaction and cursors per thread, renewed for each transaction; "
                       "MDB_INTEGERKEY for the accounts",
                       "memory and background: MDB_NOSYNC; durable: its defaults"},
          .open = [](const Data& data, const std::string& directory,
                     Durability durability) -> StatusOr<std::unique_ptr<Engine>> {
            auto engine = std::make_unique<LmdbEngine>(&data, durability);
            GANNET_RETURN_IF_ERROR(engine->Open(directory));
            return engine;
          }};
}

}  // namespace gannet::bench::peers
