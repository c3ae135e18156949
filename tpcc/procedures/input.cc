#include "tpcc/procedures/input.h"

#include "absl/strings/str_format.h"

namespace gannet::tpcc {

Status MissingRow(absl::string_view table, uint64_t key) {
  return absl::DataLossError(
      absl::StrFormat("%s has no row %#018x: load the tables first, or check what removed it", table, key));
}

Status AllFound(std::span<const txn::GetRequest> answers) {
  for (const txn::GetRequest& answer : answers) {
    if (answer.status.ok()) [[likely]]
      continue;
    return absl::IsNotFound(answer.status) ? MissingRow(answer.table->name(), answer.key.integer()) : answer.status;
  }
  return absl::OkStatus();
}

}  // namespace gannet::tpcc
