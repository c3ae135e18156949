// Operations that read a row and then write it, or that return what they read. Each reads by one request: by this CPU
// without a coroutine, if the row is this node's.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "txn/access/access.h"
#include "txn/access/access_internal.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

namespace {

// `found` is the result of a read: whether there is a row.
StatusOr<bool> WhetherFound(Status found) {
  if (found.ok()) return true;
  if (absl::IsNotFound(found)) return false;
  return found;
}

std::span<const std::byte> ViewOf(const GetRequest& request) {
  return request.out.first(request.payload_bytes);
}

}  // namespace

GetRequest Access::RequestForView(const Table& table, Key key) {
  const size_t whole = table.accepted_payload_bytes();
  const size_t room = table.options().variable_length ? std::min(whole, kFirstViewBytes) : whole;
  return {.table = &table, .key = key, .out = {writes_.arena().Allocate(room), room}, .up_to_end = true};
}

bool Access::HasWholeView(GetRequest* request) {
  if (request->payload_bytes <= request->out.size()) return true;
  request->out = {writes_.arena().Allocate(request->payload_bytes), request->payload_bytes};
  return false;
}

coro::Async<StatusOr<std::span<const std::byte>>> Access::GetView(const Table& table, Key key) {
  using View = StatusOr<std::span<const std::byte>>;
  rdma::NodeId owner;
  if (!session_->OwnedHere(table, key, &owner)) return GetViewRemote(table, key);
  GetRequest request = RequestForView(table, key);
  do {
    if (Status status = LoadDirect(&request); !status.ok()) return View(std::move(status));
  } while (!HasWholeView(&request));
  return View(ViewOf(request));
}

coro::Task<StatusOr<std::span<const std::byte>>> Access::GetViewRemote(const Table& table, Key key) {
  GetRequest request = RequestForView(table, key);
  do {
    Status status = co_await LoadRemote(&request);
    if (!status.ok()) co_return status;
  } while (!HasWholeView(&request));
  co_return ViewOf(request);
}

coro::Async<StatusOr<bool>> Access::Exists(const Table& table, Key key) {
  rdma::NodeId owner;
  if (!session_->OwnedHere(table, key, &owner)) return ExistsRemote(table, key);
  GetRequest request{.table = &table, .key = key, .out = {}, .offset = 0};
  return WhetherFound(LoadDirect(&request));
}

coro::Task<StatusOr<bool>> Access::ExistsRemote(const Table& table, Key key) {
  GetRequest request{.table = &table, .key = key, .out = {}, .offset = 0};
  Status status = co_await LoadRemote(&request);
  co_return WhetherFound(std::move(status));
}

// If the key is absent, the transaction depends on that: another one that inserts it is a conflict for this one.
Status Access::PutRow(Status found, const GetRequest& request, std::span<const std::byte> payload) {
  if (absl::IsNotFound(found)) return writes_.Insert(*request.table, request.key, payload);
  GANNET_RETURN_IF_ERROR(found);
  return writes_.Update(request.handle, payload, PayloadPart::Whole());
}

coro::Async<Status> Access::Upsert(const Table& table, Key key, std::span<const std::byte> payload) {
  rdma::NodeId owner;
  if (!session_->OwnedHere(table, key, &owner)) return UpsertRemote(table, key, payload);
  GetRequest request = RequestForHandle(table, key);
  return PutRow(LoadDirect(&request), request, payload);
}

coro::Task<Status> Access::UpsertRemote(const Table& table, Key key, std::span<const std::byte> payload) {
  GetRequest request = RequestForHandle(table, key);
  Status status = co_await LoadRemote(&request);
  co_return PutRow(std::move(status), request, payload);
}

StatusOr<bool> Access::PutRowIf(Status found, const GetRequest& request, std::span<const std::byte> expected,
                                std::span<const std::byte> payload) {
  GANNET_RETURN_IF_ERROR(found);
  GANNET_RETURN_IF_ERROR(CheckFits(*request.table, expected.size()));
  GANNET_RETURN_IF_ERROR(CheckFits(*request.table, payload.size()));
  if (request.payload_bytes != expected.size() || !std::ranges::equal(request.out, expected)) return false;
  GANNET_RETURN_IF_ERROR(writes_.Update(request.handle, payload, PayloadPart::Whole()));
  return true;
}

coro::Async<StatusOr<bool>> Access::UpdateIf(const Table& table, Key key, std::span<const std::byte> expected,
                                             std::span<const std::byte> payload) {
  rdma::NodeId owner;
  if (!session_->OwnedHere(table, key, &owner)) return UpdateIfRemote(table, key, expected, payload);
  GetRequest request{.table = &table,
                     .key = key,
                     .out = {writes_.arena().Allocate(expected.size()), expected.size()},
                     .for_update = true,
                     .up_to_end = true};
  return PutRowIf(LoadDirect(&request), request, expected, payload);
}

coro::Task<StatusOr<bool>> Access::UpdateIfRemote(const Table& table, Key key, std::span<const std::byte> expected,
                                                  std::span<const std::byte> payload) {
  GetRequest request{.table = &table,
                     .key = key,
                     .out = {writes_.arena().Allocate(expected.size()), expected.size()},
                     .for_update = true,
                     .up_to_end = true};
  Status status = co_await LoadRemote(&request);
  co_return PutRowIf(std::move(status), request, expected, payload);
}

Status Access::PutSum(Status found, const GetRequest& request, const payload::Sum& addition, std::byte* sum) {
  GANNET_RETURN_IF_ERROR(found);
  if (!addition.add(request.out.data(), addition.delta.data())) {
    return absl::OutOfRangeError(absl::StrCat(NameOfRow(*request.table, request.key),
                                              ": the sum of the number at byte ", OffsetOf(request),
                                              " does not fit it"));
  }
  GANNET_RETURN_IF_ERROR(writes_.Update(request.handle, request.out, OffsetOf(request)));
  if (sum != nullptr) std::memcpy(sum, request.out.data(), request.out.size());
  return absl::OkStatus();
}

GetRequest Access::RequestForNumber(const Table& table, Key key, uint32_t offset, size_t bytes) {
  return {.table = &table,
          .key = key,
          .out = {writes_.arena().Allocate(bytes), bytes},
          .offset = offset,
          .for_update = true};
}

coro::Async<Status> Access::Add(const Table& table, Key key, uint32_t offset, const payload::Sum& addition,
                                std::byte* sum) {
  rdma::NodeId owner;
  if (!session_->OwnedHere(table, key, &owner)) return AddRemote(table, key, offset, addition, sum);
  GetRequest request = RequestForNumber(table, key, offset, addition.number_bytes);
  return PutSum(LoadDirect(&request), request, addition, sum);
}

coro::Task<Status> Access::AddRemote(const Table& table, Key key, uint32_t offset, payload::Sum addition,
                                     std::byte* sum) {
  GetRequest request = RequestForNumber(table, key, offset, addition.number_bytes);
  Status status = co_await LoadRemote(&request);
  co_return PutSum(std::move(status), request, addition, sum);
}

}  // namespace gannet::txn
