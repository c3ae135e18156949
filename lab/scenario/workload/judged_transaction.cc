#include "lab/scenario/workload/judged_transaction.h"

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "txn/database.h"

namespace gannet::scenario {
namespace {

// The message of a body that gives up, with any of these codes: a user's own errors may have the same codes as the
// engine's.
constexpr char kGivesUp[] = "the body gives up";
constexpr std::array kReasons = {absl::StatusCode::kCancelled,         absl::StatusCode::kInternal,
                                 absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnknown,
                                 absl::StatusCode::kUnavailable,       absl::StatusCode::kDeadlineExceeded,
                                 absl::StatusCode::kNotFound};

}  // namespace

void JudgedTransaction::DrawEnding(Random* random) {
  reason_ = random->OneIn(12) ? kReasons[random->Below(kReasons.size())] : absl::StatusCode::kOk;
  careless_ = random->OneIn(12);
}

void JudgedTransaction::EndPlainly() {
  reason_ = absl::StatusCode::kOk;
  careless_ = false;
}

bool JudgedTransaction::IsRefusal(const Status& status) {
  return absl::IsAlreadyExists(status) || status.message() == kGivesUp;
}

Status JudgedTransaction::Impossible(std::string what) {
  impossible_ = std::move(what);
  return absl::InternalError(impossible_);
}

coro::Task<Status> JudgedTransaction::Attempt(txn::Transaction& transaction) {
  Draft& draft = history_->BeginAttempt(op_, control_->Now());
  failure_ = absl::OkStatus();
  impossible_.clear();
  for (size_t step = 0; step < num_steps(); ++step) {
    Status status = co_await Do(transaction, draft, step);
    if (status.ok()) continue;
    if (!absl::IsAlreadyExists(status) && !absl::IsResourceExhausted(status) && failure_.ok()) failure_ = status;
    if (!careless_) co_return status;
  }
  if (asks_again_ > 0) {
    --asks_again_;
    co_return absl::AbortedError("the body asks for another attempt");
  }
  if (reason_ != absl::StatusCode::kOk) co_return Status(reason_, kGivesUp);
  co_return absl::OkStatus();
}

coro::Task<Status> JudgedTransaction::Execute(txn::Session& session, uint32_t client) {
  op_ = history_->Invoke(client, control_->Now());
  JudgedTransaction* const self = this;
  txn::RunOutcome outcome;
  const auto body = [self](txn::Transaction& transaction) { return self->Attempt(transaction); };
  Status status = co_await session.Run(body, &outcome);
  control_->aborts += outcome.aborts;
  const bool refused = IsRefusal(status);
  if ((status.ok() || refused) && !failure_.ok()) {
    control_->broken = absl::StrCat("a transaction ended with ", status.ok() ? "Ok" : status.ToString(),
                                    " although one of its operations had failed: ", failure_.ToString());
  }
  if (!impossible_.empty() && status.message() == impossible_) control_->broken = impossible_;
  if (refused) {
    history_->CompleteRefused(op_, control_->Now());
    ++control_->failed;
  } else if (status.ok()) {
    history_->Complete(op_, control_->Now(), Outcome::kOk);
    ++control_->committed;
  } else if (absl::IsUnknown(status)) {  // the log or a node failed at a critical moment: it may have happened
    history_->Complete(op_, control_->Now(), Outcome::kInfo);
    if (absl::StrContains(status.message(), "passed its commit point")) {
      control_->owed.push_back({op_, static_cast<int>(session.database().node_id())});
    }
    ++control_->unknown;
  } else {
    history_->Complete(op_, control_->Now(), Outcome::kFail);
    ++control_->failed;
  }
  co_return status;
}

}  // namespace gannet::scenario
