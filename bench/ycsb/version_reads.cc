#include "bench/ycsb/version_reads.h"

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/coro/task.h"

namespace gannet::bench {
namespace {

class VersionReadsChannel final : public rdma::RelayChannel {
 public:
  VersionReadsChannel(std::unique_ptr<rdma::Channel> inner, std::byte* memory, const rdma::Capabilities& capabilities)
      : RelayChannel(std::move(inner), memory, capabilities) {}

 private:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    return Complete(Post(operations), completion);
  }
  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    return Complete(Call(call, completion), completion);
  }

  coro::Task<Status> Post(std::span<rdma::Operation> operations) {
    std::array<uint64_t, 2> versions;
    std::vector<rdma::Operation> posted;
    std::vector<size_t> places;  // of the operations
    for (const rdma::Operation& operation : operations) {
      const bool is_leaf = operation.verb == rdma::Verb::kRead && operation.size > kLineBytes;
      const auto read_version = [&](uint64_t* version) {
        posted.push_back(rdma::Operation::Read(operation.remote, version, kWordBytes));
        posted.back().connection = operation.connection;
      };
      if (is_leaf) read_version(&versions[0]);
      places.push_back(posted.size());
      posted.push_back(operation);
      if (is_leaf) read_version(&versions[1]);
    }
    Status status = co_await inner().Post(posted);
    for (size_t i = 0; i < operations.size(); ++i) operations[i].result = posted[places[i]].result;
    counters_ = inner().counters();
    co_return status;
  }
  coro::Task<Status> Call(rdma::CallRequest call, rdma::Completion* completion) {
    const StatusOr<size_t> bytes =
        co_await inner().Call(call.node, call.method, call.request, call.response, call.timeout, call.connection);
    if (bytes.ok()) completion->response_bytes = *bytes;
    counters_ = inner().counters();
    co_return bytes.status();
  }
};

}  // namespace

std::unique_ptr<rdma::Fabric> WithVersionReads(rdma::Fabric* inner) {
  return std::make_unique<rdma::RelayFabric>(
      inner, inner->capabilities(), [inner](std::unique_ptr<rdma::Channel> channel, std::byte* memory) {
        return std::make_unique<VersionReadsChannel>(std::move(channel), memory, inner->capabilities());
      });
}

}  // namespace gannet::bench
