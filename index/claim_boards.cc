#include "index/claim_boards.h"

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/service.h"
#include "rdma/rpc.h"

namespace gannet::index {

Status ClaimBoards::Tell(rdma::NodeId holder, uint64_t process, rdma::GlobalAddress board) {
  if (board.node() != holder || board.offset() == 0 || board.offset() % kLineBytes != 0) {
    return absl::InvalidArgumentError("there can be no board at this address");
  }
  const uint64_t connection = node_->ConnectionTo(holder);
  if (connection == 0) return absl::UnavailableError(absl::StrCat("node ", holder, " is not connected"));
  const std::lock_guard lock(mutex_);
  if (boards_.size() <= holder) boards_.resize(size_t{holder} + 1);
  Board& known = boards_[holder];
  if (process < known.process) {
    return absl::FailedPreconditionError(absl::StrCat("node ", holder, " has been started again"));
  }
  if (!known.address.is_null() && known.connection != connection) {
    Sometimes<"claims: a node that is back waits for the end of its claims">();
    return absl::UnavailableError(
        absl::StrCat("what node ", holder, " claimed over another connection is being ended; ask again"));
  }
  known = {.address = board, .process = process, .connection = connection};
  return absl::OkStatus();
}

void ClaimBoards::Leave(rdma::NodeId holder, uint64_t process) {
  const std::lock_guard lock(mutex_);
  if (holder < boards_.size() && boards_[holder].process == process) boards_[holder].address = {};
}

coro::Task<Status> ClaimBoards::End(rdma::Channel* channel, rdma::NodeId holder, rdma::GlobalAddress leaf) {
  Board board;
  Term term = Term::kNone;
  {
    const std::lock_guard lock(mutex_);
    if (holder < boards_.size()) board = boards_[holder];
    term = TermOf(holder);
  }
  // Nobody has claimed what this word says: a client has made it up. Or the claim was ended meanwhile, or its holder
  // has left.
  if (board.address.is_null()) co_return absl::OkStatus();
  if (term == Term::kOver) co_return absl::OkStatus();
  if (term == Term::kRuns) {
    Sometimes<"claims: the holder of a leaf is lost">();
    co_return absl::UnavailableError(absl::StrCat("node ", holder, " is lost and may use what it claimed; try again"));
  }
  const rdma::GlobalAddress word = board.address + BoardWord(leaf);
  uint64_t seen = 0;
  rdma::Operation operations[] = {rdma::Operation::FetchAndAdd(word, 1),
                                  rdma::Operation::Read(word, &seen, kWordBytes)};
  for (rdma::Operation& operation : operations) operation.connection = board.connection;
  Status status = co_await channel->Post(operations);
  if (status.ok()) ended_.fetch_add(1, std::memory_order_relaxed);
  co_return status;
}

coro::Task<void> ClaimBoards::RaiseRanges(rdma::Channel* channel) {
  std::vector<rdma::Operation> raises;
  {
    const std::lock_guard lock(mutex_);
    for (size_t holder = 0; holder < boards_.size(); ++holder) {
      const Board& board = boards_[holder];
      const bool is_there =
          !board.address.is_null() && board.connection == node_->ConnectionTo(static_cast<rdma::NodeId>(holder));
      if (!is_there) continue;
      raises.push_back(rdma::Operation::FetchAndAdd(board.address + RangesWord(node_->id()), 1));
      raises.back().connection = board.connection;
    }
  }
  if (raises.empty()) co_return;
  const Status raised = co_await channel->Post(raises);
  raised.IgnoreError();
}

ClaimBoards::Term ClaimBoards::TermOf(rdma::NodeId holder) const {
  if (holder >= boards_.size()) return Term::kNone;
  Board& board = boards_[holder];
  if (board.address.is_null() || board.connection == node_->ConnectionTo(holder)) return Term::kNone;
  const uint64_t now = NowNanos();
  if (board.lost_at == 0) board.lost_at = now;
  const bool is_over = now - board.lost_at >= NanosOf(kClaimTerm) || GANNET_MUTANT(kNoClaimTerm);
  return is_over ? Term::kOver : Term::kRuns;
}

bool ClaimBoards::MayClaim(rdma::NodeId holder) const {
  const std::lock_guard lock(mutex_);
  return holder < boards_.size() && !boards_[holder].address.is_null();
}

bool ClaimBoards::IsLost(rdma::NodeId holder) const {
  const std::lock_guard lock(mutex_);
  return holder < boards_.size() && !boards_[holder].address.is_null() &&
         boards_[holder].connection != node_->ConnectionTo(holder);
}

bool ClaimBoards::IsTermOver(rdma::NodeId holder) const {
  const std::lock_guard lock(mutex_);
  return TermOf(holder) == Term::kOver;
}

void ClaimBoards::Forget(rdma::NodeId holder) {
  const std::lock_guard lock(mutex_);
  // It may have told a new board meanwhile.
  if (holder < boards_.size() && boards_[holder].connection != node_->ConnectionTo(holder)) {
    boards_[holder].address = {};
  }
}

void RegisterClaimBoards(IndexService* service) {
  if (!service->MayRegister(kTellBoard)) return;
  service->node().Handle(
      kTellBoard,
      [service](rdma::NodeId caller, std::span<const std::byte> request, std::span<std::byte>) -> StatusOr<size_t> {
        rdma::WireReader reader(request);
        const uint64_t process = reader.GetU64();
        const rdma::GlobalAddress board = reader.GetAddress();
        GANNET_RETURN_IF_ERROR(reader.Finish());
        if (board.is_null()) {
          service->boards().Leave(caller, process);
        } else {
          GANNET_RETURN_IF_ERROR(service->boards().Tell(caller, process, board));
        }
        return 0;
      });
}

}  // namespace gannet::index
