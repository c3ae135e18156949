// PointAccess: the operations of a transaction on rows by their keys.
//
// Each operation reads by requests, and then writes or returns what it read. A row of this node is read without a
// coroutine. An operation that returns neither Ok nor a result (failure.h) has noted the failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "base/coro/async.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "txn/access/batch_reader.h"
#include "txn/access/failure.h"
#include "txn/access/local_reader.h"
#include "txn/access/remote_reader.h"
#include "txn/access/write_buffer.h"
#include "txn/store/requests.h"

namespace gannet::txn {

struct SessionState;

// Used by the session's thread, for one operation at a time.
class PointAccess {
 public:
  // All must outlive this.
  PointAccess(SessionState* session, WriteBuffer* writes, Failure* failure, LocalReader* local, RemoteReader* remote,
              BatchReader* batches)
      : session_(session), writes_(*writes), failure_(*failure), local_(*local), remote_(*remote), batches_(*batches) {}
  PointAccess(const PointAccess&) = delete;
  PointAccess& operator=(const PointAccess&) = delete;

  // These do what those of Transaction do. An offset of GetRequest::kWhole means the whole payload.
  coro::Async<Status> Get(const Table& table, Key key, std::span<std::byte> out, uint32_t offset);
  coro::Async<Status> GetMany(std::span<GetRequest> requests);
  coro::Async<StatusOr<RecordHandle>> GetForUpdate(const Table& table, Key key, std::span<std::byte> out,
                                                   uint32_t offset);
  coro::Async<StatusOr<std::span<const std::byte>>> GetView(const Table& table, Key key);
  coro::Async<StatusOr<bool>> Exists(const Table& table, Key key);
  coro::Async<Status> Update(const Table& table, Key key, std::span<const std::byte> data, PayloadPart part);
  coro::Async<Status> Upsert(const Table& table, Key key, std::span<const std::byte> payload);
  coro::Async<StatusOr<bool>> UpdateIf(const Table& table, Key key, std::span<const std::byte> expected,
                                       std::span<const std::byte> payload);
  coro::Async<Status> Add(const Table& table, Key key, uint32_t offset, const payload::Sum& addition, std::byte* sum);
  coro::Async<Status> Remove(const Table& table, Key key);

  // Judges what a write by its key met, NotFound or AlreadyExists: returns that, or the failure if it contradicts what
  // the transaction has read before. Set once, before the first operation.
  using Judge = std::function<coro::Task<Status>(Status met)>;
  void SetJudge(Judge judge) { judge_ = std::move(judge); }

 private:
  enum class Serve : uint8_t {
    kRead,
    kView,  // a payload that is longer than the request's room is read again, into a larger room
    kWrite,
  };
  // Serves `request`, and returns then(status of the read, request): at once, if the row is this node's.
  template <class Result, Serve kServe = Serve::kRead, class Then>
  coro::Async<Result> WithRow(GetRequest request, Then then);
  template <class Result, Serve kServe, class Then>
  coro::Task<Result> WithRemoteRow(GetRequest request, Then then);
  // Returns the result of an operation whose one request a reader served with `served`.
  Status ResultOf(GetRequest* request, Status served) {
    return served.ok() ? std::move(request->status) : failure_.Note(std::move(served));
  }

  coro::Async<Status> ServeMany(std::span<GetRequest> requests, bool all_here);
  coro::Task<Status> ServeManyOfAll(std::span<GetRequest> requests);
  coro::Task<Status> GetManyApart(std::span<GetRequest> requests, bool all_here);
  // Notes a failure, which becomes the status of all requests, too.
  [[gnu::cold]] Status Failed(Status status, std::span<GetRequest> requests);

  SessionState* const session_;
  WriteBuffer& writes_;
  Failure& failure_;
  LocalReader& local_;
  RemoteReader& remote_;
  BatchReader& batches_;
  Judge judge_;
};

}  // namespace gannet::txn
