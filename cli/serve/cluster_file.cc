#include "cli/serve/cluster_file.h"

#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/common/parse.h"
#include "index/registry.h"
#include "tpcc/schema/keys.h"
#include "tpcc/schema/schema.h"
#include "ycsb/location_cache.h"
#include "ycsb/value.h"

namespace gannet::cli {
namespace {

// An index kind by its name, as `parse` understands it; *kind stays as it is if the key is absent.
template <class Parse>
Status TakeIndex(cluster::Section& section, const std::string& key, Parse parse, index::IndexKind* kind) {
  std::string name = index::EntryOf(*kind).name;
  GANNET_RETURN_IF_ERROR(section.TakeString(key, absl::StrCat("\"", name, "\""), &name));
  const StatusOr<index::IndexKind> taken = parse(name);
  if (!taken.ok()) return section.Wrong(key, std::string(taken.status().message()));
  *kind = *taken;
  return absl::OkStatus();
}

// The rights of an index of `kind`; *rights stays as it is if the key is absent.
Status TakeRights(cluster::Section& section, const std::string& key, index::IndexKind kind,
                  std::optional<index::IndexRights>* rights) {
  std::string name;
  GANNET_RETURN_IF_ERROR(section.TakeString(key, "\"owner\"", &name));
  if (name.empty()) return absl::OkStatus();
  StatusOr<index::IndexRights> taken = ParseIndexRights(name);
  if (taken.ok()) taken = index::RightsFor(index::EntryOf(kind), *taken);
  if (!taken.ok()) return section.Wrong(key, std::string(taken.status().message()));
  *rights = *taken;
  return absl::OkStatus();
}

Status ReadTpcc(cluster::Section& section, int servers, TpccSection* tpcc) {
  const tpcc::Scale full;
  int64_t warehouses = 0;
  int64_t seed = 1;
  int64_t items = full.items;
  int64_t customers = full.customers_per_district;
  GANNET_RETURN_IF_ERROR(
      section.NeedInteger("warehouses", servers, tpcc::kMaxWarehouses, absl::StrCat(servers), &warehouses));
  GANNET_RETURN_IF_ERROR(section.TakeInteger("seed", 0, std::numeric_limits<int64_t>::max(), "1", &seed));
  GANNET_RETURN_IF_ERROR(section.TakeInteger("items", 100, full.items, "100000", &items));
  GANNET_RETURN_IF_ERROR(
      section.TakeInteger("customers_per_district", 30, full.customers_per_district, "3000", &customers));
  *tpcc = {.warehouses = static_cast<int>(warehouses),
           .seed = static_cast<uint64_t>(seed),
           .items = static_cast<uint32_t>(items),
           .customers_per_district = static_cast<uint32_t>(customers)};
  GANNET_RETURN_IF_ERROR(TakeIndex(section, "ordered_index", ParseOrderedIndex, &tpcc->ordered_index));
  return TakeRights(section, "index_rights", tpcc->ordered_index, &tpcc->index_rights);
}

// A name of `names`; *value stays as it is if the key is absent.
template <class Enum>
Status TakeChoice(cluster::Section& section, const std::string& key, std::span<const std::string_view> names,
                  Enum* value) {
  std::string name(names[static_cast<size_t>(*value)]);
  GANNET_RETURN_IF_ERROR(section.TakeString(key, absl::StrCat("\"", name, "\""), &name));
  const StatusOr<size_t> at = ParseChoice(name, names);
  if (!at.ok()) return section.Wrong(key, std::string(at.status().message()));
  *value = static_cast<Enum>(*at);
  return absl::OkStatus();
}

Status ReadYcsb(cluster::Section& section, const cluster::Config& config, YcsbSection* ycsb) {
  ycsb::ClusterOptions& o = ycsb->options;
  o.servers = config.num_servers();
  if (o.servers > ycsb::LocationCache::kMaxServers) {
    return section.Wrong("keys", absl::StrCat("YCSB has at most ", ycsb::LocationCache::kMaxServers, " servers; ",
                                              config.file, " has ", o.servers));
  }
  int64_t keys = 0;
  int64_t value_bytes = static_cast<int64_t>(o.value_bytes);
  int64_t fill_percent = ycsb->fill_percent;
  int64_t sub_models = 0;
  GANNET_RETURN_IF_ERROR(section.NeedInteger("keys", o.servers, ycsb::kMaxKeys, "1000000", &keys));
  GANNET_RETURN_IF_ERROR(TakeIndex(section, "index", ParseIndexOfAnyKey, &o.index));
  std::optional<index::IndexRights> rights;
  GANNET_RETURN_IF_ERROR(TakeRights(section, "index_rights", o.index, &rights));
  o.index_rights = rights.value_or(o.index_rights);
  GANNET_RETURN_IF_ERROR(TakeChoice(section, "keyspace", ycsb::kKeyFormNames, &o.key_form));
  GANNET_RETURN_IF_ERROR(section.TakeInteger("value_bytes", ycsb::kMinValueBytes, ycsb::kMaxValueBytes,
                                             absl::StrCat(ycsb::kMinValueBytes), &value_bytes));
  GANNET_RETURN_IF_ERROR(section.TakeInteger("fill_percent", 10, 100, "50", &fill_percent));
  GANNET_RETURN_IF_ERROR(section.TakeInteger("sub_models", 1, UINT32_MAX, "5000", &sub_models));
  GANNET_RETURN_IF_ERROR(TakeChoice(section, "updates", std::span(ycsb::kPathNames).first(2), &ycsb->updates));
  o.keys = static_cast<uint64_t>(keys);
  o.value_bytes = static_cast<size_t>(value_bytes);
  ycsb->fill_percent = static_cast<int>(fill_percent);
  o.fill = static_cast<double>(fill_percent) / 100;
  o.sub_models = static_cast<uint32_t>(sub_models);
  return absl::OkStatus();
}

std::vector<cluster::SectionReader> Readers(ClusterFile* file) {
  return {{.name = "tpcc",
           .purpose = "",
           .read =
               [file](cluster::Section& section, const cluster::Config& config) {
                 return ReadTpcc(section, config.num_servers(), &file->tpcc.emplace());
               }},
          {.name = "ycsb", .purpose = "", .read = [file](cluster::Section& section, const cluster::Config& config) {
             return ReadYcsb(section, config, &file->ycsb.emplace());
           }}};
}

StatusOr<ClusterFile> Complete(StatusOr<cluster::Config> config, ClusterFile file) {
  if (!config.ok()) return config.status();
  file.config = *std::move(config);
  const std::string& name = file.config.file;
  if (!file.tpcc.has_value() && !file.ycsb.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has neither the table [tpcc] nor [ycsb]; add one: it says ", "what the servers load"));
  }
  if (file.tpcc.has_value() && file.ycsb.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has the tables [tpcc] and [ycsb]; remove one: the servers load what the other one says"));
  }
  return file;
}

}  // namespace

tpcc::SchemaOptions SchemaOf(const TpccSection& section) {
  return {.warehouses = static_cast<uint32_t>(section.warehouses),
          .scale = {.items = section.items, .customers_per_district = section.customers_per_district},
          .ordered_index = section.ordered_index,
          .index_rights = section.index_rights};
}

StatusOr<ClusterFile> ReadClusterFile(const std::string& file) {
  ClusterFile read;
  StatusOr<cluster::Config> config = cluster::ReadConfig(file, Readers(&read));
  return Complete(std::move(config), std::move(read));
}

StatusOr<ClusterFile> ParseClusterFile(std::string_view text, const std::string& file) {
  ClusterFile read;
  StatusOr<cluster::Config> config = cluster::ParseConfig(text, file, Readers(&read));
  return Complete(std::move(config), std::move(read));
}

}  // namespace gannet::cli
