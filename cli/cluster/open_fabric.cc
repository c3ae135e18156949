#include "cli/cluster/open_fabric.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/cluster/hello.h"
#include "cli/parse.h"
#include "rdma/shm/shm_fabric.h"

namespace gannet::cli {
namespace {

// Whoever touches a page that a full memory file system cannot give is killed by SIGBUS; so it is looked at before.
Status CheckRoom(const ClusterConfig& config) {
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

// What a server had in its memory went with it, and the others have addresses of it: it cannot just come back.
Status MustBeNew(const rdma::ShmFabric& fabric, const ClusterConfig& config, int server) {
  const auto id = static_cast<rdma::NodeId>(server);
  const std::string& name = config.servers[id].name;
  if (fabric.Attachments(id) == 0) return absl::OkStatus();
  if (fabric.Alive(id)) {
    return absl::FailedPreconditionError(absl::StrCat("server ", server, " (", name, ") of this cluster runs already"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("server ", server, " (", name, ") was in this cluster before; its data went with it, and the ",
                   "processes that still run hold addresses of them. Stop all processes of the cluster (what uses ",
                   config.memory_file, "), then start all servers again"));
}

StatusOr<std::unique_ptr<rdma::Fabric>> OpenShm(const ClusterConfig& config, std::optional<int> server) {
  GANNET_RETURN_IF_ERROR(CheckRoom(config));
  rdma::ShmOptions options{.num_nodes = config.num_nodes(), .bytes_per_node = 0};
  for (const ServerConfig& each : config.servers)
    options.bytes_per_node = std::max(options.bytes_per_node, each.memory);
  options.protocol = kClusterProtocol;
  options.configuration = config.Hash();
  auto fabric = rdma::ShmFabric::Share(config.memory_file, options);
  if (absl::IsFailedPrecondition(fabric.status())) {
    return absl::FailedPreconditionError(absl::StrCat(fabric.status().message(),
                                                      ": give all processes of a cluster the same ", config.file,
                                                      " and the same version of gannet"));
  }
  if (!fabric.ok()) return fabric.status();
  if (server.has_value()) GANNET_RETURN_IF_ERROR(MustBeNew(**fabric, config, *server));
  return std::unique_ptr<rdma::Fabric>(*std::move(fabric));
}

}  // namespace

StatusOr<std::unique_ptr<rdma::Fabric>> OpenFabric(const ClusterConfig& config, std::optional<int> server) {
  switch (config.fabric) {
    case FabricKind::kShm:
      return OpenShm(config, server);
    case FabricKind::kVerbs:
      break;
  }
  return absl::UnimplementedError(
      absl::StrCat(config.file, ": this version of gannet does not serve over verbs; use fabric = \"shm\""));
}

}  // namespace gannet::cli
