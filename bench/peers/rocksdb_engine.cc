// RocksDB: a column family per table; transfers by an optimistic transaction, all else by the plain calls.
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/optimistic_transaction_db.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/version.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/peers/engine.h"

namespace gannet::bench::peers {
namespace {

constexpr size_t kBlockCacheBytes = size_t{256} << 20;
constexpr int kBloomBitsPerKey = 10;

Status ToStatus(const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = absl::StrCat("rocksdb: ", status.ToString());
  return status.IsNotFound() ? absl::NotFoundError(text) : absl::InternalError(text);
}

rocksdb::Slice SliceOf(std::string_view text) {
  return {text.data(), text.size()};
}
std::string_view Text(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

// Numbers in big-endian order.
class RocksKey {
 public:
  RocksKey() = default;
  RocksKey(Table table, const Key& key) : bytes_(key.bytes) {
    if (table == Table::kWords) return;
    for (size_t i = 0; i < number_.size(); ++i) number_[i] = static_cast<char>(key.number >> (56 - 8 * i));
    bytes_ = {};
  }
  rocksdb::Slice slice() const {
    return bytes_.empty() ? rocksdb::Slice(number_.data(), number_.size()) : SliceOf(bytes_);
  }
  static Key From(Table table, const rocksdb::Slice& slice) {
    if (table == Table::kWords) return {.bytes = Text(slice)};
    Key key;
    for (const char byte : Text(slice)) key.number = (key.number << 8) | static_cast<unsigned char>(byte);
    return key;
  }

 private:
  std::string_view bytes_;
  std::array<char, 8> number_;
};

// The database and its tables.
struct Store {
  std::unique_ptr<rocksdb::OptimisticTransactionDB> transactions;
  rocksdb::DB* db = nullptr;  // below them
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  rocksdb::WriteOptions write;

  rocksdb::ColumnFamilyHandle* of(Table table) const { return families[static_cast<size_t>(table)]; }
};

class RocksClient : public Client {
 public:
  RocksClient(const Data* data, Store* store) : data_(data), store_(store) {}

  Status Insert(Table table, std::span<const uint64_t> rows) override {
    rocksdb::WriteBatch batch;
    for (const uint64_t row : rows) {
      const Payload payload = data_->payload(table, data_->key(table, row), 0);
      batch.Put(store_->of(table), RocksKey(table, data_->key(table, row)).slice(), SliceOf(payload.view()));
    }
    return ToStatus(store_->db->Write(store_->write, &batch));
  }

  Status Read(Table table, std::span<const Key> keys, Digest* digest) override {
    rocksdb::ReadOptions options;
    // One read is a transaction by itself.
    if (keys.size() > 1) options.snapshot = store_->db->GetSnapshot();
    Status status;
    for (const Key& key : keys) {
      status = ToStatus(store_->db->Get(options, store_->of(table), RocksKey(table, key).slice(), &payload_));
      if (!status.ok()) break;
      digest->AddPayload(Text(payload_));
      payload_.Reset();
    }
    if (options.snapshot != nullptr) store_->db->ReleaseSnapshot(options.snapshot);
    return status;
  }

  Status ReadTogether(Table table, std::span<const Key> keys, Digest* digest) override {
    keys_.clear();
    for (const Key& key : keys) keys_.emplace_back(table, key);
    slices_.clear();
    for (const RocksKey& key : keys_) slices_.push_back(key.slice());
    payloads_.resize(keys.size());
    statuses_.resize(keys.size());
    store_->db->MultiGet({}, store_->of(table), keys.size(), slices_.data(), payloads_.data(), statuses_.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      GANNET_RETURN_IF_ERROR(ToStatus(statuses_[i]));
      digest->AddPayload(Text(payloads_[i]));
      payloads_[i].Reset();
    }
    return absl::OkStatus();
  }

  Status Scan(Table table, const Key* from, uint64_t limit, uint64_t* rows, Digest* digest) override {
    // An iterator is kept and refreshed: to make one takes longer than to read 100 rows.
    std::unique_ptr<rocksdb::Iterator>& iterator = iterators_[static_cast<size_t>(table)];
    if (iterator == nullptr) {
      iterator.reset(store_->db->NewIterator({}, store_->of(table)));
    } else {
      GANNET_RETURN_IF_ERROR(ToStatus(iterator->Refresh()));
    }
    if (from != nullptr) {
      iterator->Seek(RocksKey(table, *from).slice());
    } else {
      iterator->SeekToFirst();
    }
    uint64_t found = 0;
    for (; found < limit && iterator->Valid(); iterator->Next()) {
      digest->AddRow(RocksKey::From(table, iterator->key()), Text(iterator->value()));
      ++found;
    }
    *rows += found;
    return ToStatus(iterator->status());
  }

  Status Update(Table table, const Key& key, std::string_view payload) override {
    return ToStatus(store_->db->Put(store_->write, store_->of(table), RocksKey(table, key).slice(), SliceOf(payload)));
  }

  Status Transfer(const Key& from, const Key& to, int64_t amount) override {
    while (true) {
      transaction_.reset(store_->transactions->BeginTransaction(store_->write, {}, transaction_.release()));
      GANNET_RETURN_IF_ERROR(AddTo(from, -amount));
      GANNET_RETURN_IF_ERROR(AddTo(to, amount));
      const rocksdb::Status committed = transaction_->Commit();
      // A conflict: the same again.
      if (!committed.IsBusy() && !committed.IsTryAgain()) return ToStatus(committed);
    }
  }

 private:
  Status AddTo(const Key& key, int64_t amount) {
    const RocksKey rocks_key(Table::kRows, key);
    rocksdb::ColumnFamilyHandle* const rows = store_->of(Table::kRows);
    GANNET_RETURN_IF_ERROR(ToStatus(transaction_->GetForUpdate({}, rows, rocks_key.slice(), &payload_)));
    Payload payload;
    payload.size = Text(payload_).copy(payload.bytes.data(), payload.bytes.size());
    SetNumber(NumberOf(Text(payload_)) + amount, &payload);
    payload_.Reset();
    return ToStatus(transaction_->Put(rows, rocks_key.slice(), SliceOf(payload.view())));
  }

  const Data* data_;
  Store* store_;
  rocksdb::PinnableSlice payload_;
  std::vector<RocksKey> keys_;
  std::vector<rocksdb::Slice> slices_;
  std::vector<rocksdb::PinnableSlice> payloads_;
  std::vector<rocksdb::Status> statuses_;
  std::array<std::unique_ptr<rocksdb::Iterator>, kTables.size()> iterators_;
  std::unique_ptr<rocksdb::Transaction> transaction_;
};

class RocksEngine : public Engine {
 public:
  RocksEngine(const Data* data, Durability durability) : data_(data) {
    store_.write.disableWAL = durability == Durability::kMemory;
    store_.write.sync = durability == Durability::kSync;
  }
  ~RocksEngine() override { Close().IgnoreError(); }

  Status Open(const std::string& directory) {
    rocksdb::BlockBasedTableOptions table;
    cache_ = rocksdb::NewLRUCache(kBlockCacheBytes);
    table.block_cache = cache_;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kBloomBitsPerKey));
    table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
    rocksdb::ColumnFamilyOptions family;
    family.compression = rocksdb::kNoCompression;
    family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DBOptions options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    const std::vector<rocksdb::ColumnFamilyDescriptor> families = {
        {"words", family}, {"rows", family}, {rocksdb::kDefaultColumnFamilyName, family}};
    rocksdb::OptimisticTransactionDB* transactions = nullptr;
    GANNET_RETURN_IF_ERROR(ToStatus(
        rocksdb::OptimisticTransactionDB::Open(options, directory, families, &store_.families, &transactions)));
    store_.transactions.reset(transactions);
    store_.db = transactions->GetBaseDB();
    return absl::OkStatus();
  }

