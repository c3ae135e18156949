// A fabric that counts the calls which this process answers: by method, how many, how long, how large. Works over any
// fabric. The verbs that others perform on a node's memory cannot be counted there: its CPU does not see them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "base/thread.h"
#include "rdma/fabric.h"

namespace gannet::cli {

// Thread-safe. Outlives the fabric.
class CallMeter {
 public:
  struct Counters {
    std::atomic<uint64_t> calls{0};
    std::atomic<uint64_t> errors{0};  // of them
    std::atomic<uint64_t> nanos{0};
    std::atomic<uint64_t> request_bytes{0};
    std::atomic<uint64_t> response_bytes{0};
  };

  // Of one method. Stays where it is.
  Counters& Of(rdma::MethodId method);
  void ForEach(const std::function<void(rdma::MethodId, const Counters&)>& visit) const;

 private:
  mutable Mutex mutex_;
  std::map<rdma::MethodId, Counters> counters_;
};

std::unique_ptr<rdma::Fabric> Metered(std::unique_ptr<rdma::Fabric> fabric, CallMeter* meter);

}  // namespace gannet::cli
