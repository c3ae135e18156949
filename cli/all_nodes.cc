#include "cli/all_nodes.h"

#include <thread>
#include <vector>

namespace gannet::cli {

Status OnAllNodes(std::span<txn::Database* const> databases, Status (*work)(txn::Database&)) {
  std::vector<Status> statuses(databases.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < databases.size(); ++i) {
    threads.emplace_back([=, &statuses] { statuses[i] = work(*databases[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) GANNET_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace gannet::cli
