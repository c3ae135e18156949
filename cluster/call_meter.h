// CallMeter: counts the calls that this process answers, by method: how many, how long, how large. Verbs that others
// perform on a node's memory cannot be counted at that node, because its CPU does not see them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "rdma/fabric.h"

namespace gannet::cluster {

// Thread-safe. Must outlive the fabric that it was given to.
class CallMeter {
 public:
  struct Counters {
    std::atomic<uint64_t> calls{0};
    std::atomic<uint64_t> errors{0};  // calls that failed
    std::atomic<uint64_t> nanos{0};
    std::atomic<uint64_t> request_bytes{0};
    std::atomic<uint64_t> response_bytes{0};
  };

  CallMeter();
  ~CallMeter();

  // Counters of one method. The reference stays valid.
  Counters& Of(rdma::MethodId method);
  void ForEach(const std::function<void(rdma::MethodId, const Counters&)>& visit) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// `fabric`, whose nodes count in *meter the calls that they answer.
std::unique_ptr<rdma::Fabric> Metered(std::unique_ptr<rdma::Fabric> fabric, CallMeter* meter);

}  // namespace gannet::cluster
