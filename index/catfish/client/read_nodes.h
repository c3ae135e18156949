// CatfishClient::ReadNodes, for the files that visit nodes.
#pragma once

#include <algorithm>
#include <memory>

#include "base/sometimes.h"
#include "index/catfish/client/client.h"

namespace gannet::index::catfish {

// The newest first, so that the children of one node share a posting, and few nodes wait at a time.
template <class Visit>
coro::Task<StatusOr<bool>> CatfishClient::ReadNodes(Session& session, Visit& visit) {
  const NodeLayout& layout = tree_->layout;
  const size_t most = options_.reads_at_once;
  session.operations.resize(std::max(session.operations.size(), most));
  session.images.resize(std::max(session.images.size(), most * layout.bytes + kLineBytes));
  void* at = session.images.data();
  size_t space = session.images.size();
  auto* const images = static_cast<std::byte*>(std::align(kLineBytes, most * layout.bytes, at, space));
  size_t nodes = 0;
  session.too_large = false;
  for (int idle = 0; !session.pending.empty();) {
    const size_t n = std::min(most, session.pending.size());
    session.posted.assign(session.pending.end() - static_cast<ptrdiff_t>(n), session.pending.end());
    session.pending.resize(session.pending.size() - n);
    for (size_t i = 0; i < n; ++i) {
      const rdma::GlobalAddress from(owner_, session.posted[i].offset);
      session.operations[i] =
          rdma::Operation::Read(from, images + i * layout.bytes, static_cast<uint32_t>(layout.bytes));
    }
    const std::span<rdma::Operation> reads(session.operations.data(), n);
    const Status status = co_await channel_->Post(reads);
    if (absl::IsInvalidArgument(status)) co_return false;  // an entry that leads out of the owner's memory
    if (!status.ok()) co_return status;
    statistics_.leaves_read += n;
    nodes += n;
    ++idle;
    for (size_t i = 0; i < n; ++i) {
      const Pending& posted = session.posted[i];
      const Verdict verdict = JudgeImage(images + i * layout.bytes, layout, posted.level, &session.copy);
      if (verdict == Verdict::kStale) {
        Sometimes<"catfish: a READ brings a node that left the tree">();
        co_return false;
      }
      if (verdict == Verdict::kAgain) {
        Sometimes<"catfish: a READ brings a node that is being written">();
        channel_->CountRetry();
        session.pending.push_back(posted);
        continue;
      }
      idle = 0;
      ChargeEntries(session.copy);
      if (posted.level < 0) levels_ = session.copy.head.level + 1;
      session.seen.push_back({posted.offset, session.copy.state, posted.key});
      if (!visit(posted, session.copy)) co_return false;
    }
    session.too_large = nodes > kMostNodes;
    if (idle > kMostIdleRounds || session.too_large) co_return false;
  }
  co_return true;
}

}  // namespace gannet::index::catfish
