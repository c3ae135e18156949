#include "txn/session/conflict_place.h"

#include "index/record_header.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

void ConflictPlace::NoteRecord(const LocalNode& local, const std::byte* record) {
  const Table* const table = local.TableById(index::LoadMeta(record).table);
  if (table == nullptr) return Forget();
  table_ = table;
  key_ = index::LoadKey(record, table->options().key_kind);
}

std::string ConflictPlace::ToText() const {
  return table_ == nullptr ? "" : NameOfRow(*table_, key_.view());
}

}  // namespace gannet::txn
