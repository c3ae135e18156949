#include "txn/durable/record_maker.h"

#include "absl/strings/str_cat.h"
#include "txn/record/record.h"

namespace gannet::txn {

Status CheckFits(const Table& table, const std::string& directory, size_t key_bytes,
                 std::optional<size_t> payload_bytes) {
  const TableOptions& options = table.options();
  const bool key_fits = options.key_kind == index::KeyKind::kInteger ? key_bytes == index::kIntegerKeyBytes
                                                                     : key_bytes <= options.max_key_bytes;
  if (key_fits && (!payload_bytes.has_value() || table.MayHaveHad(*payload_bytes))) [[likely]]
    return absl::OkStatus();
  const std::string what = payload_bytes.has_value() ? absl::StrCat("a record with a key of ", key_bytes,
                                                                    " and a payload of ", *payload_bytes, " bytes")
                                                     : absl::StrCat("a removed key of ", key_bytes, " bytes");
  return absl::DataLossError(
      absl::StrCat(directory, " has ", what, " of table '", table.name(), "', which does not fit the table"));
}

RecordMaker::~RecordMaker() {
  counts_->records.fetch_add(records_, std::memory_order_relaxed);
  for (size_t table = 0; table < bytes_.size(); ++table) {
    if (bytes_[table] != 0) counts_->bytes[table].fetch_add(bytes_[table], std::memory_order_relaxed);
  }
}

void RecordMaker::NextLease() {
  guard_.reset();
  guard_.emplace(&local_->indexes);
}

std::span<const std::byte> RecordMaker::Widened(const Table& table, std::span<const std::byte> payload) {
  const size_t wanted = table.payload_bytes();
  if (table.options().variable_length || payload.size() >= wanted || table.least_payload_bytes() == wanted) [[likely]]
    return payload;
  widened_.assign(payload.begin(), payload.end());
  widened_.resize(wanted);
  return widened_;
}

StatusOr<std::byte*> RecordMaker::Make(const Table& table, const Key& key, std::span<const std::byte> short_payload) {
  const std::span<const std::byte> payload = Widened(table, short_payload);
  const StatusOr<NewRecord> made = MakeLockedRecord(*context().slab, table.id(), key, payload, OwnerBits(0, 0));
  if (!made.ok()) return made.status();
  StoreWord(made->block, NextState(made->state, false));
  ++records_;
  bytes_[table.id()] += BlockBytesOf(key, payload.size());
  return made->block;
}

StatusOr<std::byte*> RecordMaker::Rewrite(const Table& table, std::byte* record, const Key& key,
                                          std::span<const std::byte> short_payload) {
  const std::span<const std::byte> payload = Widened(table, short_payload);
  const size_t had = index::LoadMeta(record).payload_bytes;
  if (had != payload.size() && BlockBytesOf(key, had) != BlockBytesOf(key, payload.size())) {
    StatusOr<std::byte*> other = Make(table, key, payload);
    if (other.ok()) Discard(table, record);
    return other;
  }
  RewriteRecord(record, key, payload);
  return record;
}

void RecordMaker::Discard(const Table& table, std::byte* record) {
  const index::RecordMeta meta = index::LoadMeta(record);
  const index::OwnedKey key = index::LoadKey(record, table.options().key_kind);
  MarkAbsent(record, RecordLines(key.view(), meta.payload_bytes), LoadWord(record));
  context().slab->Free(record, index::RecordBytes(key.view().size(), meta.payload_bytes));
  --records_;
  bytes_[table.id()] -= BlockBytesOf(key.view(), meta.payload_bytes);
}

}  // namespace gannet::txn
