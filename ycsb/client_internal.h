// Shared by client.cc and client_scan.cc.
#pragma once

#include "base/clock.h"
#include "ycsb/client.h"

namespace gannet::ycsb {

// The path of accesses whose path is not chosen.
inline txn::AccessPath Fixed(Path path) {
  return path == Path::kCall ? txn::AccessPath::kCall : txn::AccessPath::kOneSided;
}

// Stays inside the epoch during its lifetime.
class Client::InEpoch {
 public:
  explicit InEpoch(Connection* connection) : epoch_(&connection->epoch()), entered_(epoch_->Enter()) {}
  ~InEpoch() { epoch_->Leave(entered_); }
  InEpoch(const InEpoch&) = delete;
  InEpoch& operator=(const InEpoch&) = delete;

 private:
  rdma::EpochManager::Participant* epoch_;
  uint64_t entered_;
};

// Limits how long an operation retries when it meets a locked record.
class Client::Patience {
 public:
  bool over() {
    const uint64_t now = NowNanos();
    if (end_ == 0) end_ = now + kNanos;
    return now > end_;
  }
  static Status Error() {
    return absl::DeadlineExceededError("a record stayed locked for 10 s; its writer does not run or has died");
  }

 private:
  static constexpr uint64_t kNanos = 10'000'000'000;
  uint64_t end_ = 0;
};

}  // namespace gannet::ycsb
