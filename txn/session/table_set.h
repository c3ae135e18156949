// TableSet: the tables of a database, by number. Numbers ascend in the order in which tables were created, and may have
// gaps.
//
// One thread adds, before the database starts; after that it does not change, and any thread may read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "txn/table.h"

namespace gannet::txn {

class TableSet {
 public:
  // The number is greater than those of all tables before it.
  Table* Add(std::unique_ptr<Table> table) {
    by_id_.resize(table->id() + size_t{1});
    by_id_.back() = table.get();
    tables_.push_back(std::move(table));
    return tables_.back().get();
  }

  // Null if there is none: a number from a peer may be wrong.
  const Table* ById(TableId id) const { return id < by_id_.size() ? by_id_[id] : nullptr; }
  // Null if there is none.
  Table* Find(std::string_view name) const {
    const auto found = std::ranges::find_if(tables_, [&](const auto& table) { return table->name() == name; });
    return found == tables_.end() ? nullptr : found->get();
  }

  size_t size() const { return tables_.size(); }
  // Greater than every number: the size of arrays that have a place for each table.
  size_t id_bound() const { return by_id_.size(); }
  auto begin() const { return tables_.begin(); }
  auto end() const { return tables_.end(); }

 private:
  std::vector<std::unique_ptr<Table>> tables_;  // by number, without gaps
  std::vector<Table*> by_id_;
};

}  // namespace gannet::txn
