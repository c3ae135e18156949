// The expected content of the database: a std::map for each table, and the changes of the current transaction. Keys are
// strings here; integer keys are their 8 bytes in big-endian order, so that both kinds of key compare as strings.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "index/key.h"

namespace gannet::model {

inline std::string IntegerKey(uint64_t number) {
  std::string key(8, '\0');
  for (int i = 7; i >= 0; --i, number >>= 8) key[static_cast<size_t>(i)] = static_cast<char>(number & 0xff);
  return key;
}

// A view of `key`, which must outlive it if the keys are bytes.
inline index::Key KeyOf(index::KeyKind kind, const std::string& key) {
  if (kind == index::KeyKind::kBytes) return {std::string_view(key)};
  uint64_t number = 0;
  for (const char byte : key) number = number << 8 | static_cast<uint8_t>(byte);
  return {number};
}

inline std::string StringOf(const index::Key& key) {
  return key.kind() == index::KeyKind::kInteger ? IntegerKey(key.integer()) : std::string(key.bytes());
}

inline std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}
inline std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Model {
 public:
  using Rows = std::map<std::string, std::string>;
  struct Row {
    std::string key;
    std::string payload;
  };

  explicit Model(size_t tables) : committed_(tables), changes_(tables) {}

  void AddTable() {
    committed_.emplace_back();
    changes_.emplace_back();
  }
  void RemoveLastTable() {
    committed_.pop_back();
    changes_.pop_back();
  }

  // The row as the current transaction sees it; null: there is none.
  const std::string* Find(size_t table, const std::string& key) const {
    if (const auto changed = changes_[table].find(key); changed != changes_[table].end()) {
      return changed->second.has_value() ? &*changed->second : nullptr;
    }
    const auto row = committed_[table].find(key);
    return row == committed_[table].end() ? nullptr : &row->second;
  }
  void Put(size_t table, const std::string& key, std::string payload) { changes_[table][key] = std::move(payload); }
  void Remove(size_t table, const std::string& key) { changes_[table][key] = std::nullopt; }

  // nullopt: the row is removed.
  const std::map<std::string, std::optional<std::string>>& changes(size_t table) const { return changes_[table]; }
  bool Changes(size_t table, const std::string& key) const { return changes_[table].contains(key); }
  bool ChangesAnyOf(size_t table) const { return !changes_[table].empty(); }
  bool ChangesAny() const {
    return std::ranges::any_of(changes_, [](const auto& of_table) { return !of_table.empty(); });
  }

  // All rows, as the current transaction sees them; valid until the next change.
  std::vector<std::pair<std::string, const std::string*>> All(size_t table) const {
    std::vector<std::pair<std::string, const std::string*>> rows;
    for (const auto& [key, payload] : committed_[table]) {
      if (!changes_[table].contains(key)) rows.emplace_back(key, &payload);
    }
    for (const auto& [key, payload] : changes_[table]) {
      if (payload.has_value()) rows.emplace_back(key, &*payload);
    }
    return rows;
  }

  // The first `limit` rows of [from, to], or the last ones in reverse, as the current transaction sees them.
  std::vector<Row> Range(size_t table, const std::string& from, const std::string& to, bool reverse,
                         size_t limit) const {
    Rows rows;
    if (to < from) return {};
    rows.insert(committed_[table].lower_bound(from), committed_[table].upper_bound(to));
    for (auto it = changes_[table].lower_bound(from); it != changes_[table].end() && it->first <= to; ++it) {
      rows.erase(it->first);
      if (it->second.has_value()) rows.emplace(it->first, *it->second);
    }
    std::vector<Row> result;
    const auto take = [&](const Rows::value_type& row) {
      if (result.size() < limit) result.push_back({row.first, row.second});
    };
    if (reverse) {
      for (auto it = rows.rbegin(); it != rows.rend(); ++it) take(*it);
    } else {
      for (const Rows::value_type& row : rows) take(row);
    }
    return result;
  }

  void Commit() {
    for (size_t table = 0; table < changes_.size(); ++table) {
      for (auto& [key, payload] : changes_[table]) {
        if (payload.has_value()) {
          committed_[table][key] = *std::move(payload);
        } else {
          committed_[table].erase(key);
        }
      }
    }
    Rollback();
  }
  void Rollback() {
    for (auto& changes : changes_) changes.clear();
  }

  const Rows& committed(size_t table) const { return committed_[table]; }
  Rows& committed(size_t table) { return committed_[table]; }

 private:
  std::vector<Rows> committed_;
  std::vector<std::map<std::string, std::optional<std::string>>> changes_;  // nullopt: the row is removed
};

}  // namespace gannet::model
