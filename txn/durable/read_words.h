// Words of another node, as one READ.
#pragma once

#include <cstdint>
#include <span>

#include "base/coro/task.h"
#include "base/status.h"
#include "rdma/fabric.h"

namespace gannet::txn {

inline coro::Task<Status> ReadWords(rdma::Channel* channel, rdma::GlobalAddress from, std::span<uint64_t> into) {
  co_return co_await channel->Read(from, into.data(), static_cast<uint32_t>(into.size_bytes()));
}

}  // namespace gannet::txn
