// Creates and ends a node's queue pairs by rdma_cm: those that its channels request, and those that peers request.
//
//   client                                    server
//     resolve address, resolve route
//     queue pair, receive buffers
//     CONNECT {magic, version, credential}  ->
//                                             credential good? the channel's earlier queue pair ends;
//                                             queue pair, receive buffers, Acceptor::Add
//                                       <-    ACCEPT {magic, version}, or REJECT {magic, version, reason}
//     kUp                               ->    (established)
//
// It has its own thread, and only that thread touches connection ids. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/thread.h"
#include "rdma/verbs/link.h"

namespace gannet::rdma::verbs {

// Takes the queue pairs that peers request. Called on the connector's thread.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  // Never returns null. ResourceExhausted: the completion queue has no room for another queue pair.
  virtual StatusOr<std::shared_ptr<Link>> MakeLink(NodeId peer, uint16_t channel) = 0;
  virtual ibv_cq* cq() = 0;
  // After this call, requests may arrive.
  virtual void Add(const std::shared_ptr<Link>& link) = 0;
  // Called before the queue pair is destroyed: no thread may post to it after this returns.
  virtual void Remove(const std::shared_ptr<Link>& link) = 0;
};

class Connector final : public control::Observer {
 public:
  // `core` and `acceptor` must outlive this. core->agent is not needed before Run.
  static StatusOr<std::unique_ptr<Connector>> Make(NodeCore* core, Acceptor* acceptor);
  ~Connector() override { Stop(); }
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  // Address at which it listens.
  control::Endpoint listens_at() const { return core_->address().WithPort(ntohs(rdma_get_src_port(listener_.get()))); }
  // Starts the thread.
  void Run();
  // Ends the queue pairs that peers requested, and refuses new ones. When it returns, no verb of a peer takes effect
  // any more.
  void CutServing();
  // Ends all queue pairs. The channels must have released their links, or must never use them again.
  void Stop();

  // Begins to connect `link` to the peer that listens at `to`. It ends kUp or, within connect_limit, kDown.
  void Connect(std::shared_ptr<Link> link, ibv_cq* cq, const control::Endpoint& to);
  // Waits until the queue pair is destroyed: the NIC accesses none of its buffers after that.
  void Release(const std::shared_ptr<Link>& link);

  // Returns when the queue pairs that the session admitted are destroyed.
  void SessionEnded(uint64_t session) override;
  // Number of queue pairs that peers opened.
  size_t serving() const { return num_served_.load(); }

 private:
  struct Active {
    std::shared_ptr<Link> link;
    ibv_cq* cq = nullptr;
  };

  Connector(NodeCore* core, Acceptor* acceptor) : core_(core), acceptor_(acceptor) {}

  void Enqueue(std::function<void()> job);
  void RunAndWait(std::function<void()> job);
  void Loop();
  void RunJobs();
  void CheckDeadlines();
  bool TakeEvent();

  void Begin(const Active& active, control::Endpoint to);
  // One step of a connection that this node requested.
  Status Advance(const Active& active, const rdma_cm_event& event);
  Status Ask(const Active& active);
  // Handles a peer's request. The peer gets the returned error as the reason of its REJECT.
  Status Admit(rdma_cm_id* id, const rdma_cm_event& event);
  void EndServing(const std::function<bool(const Link&)>& which);
  void Destroy(Link* link);
  rdma_conn_param Parameters() const;

  NodeCore* core_;
  Acceptor* acceptor_;
  CmEvents events_;
  CmId listener_;
  int wake_ = -1;
  Thread thread_;

  Mutex mutex_;
  std::vector<std::function<void()>> jobs_;  // guarded by mutex_
  bool stop_ = false;                        // guarded by mutex_

  // Used by the thread only.
  bool serving_ = true;
  std::atomic<size_t> num_served_ = 0;  // the size of served_
  std::map<rdma_cm_id*, Active> active_;
  std::map<rdma_cm_id*, std::shared_ptr<Link>> served_;
};

}  // namespace gannet::rdma::verbs
