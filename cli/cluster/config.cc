#include "cli/cluster/config.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "absl/strings/str_cat.h"
#include "cli/cluster/toml_reader.h"
#include "cli/parse.h"
#include "rdma/shm/shm_fabric.h"
#include "tpcc/keys.h"
#include "tpcc/schema.h"

namespace gannet::cli {
namespace {

constexpr int kMaxServerThreads = 64;
constexpr int kDefaultClientSlots = 8;
constexpr uint64_t kLeastMemory = uint64_t{16} << 20;
constexpr uint64_t kDefaultClientMemory = uint64_t{256} << 20;  // what it has of ITEM, and its epochs

Status ReadVerbs(TomlReader& reader, VerbsConfig* verbs) {
  GANNET_RETURN_IF_ERROR(reader.TakeString("secret_file", "\"/etc/gannet/secret\"", &verbs->secret_file));
  verbs->client_memory = kDefaultClientMemory;
  if (reader.Has("client_memory")) {
    GANNET_RETURN_IF_ERROR(reader.NeedSize("client_memory", "\"256M\"", &verbs->client_memory));
    if (verbs->client_memory < kLeastMemory) return reader.Wrong("client_memory", "a client needs at least \"16M\"");
  }
  constexpr std::array<std::string_view, 3> kNames{"poll", "adaptive", "events"};
  std::string completions(kNames[static_cast<size_t>(verbs->completions)]);
  GANNET_RETURN_IF_ERROR(reader.TakeString("completions", "\"adaptive\"", &completions));
  const auto name = std::find(kNames.begin(), kNames.end(), completions);
  if (name == kNames.end()) {
    return reader.Wrong("completions", "must be \"poll\", \"adaptive\" or \"events\"");
  }
  verbs->completions = static_cast<Completions>(name - kNames.begin());
  std::string limit = "5s";
  GANNET_RETURN_IF_ERROR(reader.TakeString("silence_limit", "\"5s\"", &limit));
  const StatusOr<absl::Duration> duration = ParseDuration(limit, absl::Seconds(1));
  if (!duration.ok()) return reader.Wrong("silence_limit", std::string(duration.status().message()));
  verbs->silence_limit = *duration;
  return reader.NothingElse();
}

Status ReadFabric(TomlReader& top, const std::string& file, ClusterConfig* config) {
  std::string fabric;
  GANNET_RETURN_IF_ERROR(top.NeedString("fabric", "\"shm\"", &fabric));
  if (fabric != "shm" && fabric != "verbs") {
    return top.Wrong(
        "fabric", absl::StrCat("must be \"shm\" (processes of one machine) or \"verbs\" (RDMA), not \"", fabric, "\""));
  }
  config->fabric = fabric == "shm" ? FabricKind::kShm : FabricKind::kVerbs;
  int64_t slots = kDefaultClientSlots;
  GANNET_RETURN_IF_ERROR(top.TakeInteger("client_slots", 1, rdma::kMaxShmNodes - 1, "8", &slots));
  config->client_slots = static_cast<int>(slots);
  int64_t percent = rdma::kDefaultReadOnlyPercent;
  GANNET_RETURN_IF_ERROR(top.TakeInteger("read_only_percent", 1, rdma::kMostReadOnlyPercent,
                                         absl::StrCat(rdma::kDefaultReadOnlyPercent), &percent));
  config->read_only_percent = static_cast<int>(percent);

  const StatusOr<const toml::table*> shm = top.Table("shm");
  if (!shm.ok()) return shm.status();
  const StatusOr<const toml::table*> verbs = top.Table("verbs");
  if (!verbs.ok()) return verbs.status();
  if (const toml::table* table = fabric == "shm" ? *shm : *verbs; table == nullptr) {
    return top.Wrong(fabric, absl::StrCat("the table is missing; fabric = \"", fabric, "\" needs it"));
  }
  if (*shm != nullptr) {
    TomlReader reader(**shm, file, "[shm]");
    GANNET_RETURN_IF_ERROR(reader.NeedString("memory_file", "\"/dev/shm/gannet\"", &config->memory_file));
    GANNET_RETURN_IF_ERROR(reader.NothingElse());
  }
  if (*verbs != nullptr) {
    TomlReader reader(**verbs, file, "[verbs]");
    GANNET_RETURN_IF_ERROR(ReadVerbs(reader, &config->verbs));
  }
  return absl::OkStatus();
}

Status ReadServer(const toml::table& table, const std::string& file, FabricKind fabric, int64_t count,
                  std::vector<std::optional<ServerConfig>>* servers) {
  TomlReader reader(table, file, "[[server]]");
  int64_t id = 0;
  GANNET_RETURN_IF_ERROR(reader.NeedInteger("id", 0, count - 1, "0", &id));
  std::optional<ServerConfig>& slot = (*servers)[static_cast<size_t>(id)];
  if (slot.has_value()) {
    return reader.Wrong("id", absl::StrCat("there is a server ", id, " already; number them from 0 to ", count - 1));
  }
  ServerConfig server{.name = absl::StrCat("node ", id)};
  GANNET_RETURN_IF_ERROR(reader.TakeString("name", "\"alpha\"", &server.name));
  for (const std::optional<ServerConfig>& other : *servers) {
    if (other.has_value() && other->name == server.name) {
      return reader.Wrong("name", absl::StrCat("there is a server \"", server.name, "\" already"));
    }
  }
  if (fabric == FabricKind::kVerbs) {
    GANNET_RETURN_IF_ERROR(reader.NeedString("address", "\"192.168.1.1:7471\"", &server.address));
  } else {
    GANNET_RETURN_IF_ERROR(reader.TakeString("address", "\"192.168.1.1:7471\"", &server.address));
  }
  GANNET_RETURN_IF_ERROR(reader.TakeString("device", "\"mlx5_0\"", &server.device));
  int64_t port = server.port;
  GANNET_RETURN_IF_ERROR(reader.TakeInteger("port", 1, 255, "1", &port));
  server.port = static_cast<int>(port);
  int64_t gid = server.gid;
  GANNET_RETURN_IF_ERROR(reader.TakeInteger("gid", 0, 65535, "3", &gid));
  server.gid = static_cast<int>(gid);
  GANNET_RETURN_IF_ERROR(reader.NeedSize("memory", "\"4G\"", &server.memory));
  if (server.memory < kLeastMemory) return reader.Wrong("memory", "a server needs at least \"16M\"");
  int64_t threads = server.server_threads;
  GANNET_RETURN_IF_ERROR(reader.TakeInteger("server_threads", 1, kMaxServerThreads, "1", &threads));
  server.server_threads = static_cast<int>(threads);
  GANNET_RETURN_IF_ERROR(reader.NothingElse());
  slot = std::move(server);
  return absl::OkStatus();
}

Status ReadServers(TomlReader& top, const std::string& file, ClusterConfig* config) {
  const StatusOr<const toml::array*> array = top.ArrayOfTables("server");
  if (!array.ok()) return array.status();
  if (*array == nullptr) return top.Wrong("server", "is missing; add a table [[server]] for each server");
  const auto count = static_cast<int64_t>((*array)->size());
  if (count + config->client_slots > rdma::kMaxShmNodes) {
    return top.Wrong("server", absl::StrCat("servers and client_slots are ", count + config->client_slots,
                                            " together; at most ", rdma::kMaxShmNodes));
  }
  std::vector<std::optional<ServerConfig>> servers((*array)->size());
  for (const toml::node& node : **array) {
    GANNET_RETURN_IF_ERROR(ReadServer(*node.as_table(), file, config->fabric, count, &servers));
  }
  // Every id is in range and none twice, so each is there.
  for (std::optional<ServerConfig>& server : servers) config->servers.push_back(*std::move(server));
  return absl::OkStatus();
}

Status ReadTpcc(TomlReader& top, const std::string& file, ClusterConfig* config) {
  const StatusOr<const toml::table*> table = top.Table("tpcc");
  if (!table.ok()) return table.status();
  if (*table == nullptr) return top.Wrong("tpcc", "the table is missing; it says what the servers load");
  TomlReader reader(**table, file, "[tpcc]");
  const tpcc::Scale full;
  int64_t warehouses = 0;
  int64_t seed = 1;
  int64_t items = full.items;
  int64_t customers = full.customers_per_district;
  GANNET_RETURN_IF_ERROR(reader.NeedInteger("warehouses", config->num_servers(), tpcc::kMaxWarehouses,
                                            absl::StrCat(config->num_servers()), &warehouses));
  GANNET_RETURN_IF_ERROR(reader.TakeInteger("seed", 0, std::numeric_limits<int64_t>::max(), "1", &seed));
  GANNET_RETURN_IF_ERROR(reader.TakeInteger("items", 100, full.items, "100000", &items));
  GANNET_RETURN_IF_ERROR(
      reader.TakeInteger("customers_per_district", 30, full.customers_per_district, "3000", &customers));
  config->tpcc = {.warehouses = static_cast<int>(warehouses),
                  .seed = static_cast<uint64_t>(seed),
                  .items = static_cast<uint32_t>(items),
                  .customers_per_district = static_cast<uint32_t>(customers)};
  return reader.NothingElse();
}

}  // namespace

StatusOr<int> ClusterConfig::FindServer(const std::string& id_or_name) const {
  std::string all;
  for (int id = 0; id < num_servers(); ++id) {
    const std::string& name = servers[static_cast<size_t>(id)].name;
    if (id_or_name == absl::StrCat(id) || id_or_name == name) return id;
    absl::StrAppend(&all, id == 0 ? "" : ", ", id, " (", name, ")");
  }
  return absl::NotFoundError(
      absl::StrCat("there is no server '", id_or_name, "' in ", file, "; its servers are ", all));
}

uint64_t ClusterConfig::Hash() const {
  std::string text =
      absl::StrCat("gannet cluster 2;", static_cast<int>(fabric), ";", client_slots, ";", read_only_percent, ";",
                   tpcc.warehouses, ";", tpcc.seed, ";", tpcc.items, ";", tpcc.customers_per_district);
  if (fabric == FabricKind::kVerbs) absl::StrAppend(&text, ";", verbs.client_memory);
  for (const ServerConfig& server : servers) absl::StrAppend(&text, ";", server.address, ";", server.memory);
  return XXH3_64bits(text.data(), text.size());
}

StatusOr<ClusterConfig> ParseClusterConfig(std::string_view text, const std::string& file) {
  toml::table root;
  try {  // the library's way to tell
    root = toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ":", error.source().begin.line, ": ",
                     absl::string_view(error.description().data(), error.description().size())));
  }
  ClusterConfig config{.file = file};
  TomlReader top(root, file, "");
  GANNET_RETURN_IF_ERROR(ReadFabric(top, file, &config));
  GANNET_RETURN_IF_ERROR(ReadServers(top, file, &config));
  GANNET_RETURN_IF_ERROR(ReadTpcc(top, file, &config));
  GANNET_RETURN_IF_ERROR(top.NothingElse());
  return config;
}

StatusOr<ClusterConfig> ReadClusterConfig(const std::string& file) {
  const auto unreadable = [&file](const char* why) {
    return absl::NotFoundError(absl::StrCat("cannot read the cluster file ", file, ": ", why));
  };
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) return unreadable("it is a directory");
  errno = 0;
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) return unreadable(errno == 0 ? "the reading failed" : std::strerror(errno));
  StatusOr<ClusterConfig> config = ParseClusterConfig(text.str(), file);
  if (!config.ok()) return config;
  // A file name within it is relative to it.
  const std::filesystem::path directory = std::filesystem::path(file).parent_path();
  for (std::string* path : {&config->memory_file, &config->verbs.secret_file}) {
    if (!path->empty()) *path = (directory / *path).string();
  }
  return config;
}

}  // namespace gannet::cli
