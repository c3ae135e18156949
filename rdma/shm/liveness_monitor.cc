#include "rdma/shm/liveness_monitor.h"

#include <chrono>
#include <utility>

#include "rdma/shm/process_identity.h"
#include "rdma/shm/shm_node.h"
#include "rdma/shm/torn_lines.h"

namespace gannet::rdma::shm {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(10);

}  // namespace

bool HolderIsRunning(const NodeControl& control) {
  return IsRunning({control.pid.load(), control.start_time.load()});
}

LivenessMonitor::LivenessMonitor(std::shared_ptr<Region> region)
    : region_(std::move(region)), thread_([this] { Loop(); }) {}

LivenessMonitor::~LivenessMonitor() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_one();
  thread_.join();
}

void LivenessMonitor::Loop() {
  const ProcessIdentity self = ThisProcess();
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, kInterval, [this] { return stop_; })) {
    for (int i = 0; i < region_->num_nodes(); ++i) {
      const auto node = static_cast<NodeId>(i);
      const NodeControl& control = region_->control(node);
      // Load the word first: if the node's holder changes after that, the CAS in EndAttachment fails.
      const uint64_t word = control.word.load();
      if (PhaseOf(word) != NodePhase::kAttached || control.pid.load() == self.pid) continue;
      if (!HolderIsRunning(control)) Bury(node, word);
    }
  }
}

// Repairs the torn lines before the node is declared dead. If the lock is taken now, the next round tries again.
void LivenessMonitor::Bury(NodeId node, uint64_t word) {
  if (HasTornLines(*region_, node)) {
    const auto lock = Region::AttachLock::TryTake(region_.get());
    if (lock == nullptr || region_->control(node).word.load() != word) return;
    FinishTornLines(region_.get(), node);
  }
  EndAttachment(region_.get(), node, word, NodePhase::kDead);
}

}  // namespace gannet::rdma::shm
