// The calls of a hash index's clients to its owner, and their encoding. Everything read from a peer is checked.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "index/hash/geometry.h"
#include "index/index.h"
#include "index/service.h"
#include "rdma/rpc.h"

namespace gannet::index {

// Registers the handlers on service->node(); once per node, before it serves. They serve all present and future hash
// indexes of `service`, which must outlive the node's server threads.
void RegisterHashMethods(IndexService* service);

namespace hash {

// Every request begins with the index number. All but kDescribe continue with the key (key_wire.h); kInsert and kRemove
// then with the record's address.
inline constexpr rdma::MethodId kDescribe = kHashMethods;    // -> Description
inline constexpr rdma::MethodId kFind = kHashMethods + 1;    // -> FindResult
inline constexpr rdma::MethodId kInsert = kHashMethods + 2;  // -> Change
inline constexpr rdma::MethodId kRemove = kHashMethods + 3;  // -> Change
// Bytes of a request without its key.
inline constexpr size_t kRequestBytes = 16;
inline constexpr size_t kMaxResponseBytes = 256;

struct Description {
  Geometry geometry;
  KeyedHash::Seed seed{};
  KeyKind key_kind = KeyKind::kInteger;
  size_t max_key_bytes = 0;
};

void PutDescription(rdma::WireWriter* writer, const Description& description);
void PutFindResult(rdma::WireWriter* writer, const FindResult& result);

// DataLoss if the response is not what `owner` should have sent.
StatusOr<Description> GetDescription(std::span<const std::byte> response);
StatusOr<FindResult> GetFindResult(std::span<const std::byte> response, rdma::NodeId owner);
StatusOr<Change> GetChange(std::span<const std::byte> response, rdma::NodeId owner);

}  // namespace hash
}  // namespace gannet::index
