#include "rdma/global_address.h"

#include "absl/strings/str_format.h"

namespace gannet::rdma {

std::string GlobalAddress::ToString() const {
  return absl::StrFormat("%d:0x%x", node(), offset());
}

}  // namespace gannet::rdma
