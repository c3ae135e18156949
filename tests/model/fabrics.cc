#include "tests/model/fabrics.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/coro/task.h"
#include "base/random.h"
#include "base/thread.h"
#include "rdma/relay.h"
#include "rdma/shm/shm_fabric.h"

namespace gannet::model {
namespace {

using rdma::Operation;
using rdma::Verb;

constexpr std::array<const char*, kFabricKinds> kNames = {
    "shm", "shm-adversarial", "shm-nic-atomics", "shm-torn", "shm-torn-adversarial", "shm-lossy", "shm-lossy-torn",
    "sim", "sim-slow",        "sim-lossy"};

constexpr uint32_t kWord = 8;

rdma::Capabilities Lessened(rdma::Capabilities capabilities, const Awkwardness& how) {
  capabilities.line_consistent = capabilities.line_consistent && how.line_consistent;
  capabilities.cpu_coherent_atomics = capabilities.cpu_coherent_atomics && how.cpu_coherent_atomics;
  return capabilities;
}

// Bytes [begin, end) of a verb, as a verb of their own.
Operation Part(const Operation& whole, uint32_t begin, uint32_t end) {
  Operation part = whole;
  part.remote = rdma::GlobalAddress(whole.remote.node(), whole.remote.offset() + begin);
  part.local = static_cast<std::byte*>(whole.local) + begin;
  part.size = end - begin;
  return part;
}

class AwkwardChannel : public rdma::RelayChannel {
 public:
  AwkwardChannel(std::unique_ptr<rdma::Channel> inner, std::byte* memory, const rdma::Capabilities& capabilities,
                 Awkwardness* how)
      : rdma::RelayChannel(std::move(inner), memory, capabilities),
        how_(how),
        random_(Mix64(how->seed) + how->channels.fetch_add(1)) {}

 protected:
  bool Submit(std::span<Operation> operations, rdma::Completion* completion) override {
    // Number of operations of the batch that take effect; the issuer may not learn of it.
    size_t done = operations.size();
    const bool lost = Loses(operations);
    if (lost) done = random_.OneIn(3) ? 0 : random_.OneIn(2) ? operations.size() : random_.Below(operations.size() + 1);
    if (lost && done == 0) {
      completion->status = Lost();
      return true;
    }
    return Complete(Relay(operations.first(done), lost), completion);
  }

  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    const bool lost = call.node != node() && Strikes();
    if (lost && random_.OneIn(2)) {
      completion->status = absl::DeadlineExceededError("a request that the test lost");
      return true;
    }
    return Complete(RelayCall(call, completion, lost), completion);
  }

 private:
  static Status Lost() { return absl::UnavailableError("verbs that the test lost"); }
  bool Strikes() {
    return how_->lose_one_in != 0 && how_->armed.load(std::memory_order_relaxed) && random_.OneIn(how_->lose_one_in);
  }
  bool Loses(std::span<const Operation> operations) {
    return std::ranges::any_of(operations, [this](const Operation& o) { return o.remote.node() != node(); }) &&
           Strikes();
  }

  coro::Task<Status> Relay(std::span<Operation> operations, bool lost) {
    Status status;
    if (how_->line_consistent) {
      status = co_await inner().Post(operations);
    } else {
      for (size_t i = 0; i < operations.size() && status.ok(); ++i) {
        coro::Task<Status> torn = Torn(&operations[i]);
        status = co_await torn;
      }
    }
    if (lost) co_return Lost();
    co_return status;
  }

  coro::Task<Status> PostOne(Operation* operation) {
    const std::span<Operation> one(operation, 1);
    Status status = co_await inner().Post(one);
    co_return status;
  }

  // Runs one verb in pieces that may be as small as a word. A verb that starts with a line's first word accesses that
  // word before and after everything else (fabric.h, 2).
  coro::Task<Status> Torn(Operation* operation) {
    Status status;
    const bool pieces = operation->verb == Verb::kRead || operation->verb == Verb::kWrite;
    if (!pieces || operation->size <= kWord) {
      status = co_await PostOne(operation);
      co_return status;
    }
    const bool guarded = operation->remote.offset() % kLineBytes == 0;
    uint64_t first = 0;
    if (guarded && operation->verb == Verb::kRead) {
      Operation before = Part(*operation, 0, kWord);
      before.local = &first;
      status = co_await PostOne(&before);
      if (!status.ok()) co_return status;
    }
    std::vector<Operation> parts;
    const uint32_t piece = kWord << random_.Below(5);
    for (uint32_t at = guarded ? kWord : 0; at < operation->size;) {
      const uint32_t end = std::min(operation->size, (at / piece + 1) * piece);
      parts.push_back(Part(*operation, at, end));
      at = end;
    }
    std::shuffle(parts.begin(), parts.end(), random_);
    for (Operation& part : parts) {
      if (random_.OneIn(64)) YieldThread();
      status = co_await PostOne(&part);
      if (!status.ok()) co_return status;
    }
    if (!guarded) co_return status;
    Operation last = Part(*operation, 0, kWord);
    status = co_await PostOne(&last);
    if (operation->verb == Verb::kRead) {
      uint64_t after = 0;
      std::memcpy(&after, operation->local, kWord);
      if (after != first || rdma::IsLineBusy(after)) std::memcpy(operation->local, &rdma::kLineBusy, kWord);
    }
    co_return status;
  }

