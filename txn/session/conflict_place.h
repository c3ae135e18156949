#pragma once

#include <cstddef>
#include <string>

#include "index/key.h"
#include "txn/node/local_node.h"
#include "txn/store/table.h"

namespace gannet::txn {

// The row at which a session met its last conflict, for messages. Noting one allocates no memory for a short key.
class ConflictPlace {
 public:
  void Note(const Table& table, const index::Key& key) {
    table_ = &table;
    key_ = key;
  }
  // A record of this node.
  void NoteRecord(const LocalNode& local, const std::byte* record);
  void Forget() { table_ = nullptr; }
  // "table 'cities', key \"Oslo\""; empty: it is not known.
  std::string ToText() const;

 private:
  const Table* table_ = nullptr;  // null: it is not known
  index::OwnedKey key_;
};

}  // namespace gannet::txn
