#include "txn/all_nodes.h"

#include <vector>

#include "base/thread.h"

namespace gannet::txn {

Status OnAllNodes(std::span<Database* const> databases, Status (*work)(Database&)) {
  std::vector<Status> statuses(databases.size());
  std::vector<Thread> threads;
  for (size_t i = 0; i < databases.size(); ++i) {
    threads.emplace_back("node", [=, &statuses] { statuses[i] = work(*databases[i]); });
  }
  for (Thread& thread : threads) thread.join();
  for (const Status& status : statuses) GANNET_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace gannet::txn
