#include "rdma/shm/shm_node.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma/shm/futex.h"
#include "rdma/shm/shm_channel.h"

namespace gannet::rdma::shm {
namespace {

constexpr int kMaxServerThreads = 64;

}  // namespace

bool EndAttachment(Region* region, NodeId node, uint64_t node_word, NodePhase phase) {
  NodeControl& control = region->control(node);
  if (!control.word.compare_exchange_strong(node_word, NodeWord(IncarnationOf(node_word), phase))) return false;
  control.doorbell.fetch_add(1);
  FutexWakeAll(&control.doorbell);
  return true;
}

ShmNode::ShmNode(std::shared_ptr<Region> region, NodeId id, uint64_t node_word)
    : region_(std::move(region)), id_(id), node_word_(node_word), server_(region_, id, node_word) {}

ShmNode::~ShmNode() {
  Shutdown();
}

StatusOr<std::unique_ptr<Channel>> ShmNode::OpenChannel() {
  const int number = numbers_->Take();
  if (number < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("node ", id_, " has given out all of its ", kMaxShmChannelsPerNode, " channels"));
  }
  return std::make_unique<ShmChannel>(region_, numbers_, id_, static_cast<uint16_t>(number), node_word_);
}

void ShmNode::Handle(MethodId method, Handler handler) {
  server_.Handle(method, std::move(handler));
}

uint64_t ShmNode::ConnectionTo(NodeId peer) const {
  if (peer >= region_->num_nodes()) return 0;
  const uint64_t word = region_->control(peer).word.load(std::memory_order_acquire);
  return PhaseOf(word) == NodePhase::kAttached ? word : 0;
}

Status ShmNode::Serve(int threads) {
  if (threads < 1 || threads > kMaxServerThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("a node has 1 to ", kMaxServerThreads, " server threads, not ", threads));
  }
  if (server_.started()) return absl::FailedPreconditionError(absl::StrCat("node ", id_, " serves already"));
  server_.Start(threads);
  return absl::OkStatus();
}

void ShmNode::Shutdown() {
  // From here on callers see that the node has left, and fail with Unavailable. False: it was killed, or this is the
  // second call.
  (void)EndAttachment(region_.get(), id_, node_word_, NodePhase::kLeft);
  server_.Join();
}

}  // namespace gannet::rdma::shm
