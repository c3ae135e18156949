// One table of a TOML file, read key by key. Only what was asked for may be in it.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gannet::cli {

class TomlReader {
 public:
  // `where` is the table's name for errors: "" for the top of the file, else such as "[tpcc]".
  TomlReader(const toml::table& table, std::string file, std::string where)
      : table_(table), file_(std::move(file)), where_(std::move(where)) {}

  bool Has(const std::string& key) const { return table_.contains(key); }

  // The value goes to *value. Absent is an error for Need, and leaves *value alone for Take. `example` shows what the
  // line could look like.
  Status NeedInteger(const std::string& key, int64_t low, int64_t high, const std::string& example, int64_t* value);
  Status TakeInteger(const std::string& key, int64_t low, int64_t high, const std::string& example, int64_t* value);
  Status NeedString(const std::string& key, const std::string& example, std::string* value);
  Status TakeString(const std::string& key, const std::string& example, std::string* value);
  // A string as `gannet tpcc --memory-per-node` takes it.
  Status NeedSize(const std::string& key, const std::string& example, uint64_t* bytes);
  // Null if it is absent.
  StatusOr<const toml::table*> Table(const std::string& key);
  StatusOr<const toml::array*> ArrayOfTables(const std::string& key);

  // What nobody asked for is a mistake.
  Status NothingElse() const;

  // An error about `key`, or about the table itself if that is not in it.
  Status Wrong(const std::string& key, const std::string& what) const;

 private:
  Status Missing(const std::string& key, const std::string& example) const;
  const toml::node* Find(const std::string& key);

  const toml::table& table_;
  std::string file_;
  std::string where_;
  std::set<std::string> asked_;
};

}  // namespace gannet::cli
