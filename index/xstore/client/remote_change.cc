// XStore at a client: changes, which the owner carries out.
#include "index/xstore/client/remote_of.h"

namespace gannet::index::xstore {

template <int W>
coro::Task<StatusOr<Change>> RemoteOf<W>::Insert(Key key, rdma::GlobalAddress record) {
  return CallChange(kInsert, Encode<W>(key), record);
}

template <int W>
coro::Task<StatusOr<Change>> RemoteOf<W>::Remove(Key key, rdma::GlobalAddress record) {
  return CallChange(kRemove, Encode<W>(key), record);
}

template <int W>
coro::Task<StatusOr<Change>> RemoteOf<W>::CallChange(rdma::MethodId method, Words key, rdma::GlobalAddress record) {
  PooledSession session(this);
  FollowCache();
  rdma::WireWriter writer(session->request);
  writer.PutU16(id_);
  HintFor(key).Put(writer);
  PutKey(writer, key);
  writer.PutAddress(record);
  const StatusOr<size_t> bytes =
      co_await channel_->Call(owner_, method, writer.written(), session->response.room(), call_timeout_);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(session->response.room().first(*bytes));
  Change change;
  if (!GetChange(reader, &change) || !reader.Finish().ok()) {
    co_return absl::DataLossError("the owner sent a malformed change");
  }
  co_return std::move(change);
}

#define GANNET_INSTANTIATE(W)                                                          \
  template coro::Task<StatusOr<Change>> RemoteOf<W>::Insert(Key, rdma::GlobalAddress); \
  template coro::Task<StatusOr<Change>> RemoteOf<W>::Remove(Key, rdma::GlobalAddress);
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
