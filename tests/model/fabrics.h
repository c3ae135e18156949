// The fabrics of the model test: the existing ones, and a wrapper that makes a fabric worse within the contract of
// rdma/fabric.h: lines tear, atomics are not coherent with the CPU, verbs and calls are lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "rdma/fabric.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/sim/simulation.h"

namespace gannet::model {

enum class FabricKind : uint8_t {
  kShm,
  kShmAdversarial,
  kShmNicAtomics,       // cpu_coherent_atomics is false
  kShmTorn,             // line_consistent is false, and lines do tear
  kShmTornAdversarial,  // the same with NIC atomics, above the adversary
  kShmLossy,            // verbs and calls are lost, done or not
  kShmLossyTorn,        // both, with NIC atomics
  kSim,                 // virtual time, NIC atomics
  kSimSlow,             // with scattered lines, late completions, pauses
  kSimLossy,            // also lost calls and broken connections
};
inline constexpr int kFabricKinds = 10;

const char* NameOf(FabricKind kind);
std::optional<FabricKind> FabricKindOf(const std::string& name);

constexpr bool IsSimulated(FabricKind kind) {
  return kind >= FabricKind::kSim;
}
// True if operations may fail with Unavailable, DeadlineExceeded and Unknown.
constexpr bool IsLossy(FabricKind kind) {
  return kind == FabricKind::kShmLossy || kind == FabricKind::kShmLossyTorn || kind == FabricKind::kSimLossy;
}

// All channels of a fabric share it. Losses are drawn only while `armed`.
struct Awkwardness {
  bool line_consistent = true;
  bool cpu_coherent_atomics = true;
  uint64_t lose_one_in = 0;  // of batches and calls to other nodes; 0: none
  uint64_t seed = 1;
  std::atomic<bool> armed{false};
  std::atomic<uint64_t> channels{0};
};

// `inner` and `how` must outlive it.
std::unique_ptr<rdma::Fabric> MakeAwkward(rdma::Fabric* inner, Awkwardness* how);

// A fabric and the objects that it needs.
class TestBed {
 public:
  TestBed(FabricKind kind, int nodes, uint64_t seed);
  ~TestBed();
  rdma::Fabric* fabric() { return outer_ != nullptr ? outer_.get() : inner_.get(); }
  // Turns losses on or off. While they are off, pending operations can be settled.
  void SetFaults(bool on);
  absl::Duration call_timeout() const;

 private:
  FabricKind kind_;
  Awkwardness how_;
  std::unique_ptr<rdma::sim::Simulation> simulation_;
  rdma::sim::Faults faults_;
  std::unique_ptr<rdma::Fabric> inner_;
  std::unique_ptr<rdma::Fabric> outer_;
};

}  // namespace gannet::model
