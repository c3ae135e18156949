// A server's answer to the first call of a process with another configuration, or of a hostile one.
#include "cluster/join/hello.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/shm/shm_fabric.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::cluster {
namespace hello_test {

using ::testing::HasSubstr;

constexpr uint64_t kConfiguration = 77;
constexpr rdma::MethodId kHello = 1024;
constexpr absl::Duration kTimeout = absl::Seconds(60);

class HelloTest : public ::testing::Test {
 protected:
  HelloTest() {
    fabric_ = *rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{64} << 20});
    server_ = *txn::Database::Open(fabric_.get(), 0, {.data_nodes = 1});
    service_.Register(server_->node());
    client_ = *txn::Database::Open(fabric_.get(), 1, {.data_nodes = 1});
    EXPECT_TRUE(server_->Start().ok());
    EXPECT_TRUE(client_->Start().ok());
    session_ = *client_->OpenSession();
  }

  // The server's answer to these bytes.
  Status Send(const std::vector<uint32_t>& words) {
    std::array<std::byte, 64> response{};
    const auto call = [](rdma::Channel* channel, std::span<const std::byte> request,
                         std::span<std::byte> answer) -> coro::Task<StatusOr<size_t>> {
      co_return co_await channel->Call(0, kHello, request, answer, kTimeout);
    };
    return session_->worker().BlockOn(call(&session_->channel(), std::as_bytes(std::span(words)), response)).status();
  }

  HelloService service_{kConfiguration};
  std::unique_ptr<rdma::ShmFabric> fabric_;
  std::unique_ptr<txn::Database> server_;
  std::unique_ptr<txn::Database> client_;
  std::unique_ptr<txn::Session> session_;
};

TEST_F(HelloTest, TellsTheServersState) {
  for (const ServerState state : {ServerState::kLoading, ServerState::kReady, ServerState::kLeaving}) {
    service_.Set(state);
    const StatusOr<ServerState> answer = SayHello(session_->channel(), session_->worker(), 0, kConfiguration, kTimeout);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(*answer, state);
  }
}

TEST_F(HelloTest, AnotherClusterFileIsRefused) {
  const Status status = SayHello(session_->channel(), session_->worker(), 0, kConfiguration + 1, kTimeout).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("another cluster file"));
}

TEST_F(HelloTest, AnotherProtocolIsRefusedWhateverFollows) {
  for (const std::vector<uint32_t>& hello :
       {std::vector<uint32_t>{kProtocol + 1}, std::vector<uint32_t>{kProtocol + 1, 0, kConfiguration, 0, 1, 2}}) {
    const Status status = Send(hello);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("speaks protocol version ", kProtocol + 1, ", this server ", kProtocol)));
  }
}

TEST_F(HelloTest, NonsenseIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Send({})));
  EXPECT_TRUE(absl::IsInvalidArgument(Send({kProtocol})));
  EXPECT_TRUE(absl::IsInvalidArgument(Send({kProtocol, 0, kConfiguration, 0, 0})));
  EXPECT_TRUE(Send({kProtocol, 0, kConfiguration, 0}).ok());
}

TEST_F(HelloTest, AServerThatIsNotThereIsUnavailable) {
  fabric_->Kill(0);
  EXPECT_TRUE(
      absl::IsUnavailable(SayHello(session_->channel(), session_->worker(), 0, kConfiguration, kTimeout).status()));
}

}  // namespace hello_test
}  // namespace gannet::cluster
