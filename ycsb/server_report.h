// A server's report about itself, outside of the measurement: for its own process, and by calls for clients in other
// processes (messages.h).
#pragma once

#include <cstdint>
#include <optional>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/xstore/xstore.h"
#include "rdma/fabric.h"
#include "rdma/rpc.h"
#include "rdma/slab.h"

namespace gannet::ycsb {

struct ServerReport {
  index::Statistics index;
  rdma::SlabStatistics memory;                          // without the fields of the read-only part
  std::optional<index::XStore::ModelStatistics> model;  // of learned indexes
};

// Encodes the answers.
void Put(const index::XStore::ModelStatistics& model, rdma::WireWriter& writer);
void Put(const ServerReport& report, rdma::WireWriter& writer);

// A client's requests: the calls kReportCall, kModelCall and kReserveCall. `channel` must outlive the task.
coro::Task<StatusOr<ServerReport>> AskReport(rdma::Channel* channel, rdma::NodeId server);
coro::Task<StatusOr<index::XStore::ModelStatistics>> AskModel(rdma::Channel* channel, rdma::NodeId server);
// Reserves `count` numbers of keys to insert (KeySpace::InsertedKey) for this client alone, and returns the first.
// ResourceExhausted if the key space has no room for more.
coro::Task<StatusOr<uint64_t>> ReserveInserts(rdma::Channel* channel, uint32_t count);

}  // namespace gannet::ycsb
