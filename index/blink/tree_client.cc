#include "index/blink/tree_client.h"

#include <array>

#include "index/shared_leaf/leaf/schema_wire.h"
#include "rdma/rpc.h"

namespace gannet::index::blink {

template <class Keys>
coro::Task<StatusOr<typename TreeClient<Keys>::Schema>> TreeClient<Keys>::Describe() {
  std::array<std::byte, 8> request;
  std::array<std::byte, 64> response;
  rdma::WireWriter writer(request);
  writer.PutU16(this->id_);
  const StatusOr<size_t> bytes =
      co_await this->channel_->Call(this->owner_, describe_method(), writer.written(), response, this->call_timeout_);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(response).first(*bytes));
  const rdma::GlobalAddress root(this->owner_, reader.GetU64());
  StatusOr<Schema> schema = shared_leaf::GetSchema<Keys>(reader);
  GANNET_CO_RETURN_IF_ERROR(reader.Finish());
  root_ = root;
  co_return schema;
}

template class TreeClient<shared_leaf::IntegerKeys>;
template class TreeClient<shared_leaf::ByteKeys>;

}  // namespace gannet::index::blink
