// Room for the largest message, made when it is first asked for and never cleared: of most messages' room one page is
// touched.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "rdma/fabric.h"

namespace gannet::rdma {

class MessageBuffer {
 public:
  // kMaxMessageBytes; what they hold is whatever was written last, or nothing in particular.
  std::span<std::byte> room() {
    if (bytes_ == nullptr) bytes_ = std::make_unique_for_overwrite<std::byte[]>(kMaxMessageBytes);
    return {bytes_.get(), kMaxMessageBytes};
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace gannet::rdma
