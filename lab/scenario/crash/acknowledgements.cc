#include "lab/scenario/crash/acknowledgements.h"

#include "base/clock.h"

namespace gannet::scenario::crash {

void Acknowledgements::Add(uint32_t worker, uint64_t number) {
  pipe_->Send({.kind = MessageKind::kAcknowledged, .worker = worker, .number = number, .a = NowNanos()});
  if (mode_ != txn::DurabilityMode::kAsync) return;
  waiting_.push_back({database_->logged_epoch(), worker, number});
  TellDurable();
}

// Sends one message for several consecutive operations of a worker: the last one stands for all.
void Acknowledgements::TellDurable() {
  const uint64_t durable = database_->durable_epoch();
  while (!waiting_.empty() && waiting_.front().epoch <= durable) {
    const Waiting told = waiting_.front();
    waiting_.pop_front();
    const bool more = !waiting_.empty() && waiting_.front().epoch <= durable && waiting_.front().worker == told.worker;
    if (!more) pipe_->Send({.kind = MessageKind::kDurable, .worker = told.worker, .number = told.number});
  }
}

}  // namespace gannet::scenario::crash
