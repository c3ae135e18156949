// JudgedWorkload and JudgedClient: what workloads share whose history goes to the checker of strict serializability.
#pragma once

#include <cstdint>

#include "base/coro/task.h"
#include "base/random.h"
#include "lab/scenario/check/history.h"
#include "lab/scenario/workload/client.h"
#include "lab/scenario/workload/judged_transaction.h"
#include "lab/scenario/workload/workload.h"

namespace gannet::scenario {

class JudgedWorkload : public Workload {
 public:
  Judgement Judge() override;

 protected:
  JudgedWorkload(const ScenarioOptions& drawn, Control* control)
      : asks_again_(drawn.precedence_after_nanos < kAsksAgainNanos),
        seed_(drawn.seed),
        owners_(drawn.nodes - (*drawn.client ? 1 : 0)),
        control_(control) {}

  // Number of attempts that the next transaction asks for.
  uint64_t DrawAttempts(Random* random) const { return asks_again_ && random->OneIn(16) ? 1 + random->Below(20) : 0; }

  bool asks_again_;
  uint64_t seed_;
  int owners_;  // nodes that own rows
  txn::Placement placement_ = txn::Placement::ByHash();
  Control* control_;
  uint64_t waves_ = 0;  // begun by all clients together
  History history_;
};

class JudgedClient : public Client {
 public:
  // Runs the planned transaction.
  coro::Task<Status> Execute();
  // Runs the planned transaction until its result is known, for a thread without other coroutines.
  Status ExecuteNow();

 protected:
  // `number`: in the history.
  JudgedClient(txn::Session* session, Control* control, uint32_t number) : Client(session, control), number_(number) {}

  virtual JudgedTransaction& transaction() = 0;

 private:
  uint32_t number_;
};

}  // namespace gannet::scenario
