#include "txn/node/index_damage.h"

#include <bit>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/record_header.h"
#include "txn/record/record.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

bool IsRecordOf(const LocalNode& local, const Table& table, rdma::GlobalAddress record) {
  if (!local.MayHaveRecord(record)) return false;
  const index::RecordMeta meta = index::LoadMeta(local.Direct(record));
  const TableOptions& options = table.options();
  const bool has_key = options.key_kind == index::KeyKind::kInteger ? meta.key_bytes == index::kIntegerKeyBytes
                                                                    : meta.key_bytes <= options.max_key_bytes;
  return meta.table == table.id() && has_key && meta.payload_bytes <= table.accepted_payload_bytes() &&
         record.offset() + index::RecordBytes(meta.key_bytes, meta.payload_bytes) <= local.memory.size();
}

bool LeadsToKeyUnlessDamaged(const LocalNode& local, const Table& table, const Key& key, rdma::GlobalAddress record) {
  return IsRecordOf(local, table, record) && index::RecordHoldsKey(local.Direct(record), key);
}

bool StillLeadsTo(const Table& table, const Key& key, rdma::GlobalAddress record) {
  return table.index_traits().client_writes && table.local_index().Find(key).record == record;
}

Status CheckLeadsToKey(const LocalNode& local, const Table& table, const Key& key, rdma::GlobalAddress record) {
  if (!LeadsToKey(local, table, key, record)) return IndexDamaged(table, key);
  const uint64_t state = LoadWord(local.Direct(record));
  if (!IsLocked(state) && IsAbsent(state) && StillLeadsTo(table, key, record)) return IndexDamaged(table, key);
  return absl::OkStatus();
}

bool IndexDamage::NoteNotLeft(const LocalNode& local, const Table& table, const Key& key, rdma::GlobalAddress record,
                              const Status& change) {
  GANNET_CHECK(local.fabric.num_nodes() > 1, "%s is locked but not in its index: %s", record.ToString(),
               change.ToString());
  Count(table, absl::StrCat("it does not lead to ", NameOfRow(table, key), ": ", change.message()));
  // With any other error the index may lead there, but cannot be changed. It may also lead there if it reads its keys
  // from the records and did not recognise this one. Then the record's block must not be used again.
  const size_t key_bytes = key.kind() == index::KeyKind::kInteger ? key.size() : table.options().max_key_bytes;
  return absl::IsNotFound(change) && key_bytes <= table.index_traits().most_own_key_bytes;
}

void IndexDamage::NoteStray(const Table& table, rdma::GlobalAddress record) {
  Count(table, record.is_null() ? std::string("no way leads to some of its keys")
                                : absl::StrCat("it leads to ", record.ToString(), ", where there is no record of it"));
}

void IndexDamage::Count(const Table& table, absl::string_view what) {
  uint64_t n;
  {
    const std::lock_guard lock(mutex_);
    n = ++counts_[table.id()];
  }
  // A client can cause as many of them as it likes.
  if (!std::has_single_bit(n)) return;
  std::fprintf(stderr, "gannet: the index of %s is damaged, number %llu: %s\n", NameOf(table).c_str(),
               static_cast<unsigned long long>(n), std::string(what).c_str());
}

}  // namespace gannet::txn
