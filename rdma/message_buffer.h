// A buffer for the largest message. It is allocated at its first use and never cleared, so most messages touch only one
// page of it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "rdma/fabric.h"

namespace gannet::rdma {

class MessageBuffer {
 public:
  // Returns kMaxMessageBytes bytes. Their content is undefined, or what was written last.
  std::span<std::byte> room() {
    if (bytes_ == nullptr) bytes_ = std::make_unique_for_overwrite<std::byte[]>(kMaxMessageBytes);
    return {bytes_.get(), kMaxMessageBytes};
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace gannet::rdma
