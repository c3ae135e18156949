// A channel's path to one node: the operations that wait to be posted, those in flight, and the queue pair.
//
//   Add... --> queue --Flush--> in flight --Complete--> the batch or call it belongs to
//
// The queue waits while the link is being connected, while the queue pair has no room, and while no staging buffer is
// free. Order is always kept. Used by the channel's thread only.
//
// A software device copies lines word by word, in any order. On such a device, a READ of an object (a READ that starts
// with a line's first word) becomes three READs: of that word, of everything, and of that word again. If the word has
// changed in between, all three are repeated. A WRITE becomes two: everything but that word, then that word. This gives
// fabric.h's promise (2) for lines that are not consistent. It costs no round trip, because the work requests of one
// list are executed in order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ring_queue.h"
#include "rdma/fabric.h"
#include "rdma/verbs/link.h"
#include "rdma/verbs/staging.h"

namespace gannet::rdma::verbs {

// Operations that one await waits for.
struct Batch {
  Completion* completion = nullptr;
  uint32_t unfinished = 0;  // work requests, over all nodes
  Status status;
};

// A message to send. It belongs to the call client, and outlives its work requests.
struct Outgoing {
  FragmentHeader header;
  const std::byte* body = nullptr;  // moves if the caller gives up before all is sent
  uint32_t unposted = 0;            // fragments that are still in the queue
};

class Lane {
 public:
  class Listener {
   public:
    // All work requests of the batch have completed, or failed.
    virtual void FinishBatch(Batch* batch) = 0;

   protected:
    ~Listener() = default;
  };

  Lane(NodeId node, Staging* staging, bool line_consistent, Listener* listener)
      : node_(node), staging_(staging), line_consistent_(line_consistent), listener_(listener) {}

  NodeId node() const { return node_; }
  bool idle() const { return queue_.empty() && in_flight_.empty(); }
  bool has_queue() const { return !queue_.empty(); }
  // Operations added to the queue may use only this connection (a generation); 0: any.
  void Expect(uint64_t generation) {
    if (generation != 0) expected_ = generation;
  }
  // True if a link of this generation suits the whole queue.
  bool Accepts(uint64_t generation) const { return expected_ == 0 || expected_ == generation; }
  // True if a work request was posted on this link.
  bool has_posted() const { return posted_ > 0; }

  // The link, and where the node's memory is.
  const std::shared_ptr<Link>& link() const { return link_; }
  uint64_t generation() const { return generation_; }
  void Open(std::shared_ptr<Link> link, uint64_t generation, const RegionInfo& region);
  // Forgets the link, which the caller releases.
  std::shared_ptr<Link> Close();
  // Called when a work request failed: the queue pair is unusable. The first reason is kept; later ones follow from it.
  void MarkBroken(const std::string& why) {
    if (broken_.empty()) broken_ = why;
  }
  const std::string& broken() const { return broken_; }
  // Ends everything that waits or is in flight with `status`. The queue pair must be destroyed.
  void FailAll(const Status& status);

  // A large operation that must go through staging is split into parts.
  void Add(Operation* operation, Batch* batch, uint32_t local_key);
  void Add(Outgoing* message);

  // Posts what can be posted, as one list. Error: the queue pair failed.
  Status Flush();
  // The work request `sequence`, and all before it, have completed.
  void Complete(uint32_t sequence);

 private:
  // The first word of an object, before and after it was READ.
  struct Guard {
    uint64_t before = 0;
    uint64_t after = 0;
    int tries = 0;
  };
  enum class Part : uint8_t { kBody, kBefore, kAfter };
  struct Work {
    Part part = Part::kBody;
    Guard* guard = nullptr;          // unless kBody
    Operation* operation = nullptr;  // or
    Outgoing* message = nullptr;
    Batch* batch = nullptr;
    uint32_t offset = 0;
    uint32_t size = 0;
    uint32_t local_key = 0;  // not 0: the operation's local buffer is registered itself
    Staging::Buffer buffer = {};
  };

  static constexpr uint32_t kMostPerPost = 32;

  void AddGuarded(Operation* operation, Batch* batch, uint32_t local_key, Guard* guard);
  void AddGuard(Operation* operation, Batch* batch, uint32_t local_key, Guard* guard, Part part);
  // Bytes [from, to) of the operation.
  void AddBody(Operation* operation, Batch* batch, uint32_t local_key, uint32_t from, uint32_t to);
  // The guarded READ is complete. Repeats it if its first word has changed.
  void Judge(const Work& last);
  Guard* NewGuard();
  void Queue(const Work& work);

  // Fills in a work request; false if there is no buffer for it now.
  bool Prepare(Work* work, ibv_send_wr* request, ibv_sge* local);
  bool PrepareMessage(Work* work, ibv_send_wr* request, ibv_sge* local);
  void Finish(Work* work, bool ok);

  NodeId node_;
  Staging* staging_;
  bool line_consistent_;
  Listener* listener_;
  std::vector<std::unique_ptr<Guard>> guards_;
  std::vector<Guard*> free_guards_;
  std::shared_ptr<Link> link_;
  uint64_t generation_ = 0;
  uint64_t expected_ = 0;
  RegionInfo region_;
  std::string broken_;
  RingQueue<Work> queue_;
  RingQueue<Work> in_flight_;
  uint32_t posted_ = 0;     // work requests on this link, ever: the next one's sequence number
  uint32_t completed_ = 0;  // of them
};

}  // namespace gannet::rdma::verbs
