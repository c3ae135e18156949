// Results that a worker has committed but may not acknowledge yet, because they are not durable, with the times when
// their terminals sent the input. Such a result needs these few bytes and no coroutine, so a worker runs one
// transaction at a time while hundreds of terminals wait for the disk (as in Silo, SOSP'13, section 4.10).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ring_queue.h"
#include "tpcc/report.h"
#include "tpcc/schema/random.h"
#include "txn/database.h"

namespace gannet::tpcc {

struct Result {
  uint64_t durable_at = 0;  // epoch
  uint64_t begun_nanos = 0;
  Procedure procedure = Procedure::kNewOrder;
  bool committed = false;  // or rolled back
  uint8_t skipped_districts = 0;
  uint32_t aborts = 0;
};

// A FIFO queue. A result of a later epoch delays those behind it: they are acknowledged late, never early. Not
// thread-safe.
class Unacknowledged {
 public:
  bool empty() const { return results_.empty(); }
  size_t size() const { return results_.size(); }
  // Epoch of the next result; the queue must not be empty.
  uint64_t next_epoch() { return results_.front().durable_at; }
  void Add(const Result& result) { results_.push_back(result); }
  // Calls tell(result) for the first results that are durable by `epoch`; returns their number.
  template <class Tell>
  size_t TakeDurable(uint64_t epoch, const Tell& tell) {
    size_t taken = 0;
    for (; !results_.empty() && results_.front().durable_at <= epoch; ++taken) tell(results_.pop_front());
    return taken;
  }

 private:
  RingQueue<Result> results_;
};

}  // namespace gannet::tpcc
