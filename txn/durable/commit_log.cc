#include "txn/durable/commit_log.h"

#include <coroutine>

#include "base/thread.h"
#include "txn/durable/durability.h"

namespace gannet::txn {

CommitLog::CommitLog(Durability* durability, std::unique_ptr<log::LogWriter> writer, bool sync)
    : durability_(durability),
      writer_(std::move(writer)),
      log_(writer_ == nullptr ? nullptr : &durability->log()),
      words_(&durability->words()),
      removals_(&durability->removals()),
      loads_(&durability->loads()),
      most_change_bytes_(writer_ == nullptr ? SIZE_MAX : writer_->most_bytes() - log::kTransactionOverheadBytes),
      awaits_durability_(writer_ != nullptr && sync) {}

void CommitLog::AddTo(coro::Worker* worker, bool alone) {
  if (writer_ == nullptr) return;
  log::LogWriter* const writer = writer_.get();
  // The coroutines that were ready have run when the pollers are called. So the worker of a node that is alone is
  // blocked if some of them wait for an epoch that is not durable.
  worker->AddPoller([writer, worker, alone] {
    const size_t resumed = writer->Poll([worker](std::coroutine_handle<> handle) { worker->Resume(handle); });
    if (alone && resumed == 0 && writer->waiting() != 0) writer->NoteBlocked();
    return resumed;
  });
  if (!alone) return;
  worker->SetIdle([writer] {
    constexpr uint64_t kAtMostNanos = 100'000;
    writer->waiting() > 0 ? writer->SleepUntilDurable(kAtMostNanos) : static_cast<void>(YieldThread());
  });
}

uint64_t CommitLog::NextTransactionId() {
  return durability_->NextTransactionId();
}

}  // namespace gannet::txn
