#include "log/manifest/manifest_json.h"

#include <algorithm>
#include <concepts>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/format/transaction_format.h"
#include "nlohmann/json.hpp"

namespace gannet::log {

namespace {

using Json = nlohmann::ordered_json;

bool IsWidened(const TableDescription& table) {
  return !table.variable_length && table.least_payload_bytes < table.payload_bytes;
}

Json IndexToJson(const IndexDescription& index) {
  Json fields = Json::array();
  for (const IndexFieldDescription& field : index.fields) {
    fields.push_back(
        Json{{"source", field.source}, {"type", field.type}, {"offset", field.offset}, {"bytes", field.bytes}});
  }
  return Json{{"table", index.table},
              {"unique", index.unique},
              {"complete", index.complete},
              {"by_function", index.by_function},
              {"fields", std::move(fields)}};
}

Json TableToJson(const TableDescription& table) {
  Json json{{"id", table.id},
            {"name", table.name},
            {"integer_keys", table.integer_keys},
            {"max_key_bytes", table.max_key_bytes},
            {"index", table.index},
            {"payload_bytes", table.payload_bytes},
            {"variable_length", table.variable_length},
            {"replicated", table.replicated},
            {"expected_rows", table.expected_rows}};
  if (IsWidened(table)) json["least_payload_bytes"] = table.least_payload_bytes;
  if (!table.range_starts.empty()) json["range_starts"] = table.range_starts;
  if (!table.index_options.empty()) json["index_options"] = table.index_options;
  if (!table.index_rights.empty()) json["index_rights"] = table.index_rights;
  if (!table.placement.empty()) json["placement"] = table.placement;
  if (!table.application.empty()) json["application"] = table.application;
  if (!table.key_form.empty()) json["key_form"] = table.key_form;
  if (table.secondary.has_value()) json["secondary"] = IndexToJson(*table.secondary);
  return json;
}

Json FileToJson(const CheckpointFile& file) {
  return Json{
      {"name", file.name}, {"table", file.table}, {"bytes", file.bytes}, {"records", file.records}, {"crc", file.crc}};
}

Json CheckpointToJson(const CheckpointDescription& checkpoint) {
  Json files = Json::array();
  for (const CheckpointFile& file : checkpoint.files) files.push_back(FileToJson(file));
  return Json{{"id", checkpoint.id},
              {"begin_epoch", checkpoint.begin_epoch},
              {"end_epoch", checkpoint.end_epoch},
              {"first_segment", checkpoint.first_segment},
              {"wall_nanos", checkpoint.wall_nanos},
              {"all_logged", checkpoint.all_logged},
              {"files", std::move(files)}};
}

// Takes members out of an object and remembers the first error.
class Fields {
 public:
  Fields(const Json& object, const char* what) : object_(object), what_(what) {
    if (!object.is_object()) Fail("is not an object");
  }

  template <std::unsigned_integral Number>
  requires(!std::same_as<Number, bool>) void Take(const char* name, Number* to) {
    const Json* value = Find(name);
    if (value == nullptr) return;
    if (!value->is_number_unsigned() || value->get<uint64_t>() > std::numeric_limits<Number>::max())
      return Fail(absl::StrCat("has a bad number \"", name, "\""));
    *to = static_cast<Number>(value->get<uint64_t>());
  }

  void Take(const char* name, bool* to) {
    const Json* value = Find(name);
    if (value == nullptr) return;
    if (!value->is_boolean()) return Fail(absl::StrCat("has \"", name, "\" neither true nor false"));
    *to = value->get<bool>();
  }

  void Take(const char* name, std::string* to) {
    const Json* value = Find(name);
    if (value == nullptr) return;
    if (!value->is_string()) return Fail(absl::StrCat("has a bad text \"", name, "\""));
    *to = value->get<std::string>();
  }

  bool Has(const char* name) const { return object_.is_object() && object_.contains(name); }