  StatusOr<std::unique_ptr<Client>> OpenClient() override { return std::make_unique<RocksClient>(data_, &store_); }
  Status Settle() override {
    for (const Table table : kTables) {
      GANNET_RETURN_IF_ERROR(ToStatus(store_.db->Flush({}, store_.of(table))));
      GANNET_RETURN_IF_ERROR(ToStatus(store_.db->CompactRange({}, store_.of(table), nullptr, nullptr)));
    }
    return absl::OkStatus();
  }
  StatusOr<uint64_t> CountedBytes(Table table) override {
    uint64_t files = 0;
    uint64_t memory = 0;
    if (!store_.db->GetIntProperty(store_.of(table), rocksdb::DB::Properties::kTotalSstFilesSize, &files) ||
        !store_.db->GetIntProperty(store_.of(table), rocksdb::DB::Properties::kCurSizeAllMemTables, &memory)) {
      return absl::InternalError("rocksdb does not tell the size of a table");
    }
    return files + memory;
  }
  Status Close() override {
    if (store_.db == nullptr) return absl::OkStatus();
    for (rocksdb::ColumnFamilyHandle* family : store_.families) {
      GANNET_RETURN_IF_ERROR(ToStatus(store_.db->DestroyColumnFamilyHandle(family)));
    }
    store_.db = nullptr;
    const Status status = ToStatus(store_.transactions->Close());
    store_.transactions.reset();
    return status;
  }

 private:
  const Data* data_;
  Store store_;
  std::shared_ptr<rocksdb::Cache> cache_;
};

}  // namespace

EngineKind RocksDb() {
  return {
      .name = "RocksDB",
      .version = absl::StrCat(ROCKSDB_MAJOR, ".", ROCKSDB_MINOR, ".", ROCKSDB_PATCH),
      .settings = {"a column family per table, block cache of 256 MiB, bloom filters of 10 bits, hash index in data "
                   "blocks, no compression; flushed and compacted after the load",
                   "updates are blind writes; transfers by OptimisticTransactionDB",
                   "memory: WAL off; background: WAL without sync; durable: WAL with sync"},
      .open = [](const Data& data, const std::string& directory,
                 Durability durability) -> StatusOr<std::unique_ptr<Engine>> {
        auto engine = std::make_unique<RocksEngine>(&data, durability);
        GANNET_RETURN_IF_ERROR(engine->Open(directory));
        return engine;
      }};
}

}  // namespace gannet::bench::peers
