// IndexRights: who may change the nodes of an index. Of kinds that clients can change (IndexTraits::client_writes) each
// table chooses; all other kinds are kOwnerOnly.
#pragma once

#include <cstdint>

namespace gannet::index {

enum class IndexRights : uint8_t {
  // All that clients READ lies in the part of the owner's heap where they can do nothing else (rdma/heap_parts.h). A
  // client changes the index by calls.
  kOwnerOnly,
  // Nodes lie in the writable part. Clients lock and change them by verbs, and borrow memory for new ones.
  kClients,
};

}  // namespace gannet::index
