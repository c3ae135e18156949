#include "cli/cluster/toml_reader.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "cli/parse.h"

namespace gannet::cli {

const toml::node* TomlReader::Find(const std::string& key) {
  asked_.insert(key);
  return table_.get(key);
}

Status TomlReader::Wrong(const std::string& key, const std::string& what) const {
  const toml::node* node = table_.get(key);
  const toml::source_region& source = node != nullptr ? node->source() : table_.source();
  return absl::InvalidArgumentError(
      absl::StrCat(file_, ":", source.begin.line, ": ", where_.empty() ? "" : where_ + " ", key, ": ", what));
}

Status TomlReader::Missing(const std::string& key, const std::string& example) const {
  return Wrong(key, absl::StrCat("is missing; add a line such as: ", key, " = ", example));
}

Status TomlReader::TakeInteger(const std::string& key, int64_t low, int64_t high, const std::string& example,
                               int64_t* value) {
  const toml::node* node = Find(key);
  if (node == nullptr) return absl::OkStatus();
  const auto* integer = node->as_integer();
  if (integer == nullptr || integer->get() < low || integer->get() > high) {
    return Wrong(key, absl::StrCat("must be a whole number from ", low, " to ", high, ", such as ", example));
  }
  *value = integer->get();
  return absl::OkStatus();
}

Status TomlReader::NeedInteger(const std::string& key, int64_t low, int64_t high, const std::string& example,
                               int64_t* value) {
  return Has(key) ? TakeInteger(key, low, high, example, value) : Missing(key, example);
}

Status TomlReader::TakeString(const std::string& key, const std::string& example, std::string* value) {
  const toml::node* node = Find(key);
  if (node == nullptr) return absl::OkStatus();
  const auto* string = node->as_string();
  if (string == nullptr || string->get().empty()) {
    return Wrong(key, absl::StrCat("must be a string that is not empty, such as ", example));
  }
  *value = string->get();
  return absl::OkStatus();
}

Status TomlReader::NeedString(const std::string& key, const std::string& example, std::string* value) {
  return Has(key) ? TakeString(key, example, value) : Missing(key, example);
}

Status TomlReader::NeedSize(const std::string& key, const std::string& example, uint64_t* bytes) {
  std::string text;
  GANNET_RETURN_IF_ERROR(NeedString(key, example, &text));
  const StatusOr<uint64_t> size = ParseSize(text);
  if (!size.ok()) return Wrong(key, std::string(size.status().message()));
  *bytes = *size;
  return absl::OkStatus();
}

StatusOr<const toml::table*> TomlReader::Table(const std::string& key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return nullptr;
  if (node->as_table() == nullptr) return Wrong(key, absl::StrCat("must be a table: write [", key, "]"));
  return node->as_table();
}

StatusOr<const toml::array*> TomlReader::ArrayOfTables(const std::string& key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return nullptr;
  const toml::array* array = node->as_array();
  if (array == nullptr || array->empty() || !array->is_homogeneous<toml::table>()) {
    return Wrong(key, absl::StrCat("must be tables: write [[", key, "]] before each"));
  }
  return array;
}

Status TomlReader::NothingElse() const {
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    if (asked_.contains(name)) continue;
    return Wrong(name, absl::StrCat("there is no such key here; the keys are ", absl::StrJoin(asked_, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace gannet::cli
