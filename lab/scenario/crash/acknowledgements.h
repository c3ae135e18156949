// Reports the operations of one coroutine of a child: that they were acknowledged and, if that does not imply it
// (durability async), when the log says that they are durable.
#pragma once

#include <cstdint>
#include <deque>

#include "lab/scenario/crash/message.h"
#include "txn/database.h"

namespace gannet::scenario::crash {

class Acknowledgements {
 public:
  // Both must outlive this. `mode`: of the database.
  Acknowledgements(const txn::Database* database, txn::DurabilityMode mode, const MessagePipe* pipe)
      : database_(database), mode_(mode), pipe_(pipe) {}

  // Operation `number` of `worker` has just been acknowledged. Reports that, and which earlier ones are durable by now.
  void Add(uint32_t worker, uint64_t number);

 private:
  struct Waiting {
    uint64_t epoch;  // once this is durable, the operation is
    uint32_t worker;
    uint64_t number;
  };
  void TellDurable();

  const txn::Database* database_;
  const txn::DurabilityMode mode_;
  const MessagePipe* pipe_;
  std::deque<Waiting> waiting_;  // in the order of their epochs
};

}  // namespace gannet::scenario::crash
