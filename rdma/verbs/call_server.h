// The owner's side of CALL: takes requests from the completion queue that all its queue pairs share, runs handlers,
// answers.
//
// Threads take turns: the thread that holds the lock polls and joins fragments until it has a complete request. Then it
// releases the lock and runs the request's handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/ring_queue.h"
#include "base/thread.h"
#include "rdma/fabric.h"
#include "rdma/serving_meter.h"
#include "rdma/statistics.h"
#include "rdma/verbs/connector.h"

namespace gannet::rdma::verbs {

class CallServer final : public Acceptor {
 public:
  static StatusOr<std::unique_ptr<CallServer>> Make(std::shared_ptr<NodeCore> core);
  ~CallServer() override;

  // Called before the first request is served.
  void Handle(MethodId method, Handler handler);
  void Start(int threads);
  bool started() const { return !threads_.empty(); }
  // Number of queue pairs that were cut because their peers broke the rules, or because they failed.
  uint64_t cut_off() const { return cut_off_.load(); }
  void RequestStop();
  // Call this after RequestStop. Waits for handlers that are running.
  void Join();

  // Thread-safe. Serves at most `limit` requests and returns their number.
  size_t ServePending(size_t limit);
  ServedTime served_time() const { return meter_.Read(num_threads_.load(std::memory_order_relaxed)); }

  // The functions of Acceptor.
  StatusOr<std::shared_ptr<Link>> MakeLink(NodeId peer, uint16_t channel) override;
  ibv_cq* cq() override { return cq_.get(); }
  void Add(const std::shared_ptr<Link>& link) override;
  void Remove(const std::shared_ptr<Link>& link) override;

 private:
  static constexpr uint32_t kSendBuffers = kWindow + 16;
  static_assert(kSendBuffers <= kSendDepth);

  // A queue pair that a peer opened.
  struct Client {
    std::shared_ptr<Link> link;
    // The request whose fragments are coming in.
    FragmentHeader assembling;
    std::vector<std::byte> assembled;
    uint32_t unanswered = 0;  // fragments of requests that were received and not answered
    // Responses are sent from these buffers, in circular order.
    std::vector<std::byte> send_buffers;
    MemoryRegion send_region;
    uint32_t sent = 0;                          // fragments, ever
    uint32_t completed = 0;                     // of them
    RingQueue<std::vector<std::byte>> waiting;  // fragments that found no buffer free, in order
  };
  struct Request {
    uint32_t client = 0;  // Link::number
    NodeId caller = 0;
    FragmentHeader header;
    std::vector<std::byte> body;
  };
  struct Response {
    absl::StatusCode code = absl::StatusCode::kOk;
    std::span<const std::byte> body;
  };

  explicit CallServer(std::shared_ptr<NodeCore> core) : core_(std::move(core)) {}
  Status Open();

  void Loop();
  void Sleep();
  bool ServeOne(std::vector<std::byte>* buffer, ServingMeter::By by);
  void Run(const Request& request, std::vector<std::byte>* buffer);
  Response RunHandler(const Request& request, std::span<std::byte> room, std::string* message);

  // The caller holds the lock.
  size_t PollLocked();
  void Take(const ibv_wc& completion);
  // An error means that the client broke the rules, or its queue pair broke.
  Status TakeFragment(Client* client, const ibv_wc& completion, uint32_t buffer);
  void Respond(Client* client, const FragmentHeader& request, const Response& response);
  void SendFragment(Client* client, std::span<const std::byte> fragment);
  void SendWaiting(Client* client);
  // Stops using its queue pair, which is destroyed soon. The client notices that.
  void CutOff(Client* client);
  void WakeAnother();

  std::shared_ptr<NodeCore> core_;
  CompletionEvents events_;
  CompletionQueue cq_;
  size_t max_clients_ = 0;
  int wake_ = -1;
  std::atomic<bool> stop_ = false;
  std::unordered_map<uint32_t, Handler> handlers_;
  std::vector<Thread> threads_;
  std::atomic<uint64_t> num_threads_ = 0;
  ServingMeter meter_;
  std::atomic<int> sleepers_ = 0;
  std::atomic<uint64_t> cut_off_ = 0;

  Mutex mutex_;
  uint32_t next_link_ = 1;
  std::unordered_map<uint32_t, std::unique_ptr<Client>> clients_;  // by Link::number
  RingQueue<Request> ready_;
  std::vector<std::vector<std::byte>> spare_;  // request bodies to use again
};

}  // namespace gannet::rdma::verbs
