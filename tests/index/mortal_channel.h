// MortalChannel: a client that dies at any verb.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "rdma/fabric.h"
#include "tests/index/carrying_channel.h"

namespace gannet::index {

// A channel of node 1 that dies after a number of verbs: it carries out no more, and all fail. A WRITE of several lines
// may die in the middle, with its lines in any order.
class MortalChannel final : public CarryingChannel {
 public:
  MortalChannel(rdma::Channel* inner, uint64_t seed) : CarryingChannel(inner), random_(seed) {}

  // Line WRITEs, atomics and calls from now on; READs do not count.
  void DieAfter(size_t verbs) { left_ = verbs; }
  bool is_dead() const { return left_ == 0; }

 protected:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    for (rdma::Operation& operation : operations) {
      if (operation.verb != rdma::Verb::kWrite) {
        if (is_dead()) return Fail(completion);
        if (operation.verb != rdma::Verb::kRead) --left_;
        CarryOut(&operation);
        continue;
      }
      std::vector<rdma::Operation> lines;
      for (uint32_t at = 0; at < operation.size; at += kLineBytes) {
        lines.push_back(rdma::Operation::Write(static_cast<const std::byte*>(operation.local) + at,
                                               operation.remote + at,
                                               std::min<uint32_t>(kLineBytes, operation.size - at)));
      }
      for (size_t i = lines.size(); i > 1; --i) std::swap(lines[i - 1], lines[random_.Below(i)]);
      for (rdma::Operation& line : lines) {
        if (is_dead()) return Fail(completion);
        --left_;
        CarryOut(&line);
      }
    }
    if (is_dead()) return Fail(completion);
    completion->status = absl::OkStatus();
    return true;
  }
  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    if (is_dead()) return Fail(completion);
    --left_;
    Carry(call, completion);
    if (is_dead()) return Fail(completion);  // the answer does not arrive
    return true;
  }

 private:
  static bool Fail(rdma::Completion* completion) {
    completion->status = absl::AbortedError("this client is dead");
    return true;
  }
  void CarryOut(rdma::Operation* operation) {
    const Status status = Carry({operation, 1});
    ASSERT_TRUE(status.ok()) << status;
  }

  Random random_;
  size_t left_ = SIZE_MAX;
};

}  // namespace gannet::index
