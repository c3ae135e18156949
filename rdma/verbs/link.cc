#include "rdma/verbs/link.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace gannet::rdma::verbs {
namespace {

// Sizes of inline data in a work request that are tried, until the NIC accepts one.
constexpr std::array<uint32_t, 4> kInlineSizes{192, 96, 32, 0};

}  // namespace

Link::~Link() {
  GANNET_CHECK(id_ == nullptr, "link %d to node %d is destroyed while it has a queue pair", number_, peer_);
}

Status Link::MakeQueuePair(ibv_cq* cq) {
  ibv_qp_init_attr attributes{};
  for (const uint32_t size : kInlineSizes) {
    attributes = {};
    attributes.send_cq = attributes.recv_cq = cq;
    attributes.cap = {.max_send_wr = kSendDepth,
                      .max_recv_wr = kWindow,
                      .max_send_sge = 1,
                      .max_recv_sge = 1,
                      .max_inline_data = size};
    attributes.qp_type = IBV_QPT_RC;
    if (rdma_create_qp(id_, core_->pd(), &attributes) == 0) break;
    if (size == 0) return SystemError("cannot make a queue pair");
  }
  max_inline_ = attributes.cap.max_inline_data;
  buffers_.resize(size_t{kWindow} * kFragmentBytes);
  StatusOr<MemoryRegion> region = Register(core_->pd(), buffers_.data(), buffers_.size(), IBV_ACCESS_LOCAL_WRITE);
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  for (uint32_t i = 0; i < kWindow; ++i) GANNET_RETURN_IF_ERROR(PostReceive(i));
  return absl::OkStatus();
}

Status Link::PostReceive(uint32_t index) {
  ibv_sge where{.addr = reinterpret_cast<uint64_t>(buffer(index)), .length = kFragmentBytes, .lkey = region_->lkey};
  ibv_recv_wr request{};
  request.wr_id = WorkId{.is_receive = true, .link = number_, .item = index}.Encode();
  request.sg_list = &where;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (const int error = ibv_post_recv(qp(), &request, &bad); error != 0) {
    return absl::ErrnoToStatus(error, "cannot post a receive buffer");
  }
  return absl::OkStatus();
}

void Link::GoDown(std::string why) {
  if (state() == LinkState::kDown) return;
  why_ = std::move(why);
  state_.store(LinkState::kDown, std::memory_order_release);
}

}  // namespace gannet::rdma::verbs
