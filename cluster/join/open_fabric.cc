#include "cluster/join/open_fabric.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quantity.h"
#include "cluster/join/hello.h"
#include "cluster/join/secret.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/verbs/verbs_fabric.h"
#include "txn/database.h"

namespace gannet::cluster {
namespace {

// A process that touches a page that a full memory file system cannot provide is killed by SIGBUS. So this checks the
// room before.
Status CheckRoom(const Config& config) {
  const std::filesystem::path file = config.memory_file;
  std::error_code error;
  if (std::filesystem::exists(file, error)) return absl::OkStatus();
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  if (error) {
    return absl::NotFoundError(absl::StrCat(config.file, ": [shm] memory_file: ", directory.string(), ": ",
                                            error.message(), "; name a file in a directory that exists"));
  }
  uint64_t wanted = 0;
  for (const ServerConfig& server : config.servers) wanted += server.memory;
  if (wanted <= space.available) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(config.file, ": [shm] memory_file: ", directory.string(), " has ",
                                                   FormatBytes(space.available), " free, the memory of all servers is ",
                                                   FormatBytes(wanted), "; give them less, or name a file elsewhere"));
}

// A server that died cannot come back alone: its data died with it, and the others hold addresses in its old memory.
Status MustBeNew(const rdma::ShmFabric& fabric, const Config& config, int server) {
  const auto id = static_cast<rdma::NodeId>(server);
  if (fabric.Attachments(id) == 0) return absl::OkStatus();
  if (fabric.Alive(id)) {
    return absl::FailedPreconditionError(absl::StrCat(config.NameOfNode(server), " of this cluster runs already"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(config.NameOfNode(server), " was in this cluster before; its data went with it, and the ",
                   "processes that still run hold addresses of them. Stop all processes of the cluster (what uses ",
                   config.memory_file, "), then start all servers again"));
}

StatusOr<std::unique_ptr<rdma::Fabric>> OpenShm(const Config& config, std::optional<int> server) {
  GANNET_RETURN_IF_ERROR(CheckRoom(config));
  rdma::ShmOptions options{.num_nodes = config.num_nodes(),
                           .bytes_per_node = 0,
                           .read_only_percent = static_cast<uint32_t>(config.read_only_percent)};
  for (const ServerConfig& each : config.servers)
    options.bytes_per_node = std::max(options.bytes_per_node, each.memory);
  options.protocol = kProtocol;
  options.configuration = config.Hash();
  auto fabric = rdma::ShmFabric::Share(config.memory_file, options);
  if (absl::IsFailedPrecondition(fabric.status())) {
    return absl::FailedPreconditionError(absl::StrCat(fabric.status().message(),
                                                      ": give all processes of a cluster the same ", config.file,
                                                      " and the same version of the program"));
  }
  if (!fabric.ok()) return fabric.status();
  if (server.has_value()) GANNET_RETURN_IF_ERROR(MustBeNew(**fabric, config, *server));
  return std::unique_ptr<rdma::Fabric>(*std::move(fabric));
}

void SetPolling(Completions completions, rdma::VerbsOptions* options) {
  switch (completions) {
    case Completions::kPoll:
      options->server_poll = absl::InfiniteDuration();
      return;
    case Completions::kAdaptive:
      return;
    case Completions::kEvents:
      options->server_poll = absl::ZeroDuration();
      options->worker_poll = absl::ZeroDuration();
  }
}

StatusOr<std::unique_ptr<rdma::Fabric>> OpenVerbs(const Config& config, std::optional<int> server) {
  StatusOr<std::string> secret = ReadSecret(config);
  if (!secret.ok()) return secret.status();
  rdma::VerbsOptions options;
  options.secret = *std::move(secret);
  options.read_only_percent = static_cast<uint32_t>(config.read_only_percent);
  options.bytes_per_node = config.verbs.client_memory;
  for (const ServerConfig& each : config.servers) {
    options.nodes.push_back(each.address);
    options.bytes_of_node.push_back(each.memory);
    options.bytes_per_node = std::max(options.bytes_per_node, each.memory);
  }
  options.nodes.resize(static_cast<size_t>(config.num_nodes()));
  options.bytes_of_node.resize(options.nodes.size(), config.verbs.client_memory);
  options.configuration = config.Hash() + kProtocol;
  options.may_return = false;
  options.silence_limit = config.verbs.silence_limit;
  options.connect_limit = std::max(options.connect_limit, config.verbs.silence_limit);
  SetPolling(config.verbs.completions, &options);
  if (server.has_value()) {
    const ServerConfig& own = config.servers[static_cast<size_t>(*server)];
    options.device = own.device;
    options.port = own.port;
    options.gid = own.gid;
  }
  auto fabric = rdma::VerbsFabric::Create(options);
  if (!fabric.ok()) {
    return absl::Status(fabric.status().code(),
                        absl::StrCat(config.file, ": ", absl::string_view(fabric.status().message())));
  }
  return std::unique_ptr<rdma::Fabric>(*std::move(fabric));
}

}  // namespace

StatusOr<std::unique_ptr<rdma::Fabric>> OpenFabric(const Config& config, std::optional<int> server) {
  switch (config.fabric) {
    case FabricKind::kShm:
      return OpenShm(config, server);
    case FabricKind::kVerbs:
      return OpenVerbs(config, server);
  }
  return absl::InvalidArgumentError(absl::StrCat(config.file, ": fabric: there is no such kind"));
}

const rdma::VerbsFabric* AsVerbs(const rdma::Fabric& fabric) {
  return dynamic_cast<const rdma::VerbsFabric*>(&fabric);
}

absl::Duration CallTimeout(const Config& config) {
  // A live process may be silent for this long, so its answer may take as long.
  const absl::Duration usual = txn::DatabaseOptions().call_timeout;
  return config.fabric == FabricKind::kVerbs ? std::max(usual, config.verbs.silence_limit) : usual;
}

}  // namespace gannet::cluster
