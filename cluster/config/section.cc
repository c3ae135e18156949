#include <toml++/toml.h>

#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/quantity.h"
#include "cluster/config/config.h"

namespace gannet::cluster {

struct Section::State {
  std::shared_ptr<const toml::table> file_root;  // keeps `table` alive
  const toml::table* table;
  std::string file;
  std::string where;  // the table's name for errors: "" for the top of the file, otherwise such as "[tpcc]"
  std::set<std::string> asked = {};

  const toml::node* Find(const std::string& key) {
    asked.insert(key);
    return table->get(key);
  }
};

Section::Section(std::unique_ptr<State> state) : state_(std::move(state)) {}
Section::Section(Section&& other) noexcept = default;
Section& Section::operator=(Section&& other) noexcept = default;
Section::~Section() = default;

StatusOr<Section> Section::Parse(std::string_view text, const std::string& file) {
  try {  // the library reports errors by exceptions
    auto root = std::make_shared<const toml::table>(toml::parse(text, file));
    const toml::table* const table = root.get();
    return Section(std::make_unique<State>(State{std::move(root), table, file, ""}));
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ":", error.source().begin.line, ": ",
                     absl::string_view(error.description().data(), error.description().size())));
  }
}

bool Section::Has(const std::string& key) const {
  return state_->table->contains(key);
}

Status Section::Wrong(const std::string& key, const std::string& what) const {
  const toml::node* node = state_->table->get(key);
  const toml::source_region& source = node != nullptr ? node->source() : state_->table->source();
  return absl::InvalidArgumentError(absl::StrCat(state_->file, ":", source.begin.line, ": ",
                                                 state_->where.empty() ? "" : state_->where + " ", key, ": ", what));
}

Status Section::Missing(const std::string& key, const std::string& example) const {
  return Wrong(key, absl::StrCat("is missing; add a line such as: ", key, " = ", example));
}

Status Section::TakeInteger(const std::string& key, int64_t low, int64_t high, const std::string& example,
                            int64_t* value) {
  const toml::node* node = state_->Find(key);
  if (node == nullptr) return absl::OkStatus();
  const auto* integer = node->as_integer();
  if (integer == nullptr || integer->get() < low || integer->get() > high) {
    return Wrong(key, absl::StrCat("must be a whole number from ", low, " to ", high, ", such as ", example));
  }
  *value = integer->get();
  return absl::OkStatus();
}

Status Section::NeedInteger(const std::string& key, int64_t low, int64_t high, const std::string& example,
                            int64_t* value) {
  return Has(key) ? TakeInteger(key, low, high, example, value) : Missing(key, example);
}

Status Section::TakeString(const std::string& key, const std::string& example, std::string* value) {
  const toml::node* node = state_->Find(key);
  if (node == nullptr) return absl::OkStatus();
  const auto* string = node->as_string();
  if (string == nullptr || string->get().empty()) {
    return Wrong(key, absl::StrCat("must be a string that is not empty, such as ", example));
  }
  *value = string->get();
  return absl::OkStatus();
}

Status Section::NeedString(const std::string& key, const std::string& example, std::string* value) {
  return Has(key) ? TakeString(key, example, value) : Missing(key, example);
}

Status Section::NeedSize(const std::string& key, const std::string& example, uint64_t* bytes) {
  std::string text;
  GANNET_RETURN_IF_ERROR(NeedString(key, example, &text));
  const StatusOr<uint64_t> size = ParseSize(text);
  if (!size.ok()) return Wrong(key, std::string(size.status().message()));
  *bytes = *size;
  return absl::OkStatus();
}

StatusOr<std::optional<Section>> Section::Table(const std::string& key) {
  const toml::node* node = state_->Find(key);
  if (node == nullptr) return std::optional<Section>();
  const std::string name = absl::StrCat("[", key, "]");
  if (node->as_table() == nullptr) return Wrong(key, absl::StrCat("must be a table: write ", name));
  return std::optional<Section>(
      Section(std::make_unique<State>(State{state_->file_root, node->as_table(), state_->file, name})));
}

StatusOr<std::vector<Section>> Section::Tables(const std::string& key) {
  std::vector<Section> tables;
  const toml::node* node = state_->Find(key);
  if (node == nullptr) return tables;
  const std::string name = absl::StrCat("[[", key, "]]");
  const toml::array* array = node->as_array();
  if (array == nullptr || array->empty() || !array->is_homogeneous<toml::table>()) {
    return Wrong(key, absl::StrCat("must be tables: write ", name, " before each"));
  }
  for (const toml::node& each : *array) {
    tables.push_back(Section(std::make_unique<State>(State{state_->file_root, each.as_table(), state_->file, name})));
  }
  return tables;
}

Status Section::NothingElse() const {
  for (const auto& [key, node] : *state_->table) {
    const std::string name(key.str());
    if (state_->asked.contains(name)) continue;
    return Wrong(name, absl::StrCat("there is no such key here; the keys are ", absl::StrJoin(state_->asked, ", ")));
  }
  return absl::OkStatus();
}

std::string Section::CanonicalText() const {
  std::ostringstream text;
  text << toml::toml_formatter(*state_->table);
  return std::move(text).str();
}

}  // namespace gannet::cluster
