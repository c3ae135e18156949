#include "txn/access/point_access.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "txn/access/access_internal.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

// True if the bytes of `key` may lie in [begin, end), which is written while they are used.
bool LiesIn(const Key& key, const void* begin, const void* end) {
  if (key.kind() == index::KeyKind::kInteger) [[likely]]
    return false;
  const std::less<const void*> before;
  const char* const from = key.bytes().data();
  return before(from, end) && before(begin, from + key.size());
}

bool LiesIn(const Key& key, std::span<const std::byte> out) {
  return LiesIn(key, out.data(), out.data() + out.size());
}

// True if the key of a request may lie in the output of a request. All outputs are treated as one piece of memory.
bool KeysLieInOutputs(std::span<const GetRequest> requests) {
  const std::less<const std::byte*> before;
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  for (const GetRequest& request : requests) {
    if (request.out.empty()) continue;
    const std::byte* const last = request.out.data() + request.out.size();
    if (begin == nullptr || before(request.out.data(), begin)) begin = request.out.data();
    if (end == nullptr || before(end, last)) end = last;
  }
  return std::ranges::any_of(requests, [&](const GetRequest& request) { return LiesIn(request.key, begin, end); });
}

const Status& StatusOf(const Status& status) {
  return status;
}
template <class Value>
const Status& StatusOf(const StatusOr<Value>& result) {
  return result.status();
}

// True if a write by its key may have met something else than the transaction has read before.
template <class Result>
bool MayContradict(const Result& result) {
  return !result.ok() && (absl::IsNotFound(StatusOf(result)) || absl::IsAlreadyExists(StatusOf(result)));
}

