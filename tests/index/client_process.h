// The client of an index in its own process: node 1 of an IndexCluster, with its own mapping of the fabric, its own
// caches and its own memory. The test sends it questions over sockets; each thread of the client process serves one
// ClientThread of the test.
//
//   test ----- socket ----- thread of the client process: ClientThread, RemoteIndex ----- READs, CALLs ----- owner
//
// The process is forked before the test's process has any other thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "index/index.h"
#include "rdma/fabric.h"
#include "rdma/rpc.h"
#include "tests/rdma/forked.h"

namespace gannet::index {

using Connector = std::function<StatusOr<std::unique_ptr<RemoteIndex>>(rdma::Channel*, IndexId)>;

enum class Ask : uint8_t {
  kOpen,
  kConnect,
  kFind,      // and Settle, as a transaction does
  kJustFind,  // only the index's answer
  kSettle,
  kFindMany,
  kScan,
  kSearch,
  kNearest,
  kInsert,
  kRemove,
  kForget,
  kStatistics,
  kValid,
  kEnter,
  kLeave,
  kAdvance,
  kStartEpochs,
};

// One end of a connection: a question is one message, and so is its answer. Any socket error is a failed check.
class Wire {
 public:
  explicit Wire(int fd) : fd_(fd), out_(kMostBytes), in_(kMostBytes) {}
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Returns a writer for the message to send.
  rdma::WireWriter Begin() { return rdma::WireWriter(out_); }
  void Send(const rdma::WireWriter& message);
  // False: the other end is closed.
  bool Receive(std::span<const std::byte>* message);

  // Sends a question, whose arguments `put` adds; returns its answer, which is valid until the next message.
  template <class Put>
  rdma::WireReader AskFor(Ask what, const Put& put) {
    rdma::WireWriter writer = Begin();
    writer.PutU8(static_cast<uint8_t>(what));
    put(writer);
    Send(writer);
    return Answer();
  }
  void Command(Ask what) {
    AskFor(what, [](rdma::WireWriter&) {});
  }

 private:
  rdma::WireReader Answer();

  static constexpr size_t kMostBytes = 1 << 20;

  int fd_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
};

class ClientProcess {
 public:
  // The child attaches node 1 of the fabric that `join` returns.
  ClientProcess(const std::function<std::unique_ptr<rdma::Fabric>()>& join, const Connector& connect);
  // Ends the child, and checks that it ended without an error.
  ~ClientProcess();
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  // Waits until the child has attached and has seen the owner.
  void AwaitReady() const { child_->AwaitReady(); }
  // Returns an unused thread of the child.
  std::unique_ptr<Wire> Take();
  void Advance() { control_->Command(Ask::kAdvance); }
  void StartEpochs() { control_->Command(Ask::kStartEpochs); }

 private:
  static constexpr size_t kThreads = 12;

  std::unique_ptr<rdma::Forked> child_;
  std::mutex mutex_;
  std::unique_ptr<Wire> control_;
  std::array<int, kThreads> sockets_{};
  size_t taken_ = 0;
};

// Encoding of the messages.
void PutStatus(rdma::WireWriter& writer, const Status& status);
Status GetStatus(rdma::WireReader& reader);
void PutFound(rdma::WireWriter& writer, const FindResult& found);
FindResult GetFound(rdma::WireReader& reader);

// The index as the test uses it: every operation is a question.
std::unique_ptr<RemoteIndex> ProxyOf(Wire* wire);

}  // namespace gannet::index
