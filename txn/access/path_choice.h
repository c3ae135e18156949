// The choice of the path that an access to another node's records takes: what it would take on each path, for the
// session's chooser (offload_chooser.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "index/index.h"
#include "rdma/fabric.h"
#include "txn/access/rows_wanted.h"
#include "txn/path/offload_chooser.h"
#include "txn/session/session_state.h"
#include "txn/store/requests.h"
#include "txn/store/table.h"

namespace gannet::txn {

// `index` is the client of the table's index at `owner`.
PathChoice ChooseForKey(SessionState& session, const GetRequest& request, rdma::NodeId owner,
                        const index::RemoteIndex& index);
PathChoice ChooseForRows(SessionState& session, const Table& table, const RowsWanted& wanted, rdma::NodeId owner,
                         const index::RemoteIndex& index);
// Chooses for the requests that `owner` serves; `which` has their numbers. The requests of one table are looked up
// together, those of several tables one after the other, and all records are READ at once. `keys` is scratch. Errors:
// those of SessionState::RemoteIndexOf.
StatusOr<PathChoice> ChooseForGroup(SessionState& session, std::span<const GetRequest> requests, rdma::NodeId owner,
                                    std::span<const uint32_t> which, std::vector<index::Key>* keys);

}  // namespace gannet::txn
