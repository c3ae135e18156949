#include "rdma/shm/shm_fabric.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "rdma/shm/liveness_monitor.h"
#include "rdma/shm/process_identity.h"
#include "rdma/shm/region.h"
#include "rdma/shm/shm_node.h"
#include "rdma/shm/torn_lines.h"

namespace gannet::rdma {
namespace shm {
namespace {

constexpr Capabilities kCapabilities{.line_consistent = true, .cpu_coherent_atomics = true, .completes_at_once = true};

class MappedFabric final : public ShmFabric {
 public:
  explicit MappedFabric(std::shared_ptr<Region> region) : region_(std::move(region)) {
    if (region_->in_file()) monitor_.emplace(region_);
  }

  const Capabilities& capabilities() const override { return kCapabilities; }
  int num_nodes() const override { return region_->num_nodes(); }
  StatusOr<std::unique_ptr<Node>> Attach(NodeId id) override;
  bool Alive(NodeId id) const override {
    return id < num_nodes() && PhaseOf(region_->control(id).word.load()) == NodePhase::kAttached;
  }
  Status WaitForAll(absl::Duration timeout) override;
  uint64_t Attachments(NodeId id) const override {
    return id < num_nodes() ? IncarnationOf(region_->control(id).word.load()) : 0;
  }
  void Kill(NodeId id) override;

 private:
  std::string MissingNodes() const;

  std::shared_ptr<Region> region_;
  std::optional<LivenessMonitor> monitor_;
};

StatusOr<std::unique_ptr<Node>> MappedFabric::Attach(NodeId id) {
  if (id >= num_nodes()) {
    return absl::InvalidArgumentError(absl::StrCat("node ", id, ": the cluster has ", num_nodes(), " nodes"));
  }
  const auto lock = Region::AttachLock::Take(region_.get());
  if (!lock.ok()) return lock.status();
  NodeControl& control = region_->control(id);
  uint64_t word = control.word.load();
  const bool holder_runs = HolderIsRunning(control);
  if (PhaseOf(word) == NodePhase::kAttached) {
    if (holder_runs) {
      return absl::FailedPreconditionError(
          absl::StrCat("node ", id, " is taken by process ", control.pid.load(), ", which is alive"));
    }
    FinishTornLines(region_.get(), id);
    EndAttachment(region_.get(), id, word, NodePhase::kDead);
    word = control.word.load();
  }
  // Threads of a dead process do not sleep any more; those of a living one decrement the count themselves.
  if (!holder_runs) control.sleepers.store(0);
  if (IncarnationOf(word) > 0) GANNET_RETURN_IF_ERROR(region_->Clear(id));
  const ProcessIdentity self = ThisProcess();
  control.pid.store(self.pid);
  control.start_time.store(self.start_time);
  const uint64_t attached = NodeWord(IncarnationOf(word) + 1, NodePhase::kAttached);
  control.word.store(attached);
  return std::make_unique<ShmNode>(region_, id, attached);
}

Status MappedFabric::WaitForAll(absl::Duration timeout) {
  const uint64_t deadline = NowNanos() + static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(timeout)));
  std::string missing = MissingNodes();
  while (!missing.empty()) {
    if (NowNanos() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("after ", absl::FormatDuration(timeout), " these nodes have not attached:", missing));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    missing = MissingNodes();
  }
  return absl::OkStatus();
}

std::string MappedFabric::MissingNodes() const {
  std::string missing;
  for (int i = 0; i < num_nodes(); ++i) {
    if (!Alive(static_cast<NodeId>(i))) absl::StrAppend(&missing, " ", i);
  }
  return missing;
}

void MappedFabric::Kill(NodeId id) {
  const uint64_t word = region_->control(id).word.load();
  if (PhaseOf(word) == NodePhase::kAttached) EndAttachment(region_.get(), id, word, NodePhase::kDead);
}

StatusOr<std::unique_ptr<ShmFabric>> Wrap(StatusOr<std::shared_ptr<Region>> region) {
  if (!region.ok()) return region.status();
  return std::make_unique<MappedFabric>(*std::move(region));
}

}  // namespace
}  // namespace shm

StatusOr<std::unique_ptr<ShmFabric>> ShmFabric::InProcess(const ShmOptions& options) {
  return shm::Wrap(shm::Region::Anonymous(options));
}

StatusOr<std::unique_ptr<ShmFabric>> ShmFabric::Create(const std::string& path, const ShmOptions& options) {
  return shm::Wrap(shm::Region::CreateFile(path, options));
}

StatusOr<std::unique_ptr<ShmFabric>> ShmFabric::Join(const std::string& path) {
  return shm::Wrap(shm::Region::OpenFile(path));
}

StatusOr<std::unique_ptr<ShmFabric>> ShmFabric::Share(const std::string& path, const ShmOptions& options) {
  return shm::Wrap(shm::Region::ShareFile(path, options));
}

}  // namespace gannet::rdma