  coro::Task<Status> RelayCall(rdma::CallRequest call, rdma::Completion* completion, bool lost) {
    const StatusOr<size_t> bytes =
        co_await inner().Call(call.node, call.method, call.request, call.response, call.timeout, call.connection);
    if (bytes.ok()) completion->response_bytes = *bytes;
    if (lost) co_return absl::DeadlineExceededError("a response that the test lost");
    co_return bytes.status();
  }

  Awkwardness* how_;
  Random random_;
};

rdma::sim::Faults SimFaults(FabricKind kind) {
  rdma::sim::Faults faults;
  if (kind == FabricKind::kSim) return faults;
  faults.scatter_lines = 0.1;
  faults.preempt = 0.01;
  faults.slow_completion = 0.02;
  faults.pause_every = 20'000'000;
  if (kind == FabricKind::kSimSlow) return faults;
  faults.lost_request = 0.004;
  faults.lost_response = 0.004;
  faults.disconnect = 0.001;
  return faults;
}

}  // namespace

const char* NameOf(FabricKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

std::optional<FabricKind> FabricKindOf(const std::string& name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<FabricKind>(i);
  }
  return std::nullopt;
}

std::unique_ptr<rdma::Fabric> MakeAwkward(rdma::Fabric* inner, Awkwardness* how) {
  const rdma::Capabilities capabilities = Lessened(inner->capabilities(), *how);
  return std::make_unique<rdma::RelayFabric>(
      inner, capabilities, [capabilities, how](std::unique_ptr<rdma::Channel> channel, std::byte* memory) {
        return std::make_unique<AwkwardChannel>(std::move(channel), memory, capabilities, how);
      });
}

TestBed::TestBed(FabricKind kind, int nodes, uint64_t seed) : kind_(kind), faults_(SimFaults(kind)) {
  if (IsSimulated(kind)) {
    simulation_ = std::make_unique<rdma::sim::Simulation>(rdma::sim::SimulationOptions{.seed = seed});
    rdma::sim::SimFabricOptions options;
    options.num_nodes = nodes;
    options.bytes_per_node = uint64_t{256} << 20;
    options.nic = *rdma::sim::FindNicProfile("cx4-100g");
    options.nic.cpu_coherent_atomics = Random(seed).OneIn(3);
    inner_ = rdma::sim::SimFabric::Create(simulation_.get(), options).value();
    return;
  }
  const bool adversarial = kind == FabricKind::kShmAdversarial || kind == FabricKind::kShmTornAdversarial;
  inner_ = rdma::ShmFabric::InProcess(
               {.num_nodes = nodes, .bytes_per_node = uint64_t{1} << 30, .adversarial = adversarial, .seed = seed})
               .value();
  if (kind == FabricKind::kShm || kind == FabricKind::kShmAdversarial) return;
  how_.line_consistent = kind == FabricKind::kShmNicAtomics || kind == FabricKind::kShmLossy;
  how_.cpu_coherent_atomics = kind == FabricKind::kShmTorn || kind == FabricKind::kShmLossy;
  how_.lose_one_in = IsLossy(kind) ? 150 : 0;
  how_.seed = seed;
  outer_ = MakeAwkward(inner_.get(), &how_);
}

TestBed::~TestBed() {
  outer_.reset();
  inner_.reset();
}

void TestBed::SetFaults(bool on) {
  how_.armed = on;
  if (simulation_ != nullptr) simulation_->SetFaults(on ? faults_ : rdma::sim::Faults{});
}

absl::Duration TestBed::call_timeout() const {
  return kind_ == FabricKind::kSimLossy ? absl::Milliseconds(10) : absl::Seconds(60);
}

}  // namespace gannet::model
