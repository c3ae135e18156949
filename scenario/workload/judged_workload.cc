#include "scenario/workload/judged_workload.h"

namespace gannet::scenario {

coro::Task<Status> JudgedClient::Execute() {
  Status status = co_await transaction().Execute(session(), number_);
  if (status.ok()) CountCommit();
  co_return status;
}

Status JudgedClient::ExecuteNow() {
  return UntilKnown([this] { return session().worker().BlockOn(Execute()); });
}

}  // namespace gannet::scenario
