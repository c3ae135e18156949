// One end of a queue pair: of a channel, or of the node that serves it.
//
//   kConnecting --> kUp --> kDown
//        '------------------^
//
// The connector's thread creates it, changes its state and destroys its queue pair (Connector::Release). Its owner
// posts to it, and only while it is kUp.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rdma/verbs/message.h"
#include "rdma/verbs/node_core.h"

namespace gannet::rdma::verbs {

// Content of a work request's id: its link and its number.
struct WorkId {
  bool is_receive = false;
  uint32_t link = 0;  // Link::number, 31 bits
  uint32_t item = 0;  // receive: the buffer; else the owner's sequence number

  uint64_t Encode() const { return uint64_t{is_receive} << 63 | uint64_t{link} << 32 | item; }
  static WorkId Decode(uint64_t id) {
    return {.is_receive = (id >> 63) != 0,
            .link = static_cast<uint32_t>(id >> 32) & 0x7fffffffu,
            .item = static_cast<uint32_t>(id)};
  }
};

enum class LinkState : uint8_t { kConnecting, kUp, kDown };

inline constexpr uint32_t kSendDepth = 128;  // work requests that an owner may have posted

class Link {
 public:
  Link(std::shared_ptr<NodeCore> core, uint32_t number, NodeId peer, uint16_t channel)
      : core_(std::move(core)), number_(number), peer_(peer), channel_(channel) {}
  ~Link();

  LinkState state() const { return state_.load(std::memory_order_acquire); }
  // Valid after kDown.
  const std::string& why() const { return why_; }
  uint32_t number() const { return number_; }
  NodeId peer() const { return peer_; }
  uint16_t channel() const { return channel_; }  // of the client's end
  ibv_qp* qp() const { return id_->qp; }
  uint32_t max_inline() const { return max_inline_; }

  // A received fragment; PostReceive gives its buffer back to the NIC.
  const std::byte* buffer(uint32_t index) const { return buffers_.data() + size_t{index} * kFragmentBytes; }
  Status PostReceive(uint32_t index);

  // The peer broke the rules: the connector ends the link soon. For the serving end; thread-safe.
  void Cut() { cut_.store(true, std::memory_order_release); }
  bool cut() const { return cut_.load(std::memory_order_acquire); }

  // Keeps memory that the NIC may still use until the queue pair is destroyed.
  void KeepToTheEnd(std::shared_ptr<void> what) { kept_ = std::move(what); }

 private:
  friend class Connector;

  // The new queue pair has all its receive buffers posted.
  Status MakeQueuePair(ibv_cq* cq);
  void GoUp() { state_.store(LinkState::kUp, std::memory_order_release); }
  void GoDown(std::string why);

  std::shared_ptr<NodeCore> core_;
  const uint32_t number_;
  const NodeId peer_;
  const uint16_t channel_;
  std::atomic<LinkState> state_ = LinkState::kConnecting;
  std::atomic<bool> cut_ = false;
  std::string why_;
  rdma_cm_id* id_ = nullptr;
  uint32_t max_inline_ = 0;
  uint64_t session_ = 0;      // the control session that admitted the serving end
  uint64_t deadline_ns_ = 0;  // while connecting
  std::shared_ptr<void> kept_;
  std::vector<std::byte> buffers_;
  MemoryRegion region_;
};

}  // namespace gannet::rdma::verbs