template <class Result>
coro::Task<Result> Judged(const PointAccess::Judge& judge, Result result) {
  coro::Task<Status> judging = judge(StatusOf(result));
  Status judged = co_await judging;
  co_return judged;
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// Operations on one row.

template <class Result, PointAccess::Serve kServe, class Then>
coro::Async<Result> PointAccess::WithRow(GetRequest request, Then then) {
  rdma::NodeId owner;
  if (!session_->OwnedHere(*request.table, request.key, &owner)) [[unlikely]]
    return WithRemoteRow<Result, kServe>(std::move(request), std::move(then));
  Status found;
  do {
    found = ResultOf(&request, local_.Get(&request));
  } while (kServe == Serve::kView && found.ok() && !HasWholeView(&request, &writes_.arena()));
  Result result = then(std::move(found), request);
  if (kServe == Serve::kWrite && MayContradict(result)) [[unlikely]]
    return Judged(judge_, std::move(result));
  return result;
}

template <class Result, PointAccess::Serve kServe, class Then>
coro::Task<Result> PointAccess::WithRemoteRow(GetRequest request, Then then) {
  Status found;
  do {
    Status served = co_await remote_.Get(&request);
    found = ResultOf(&request, std::move(served));
  } while (kServe == Serve::kView && found.ok() && !HasWholeView(&request, &writes_.arena()));
  Result result = then(std::move(found), request);
  if (kServe != Serve::kWrite || !MayContradict(result)) [[likely]]
    co_return result;
  coro::Task<Result> judging = Judged(judge_, std::move(result));
  co_return co_await judging;
}

coro::Async<Status> PointAccess::Get(const Table& table, Key key, std::span<std::byte> out, uint32_t offset) {
  if (LiesIn(key, out)) [[unlikely]]
    key = writes_.arena().Keep(key);
  return WithRow<Status>({.table = &table, .key = key, .out = out, .offset = offset},
                         [](Status found, const GetRequest&) { return found; });
}

coro::Async<StatusOr<RecordHandle>> PointAccess::GetForUpdate(const Table& table, Key key, std::span<std::byte> out,
                                                              uint32_t offset) {
  using Handle = StatusOr<RecordHandle>;
  if (LiesIn(key, out)) [[unlikely]]
    key = writes_.arena().Keep(key);
  return WithRow<Handle>({.table = &table, .key = key, .out = out, .offset = offset, .for_update = true},
                         [](Status found, const GetRequest& request) {
                           return found.ok() ? Handle(request.handle) : Handle(std::move(found));
                         });
}

coro::Async<StatusOr<std::span<const std::byte>>> PointAccess::GetView(const Table& table, Key key) {
  using View = StatusOr<std::span<const std::byte>>;
  return WithRow<View, Serve::kView>(
      RequestForView(table, key, &writes_.arena()), [](Status found, const GetRequest& request) {
        return found.ok() ? View(request.out.first(request.payload_bytes)) : View(std::move(found));
      });
}

coro::Async<StatusOr<bool>> PointAccess::Exists(const Table& table, Key key) {
  return WithRow<StatusOr<bool>>({.table = &table, .key = key, .out = {}, .offset = 0},
                                 [](Status found, const GetRequest&) -> StatusOr<bool> {
                                   if (found.ok()) return true;
                                   if (absl::IsNotFound(found)) return false;
                                   return found;
                                 });
}

coro::Async<Status> PointAccess::Update(const Table& table, Key key, std::span<const std::byte> data,
                                        PayloadPart part) {
  return WithRow<Status, Serve::kWrite>(RequestForHandle(table, key),
                                        [this, data, part](Status found, const GetRequest& request) {
                                          return found.ok() ? writes_.Update(request.handle, data, part) : found;
                                        });
}

// If the key is absent, the transaction depends on that: another one that inserts it is a conflict for this one.
coro::Async<Status> PointAccess::Upsert(const Table& table, Key key, std::span<const std::byte> payload) {
  return WithRow<Status, Serve::kWrite>(
      RequestForHandle(table, key), [this, payload](Status found, const GetRequest& request) {
        if (absl::IsNotFound(found)) return writes_.Insert(*request.table, request.key, payload);
        return found.ok() ? writes_.Update(request.handle, payload, PayloadPart::Whole()) : found;
      });
}

coro::Async<StatusOr<bool>> PointAccess::UpdateIf(const Table& table, Key key, std::span<const std::byte> expected,
                                                  std::span<const std::byte> payload) {
  const auto put = [this, expected, payload](const Status& found, const GetRequest& request) -> StatusOr<bool> {
    GANNET_RETURN_IF_ERROR(found);
    GANNET_RETURN_IF_ERROR(CheckFits(*request.table, expected.size()));
    GANNET_RETURN_IF_ERROR(CheckFits(*request.table, payload.size()));
    if (request.payload_bytes != expected.size() || !std::ranges::equal(request.out, expected)) return false;
    GANNET_RETURN_IF_ERROR(writes_.Update(request.handle, payload, PayloadPart::Whole()));
    return true;
  };
  return WithRow<StatusOr<bool>, Serve::kWrite>({.table = &table,
                                                 .key = key,
                                                 .out = {writes_.arena().Allocate(expected.size()), expected.size()},
                                                 .for_update = true,
                                                 .up_to_end = true},
                                                put);
}

coro::Async<Status> PointAccess::Add(const Table& table, Key key, uint32_t offset, const payload::Sum& addition,
                                     std::byte* sum) {
  const auto put = [this, addition, sum](const Status& found, const GetRequest& request) -> Status {
    GANNET_RETURN_IF_ERROR(found);
    if (!addition.add(request.out.data(), addition.delta.data())) {
      return absl::OutOfRangeError(absl::StrCat(NameOfRow(*request.table, request.key),
                                                ": the sum of the number at byte ", OffsetOf(request),
                                                " does not fit it"));
    }
    GANNET_RETURN_IF_ERROR(writes_.Update(request.handle, request.out, OffsetOf(request)));
    if (sum != nullptr) std::memcpy(sum, request.out.data(), request.out.size());
    return absl::OkStatus();
  };
  const size_t bytes = addition.number_bytes;
  return WithRow<Status, Serve::kWrite>({.table = &table,
                                         .key = key,
                                         .out = {writes_.arena().Allocate(bytes), bytes},
                                         .offset = offset,
                                         .for_update = true},
                                        put);
}

coro::Async<Status> PointAccess::Remove(const Table& table, Key key) {
  return WithRow<Status, Serve::kWrite>(RequestForHandle(table, key), [this](Status found, const GetRequest& request) {
    return found.ok() ? writes_.Remove(request.handle) : found;
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Many rows at once.

[[gnu::cold]] Status PointAccess::Failed(Status status, std::span<GetRequest> requests) {
  for (GetRequest& request : requests) request.status = status;
  return failure_.Note(std::move(status));
}

coro::Async<Status> PointAccess::GetMany(std::span<GetRequest> requests) {
  bool all_here = true;
  bool integer_keys = true;
  for (GetRequest& request : requests) {
    if (request.table == nullptr) [[unlikely]]
      return Failed(absl::InvalidArgumentError("GetMany: GetRequest::table is null"), requests);
    rdma::NodeId owner;
    all_here = all_here && session_->OwnedHere(*request.table, request.key, &owner);
    integer_keys = integer_keys && request.key.kind() == index::KeyKind::kInteger;
    request.status = Status(absl::StatusCode::kAborted, "");
    request.payload_bytes = 0;
    request.handle = {};
  }
  if (!integer_keys && KeysLieInOutputs(requests)) [[unlikely]]
    return GetManyApart(requests, all_here);
  return ServeMany(requests, all_here);
}

coro::Async<Status> PointAccess::ServeMany(std::span<GetRequest> requests, bool all_here) {
  if (!all_here) [[unlikely]]
    return ServeManyOfAll(requests);
  Status status = local_.GetMany(requests);
  if (!status.ok()) [[unlikely]]
    return Failed(std::move(status), requests);
  return status;
}

coro::Task<Status> PointAccess::ServeManyOfAll(std::span<GetRequest> requests) {
  Status status = co_await batches_.GetMany(requests);
  if (!status.ok()) co_return Failed(std::move(status), requests);
  co_return status;
}

// Uses copies of the keys. The copies, too, may lie between two outputs, and are not checked again.
coro::Task<Status> PointAccess::GetManyApart(std::span<GetRequest> requests, bool all_here) {
  std::vector<GetRequest> copies(requests.begin(), requests.end());
  for (GetRequest& copy : copies) copy.key = writes_.arena().Keep(copy.key);
  coro::Async<Status> serving = ServeMany(copies, all_here);
  Status status = co_await serving;
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].status = std::move(copies[i].status);
    requests[i].payload_bytes = copies[i].payload_bytes;
    requests[i].handle = copies[i].handle;
  }
  co_return status;
}

}  // namespace gannet::txn
