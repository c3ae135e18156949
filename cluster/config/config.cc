#include "cluster/config/config.h"

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
#include "base/quantity.h"
#include "rdma/heap_parts.h"
#include "rdma/shm/shm_fabric.h"

namespace gannet::cluster {
namespace {

constexpr int kMaxServerThreads = 64;
constexpr int kDefaultClientSlots = 8;
constexpr uint64_t kLeastMemory = uint64_t{16} << 20;
constexpr uint64_t kDefaultClientMemory = uint64_t{256} << 20;  // its copies of replicated tables, and its epochs

Status ReadVerbs(Section& reader, VerbsConfig* verbs) {
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

Status ReadFabric(Section& top, Config* config) {
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

  StatusOr<std::optional<Section>> shm = top.Table("shm");
  if (!shm.ok()) return shm.status();
  StatusOr<std::optional<Section>> verbs = top.Table("verbs");
  if (!verbs.ok()) return verbs.status();
  if (!(fabric == "shm" ? *shm : *verbs).has_value()) {
    return top.Wrong(fabric, absl::StrCat("the table is missing; fabric = \"", fabric, "\" needs it"));
  }
  if (shm->has_value()) {
    GANNET_RETURN_IF_ERROR((*shm)->NeedString("memory_file", "\"/dev/shm/gannet\"", &config->memory_file));
    GANNET_RETURN_IF_ERROR((*shm)->NothingElse());
  }
  return verbs->has_value() ? ReadVerbs(**verbs, &config->verbs) : absl::OkStatus();
}

Status ReadServer(Section& reader, FabricKind fabric, int64_t count,
                  std::vector<std::optional<ServerConfig>>* servers) {
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

Status ReadServers(Section& top, Config* config) {
  StatusOr<std::vector<Section>> tables = top.Tables("server");
  if (!tables.ok()) return tables.status();
  if (tables->empty()) return top.Wrong("server", "is missing; add a table [[server]] for each server");
  const auto count = static_cast<int64_t>(tables->size());
  if (count + config->client_slots > rdma::kMaxShmNodes) {
    return top.Wrong("server", absl::StrCat("servers and client_slots are ", count + config->client_slots,
                                            " together; at most ", rdma::kMaxShmNodes));
  }
  std::vector<std::optional<ServerConfig>> servers(tables->size());
  for (Section& table : *tables) GANNET_RETURN_IF_ERROR(ReadServer(table, config->fabric, count, &servers));
  // Every id is in range and none is used twice, so all are there.
  for (std::optional<ServerConfig>& server : servers) config->servers.push_back(*std::move(server));
  return absl::OkStatus();
}

Status ReadSection(Section& top, const SectionReader& reader, Config* config) {
  StatusOr<std::optional<Section>> table = top.Table(reader.name);
  if (!table.ok()) return table.status();
  if (!table->has_value()) {
    if (reader.purpose.empty()) return absl::OkStatus();
    return top.Wrong(reader.name, absl::StrCat("the table is missing; ", reader.purpose));
  }
  GANNET_RETURN_IF_ERROR(reader.read(**table, *config));
  config->sections[reader.name] = (*table)->CanonicalText();
  return (*table)->NothingElse();
}

}  // namespace

StatusOr<int> Config::FindServer(const std::string& id_or_name) const {
  std::string all;
  for (int id = 0; id < num_servers(); ++id) {
    const std::string& name = servers[static_cast<size_t>(id)].name;
    if (id_or_name == absl::StrCat(id) || id_or_name == name) return id;
    absl::StrAppend(&all, id == 0 ? "" : ", ", id, " (", name, ")");
  }
  return absl::NotFoundError(
      absl::StrCat("there is no server '", id_or_name, "' in ", file, "; its servers are ", all));
}

std::string Config::NameOfNode(int node) const {
  if (node >= num_servers()) return absl::StrCat("client slot ", node - num_servers());
  return absl::StrCat("server ", node, " (", servers[static_cast<size_t>(node)].name, ")");
}

uint64_t Config::Hash() const {
  std::string text =
      absl::StrCat("gannet cluster 3;", static_cast<int>(fabric), ";", client_slots, ";", read_only_percent);
  if (fabric == FabricKind::kVerbs) absl::StrAppend(&text, ";", verbs.client_memory);
  for (const ServerConfig& server : servers) absl::StrAppend(&text, ";", server.address, ";", server.memory);
  for (const auto& [name, content] : sections) absl::StrAppend(&text, ";[", name, "]", content);
  return XXH3_64bits(text.data(), text.size());
}

StatusOr<Config> ParseConfig(std::string_view text, const std::string& file,
                             const std::vector<SectionReader>& sections) {
  StatusOr<Section> top = Section::Parse(text, file);
  if (!top.ok()) return top.status();
  Config config{.file = file};
  GANNET_RETURN_IF_ERROR(ReadFabric(*top, &config));
  GANNET_RETURN_IF_ERROR(ReadServers(*top, &config));
  for (const SectionReader& reader : sections) GANNET_RETURN_IF_ERROR(ReadSection(*top, reader, &config));
  GANNET_RETURN_IF_ERROR(top->NothingElse());
  return config;
}

StatusOr<Config> ReadConfig(const std::string& file, const std::vector<SectionReader>& sections) {
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
  StatusOr<Config> config = ParseConfig(text.str(), file, sections);
  if (!config.ok()) return config;
  const std::filesystem::path directory = std::filesystem::path(file).parent_path();
  for (std::string* path : {&config->memory_file, &config->verbs.secret_file}) {
    if (!path->empty()) *path = (directory / *path).string();
  }
  return config;
}

}  // namespace gannet::cluster
