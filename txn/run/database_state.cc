#include "txn/run/database_state.h"

#include "txn/durable/durability.h"
#include "txn/peer/owner_service.h"
#include "txn/run/run_sessions.h"

namespace gannet::txn {

DatabaseState::~DatabaseState() = default;

}  // namespace gannet::txn
