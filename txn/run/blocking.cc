#include "txn/run/blocking.h"

#include <utility>

#include "base/coro/worker.h"

namespace gannet::txn {

template <class T>
T Finish(coro::Worker* worker, coro::Task<T> task) {
  return worker->BlockOn(std::move(task));
}

template Status Finish(coro::Worker* worker, coro::Task<Status> task);
template StatusOr<bool> Finish(coro::Worker* worker, coro::Task<StatusOr<bool>> task);
template StatusOr<RecordHandle> Finish(coro::Worker* worker, coro::Task<StatusOr<RecordHandle>> task);
template StatusOr<RowBy> Finish(coro::Worker* worker, coro::Task<StatusOr<RowBy>> task);
template StatusOr<std::span<const std::byte>> Finish(coro::Worker* worker,
                                                     coro::Task<StatusOr<std::span<const std::byte>>> task);

}  // namespace gannet::txn