  template <typename Item>
  void TakeList(const char* name, Status (*read)(const Json&, Item*), std::vector<Item>* to) {
    const Json* value = Find(name);
    if (value == nullptr) return;
    if (!value->is_array()) return Fail(absl::StrCat("has a bad list \"", name, "\""));
    for (const Json& element : *value) {
      Item item;
      status_.Update(read(element, &item));
      to->push_back(std::move(item));
    }
  }

  Status status() const { return status_; }

 private:
  const Json* Find(const char* name) {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    if (found != object_.end()) return &*found;
    Fail(absl::StrCat("has no \"", name, "\""));
    return nullptr;
  }

  void Fail(const std::string& how) { status_.Update(absl::DataLossError(absl::StrCat(what_, " ", how))); }

  const Json& object_;
  const char* const what_;
  Status status_;
};

// True if it names an entry of a directory and cannot lead out of it.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

Status ReadText(const Json& json, std::string* text) {
  if (!json.is_string()) return absl::DataLossError("a list of texts in the manifest has something else");
  *text = json.get<std::string>();
  return absl::OkStatus();
}

Status ReadIndexField(const Json& json, IndexFieldDescription* field) {
  Fields fields(json, "a field of a secondary index in the manifest");
  fields.Take("source", &field->source);
  fields.Take("type", &field->type);
  fields.Take("offset", &field->offset);
  fields.Take("bytes", &field->bytes);
  return fields.status();
}

Status ReadIndex(const Json& json, IndexDescription* index) {
  Fields fields(json, "a secondary index in the manifest");
  fields.Take("table", &index->table);
  fields.Take("unique", &index->unique);
  fields.Take("complete", &index->complete);
  fields.Take("by_function", &index->by_function);
  fields.TakeList("fields", ReadIndexField, &index->fields);
  return fields.status();
}

Status ReadTable(const Json& json, TableDescription* table) {
  Fields fields(json, "a table in the manifest");
  fields.Take("id", &table->id);
  fields.Take("name", &table->name);
  fields.Take("integer_keys", &table->integer_keys);
  fields.Take("max_key_bytes", &table->max_key_bytes);
  fields.Take("index", &table->index);
  fields.Take("payload_bytes", &table->payload_bytes);
  fields.Take("variable_length", &table->variable_length);
  fields.Take("replicated", &table->replicated);
  fields.Take("expected_rows", &table->expected_rows);
  table->least_payload_bytes = table->payload_bytes;
  if (fields.Has("least_payload_bytes")) fields.Take("least_payload_bytes", &table->least_payload_bytes);
  if (fields.Has("range_starts")) fields.TakeList("range_starts", ReadText, &table->range_starts);
  if (fields.Has("index_options")) fields.Take("index_options", &table->index_options);
  if (fields.Has("index_rights")) fields.Take("index_rights", &table->index_rights);
  if (fields.Has("placement")) fields.Take("placement", &table->placement);
  if (fields.Has("application")) fields.Take("application", &table->application);
  if (fields.Has("key_form")) fields.Take("key_form", &table->key_form);
  GANNET_RETURN_IF_ERROR(fields.status());
  return json.contains("secondary") ? ReadIndex(json["secondary"], &table->secondary.emplace()) : absl::OkStatus();
}

Status ReadFile(const Json& json, CheckpointFile* file) {
  Fields fields(json, "a file in the manifest");
  fields.Take("name", &file->name);
  fields.Take("table", &file->table);
  fields.Take("bytes", &file->bytes);
  fields.Take("records", &file->records);
  fields.Take("crc", &file->crc);
  GANNET_RETURN_IF_ERROR(fields.status());
  if (!IsPlainName(file->name)) return absl::DataLossError("a file in the manifest has a bad name");
  return absl::OkStatus();
}

Status ReadCheckpoint(const Json& json, CheckpointDescription* checkpoint) {
  Fields fields(json, "a checkpoint in the manifest");
  fields.Take("id", &checkpoint->id);
  fields.Take("begin_epoch", &checkpoint->begin_epoch);
  fields.Take("end_epoch", &checkpoint->end_epoch);
  fields.Take("first_segment", &checkpoint->first_segment);
  fields.Take("wall_nanos", &checkpoint->wall_nanos);
  if (fields.Has("all_logged")) fields.Take("all_logged", &checkpoint->all_logged);  // the first manifests lack it
  fields.TakeList("files", ReadFile, &checkpoint->files);
  return fields.status();
}

}  // namespace

std::string ManifestToJson(const Manifest& manifest) {
  Json tables = Json::array();
  for (const TableDescription& table : manifest.tables) tables.push_back(TableToJson(table));
  Json checkpoints = Json::array();
  for (const CheckpointDescription& checkpoint : manifest.checkpoints)
    checkpoints.push_back(CheckpointToJson(checkpoint));
  const bool has_long_keys = std::ranges::any_of(
      manifest.tables, [](const TableDescription& table) { return table.max_key_bytes > kShortKeyBytes; });
  const bool has_gaps = manifest.next_table > manifest.tables.size();
  const bool is_changed = has_long_keys || has_gaps || std::ranges::any_of(manifest.tables, IsWidened);
  const bool has_index =
      std::ranges::any_of(manifest.tables, [](const TableDescription& table) { return table.secondary.has_value(); });
  const uint32_t version = std::max({manifest.version, is_changed ? kChangedTablesManifestVersion : 0,
                                     has_index ? kSecondaryIndexManifestVersion : 0,
                                     manifest.catalog_generation != 0 ? kGenerationManifestVersion : 0});
  Json json{{"gannet_manifest", version},  {"database", manifest.database},   {"started", manifest.started},
            {"node", manifest.node},       {"num_nodes", manifest.num_nodes}, {"application", manifest.application},
            {"log_end", manifest.log_end}, {"tables", std::move(tables)},     {"checkpoints", std::move(checkpoints)}};
  if (!manifest.run.empty()) json["run"] = manifest.run;
  if (manifest.next_table != 0) json["next_table"] = manifest.next_table;
  if (manifest.catalog_generation != 0) json["catalog_generation"] = manifest.catalog_generation;
  // Such texts are refused by WriteManifest; they must not throw here either.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

StatusOr<Manifest> ManifestFromJson(std::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::DataLossError("the manifest is not JSON");
  Manifest manifest;
  Fields version(json, "the manifest");
  version.Take("gannet_manifest", &manifest.version);
  GANNET_RETURN_IF_ERROR(version.status());
  if (manifest.version == 0 || manifest.version > kNewestManifestVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the manifest has version ", manifest.version,
                                                   ", this program knows versions 1 to ", kNewestManifestVersion,
                                                   ": use the version of Gannet that wrote it, or a newer one"));
  }
  Fields fields(json, "the manifest");
  if (manifest.version == 1) {
    manifest.started = true;
  } else {
    fields.Take("database", &manifest.database);
    fields.Take("started", &manifest.started);
  }
  fields.Take("node", &manifest.node);
  fields.Take("num_nodes", &manifest.num_nodes);
  fields.Take("application", &manifest.application);
  if (fields.Has("log_end")) fields.Take("log_end", &manifest.log_end);  // the first manifests lack it
  fields.TakeList("tables", ReadTable, &manifest.tables);
  if (fields.Has("run")) fields.Take("run", &manifest.run);
  if (fields.Has("next_table")) fields.Take("next_table", &manifest.next_table);
  if (fields.Has("catalog_generation")) fields.Take("catalog_generation", &manifest.catalog_generation);
  fields.TakeList("checkpoints", ReadCheckpoint, &manifest.checkpoints);
  GANNET_RETURN_IF_ERROR(fields.status());
  return manifest;
}

}  // namespace gannet::log
