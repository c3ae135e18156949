// Asks the chooser (offload_chooser.h): what an access to another node would take on each path.
#include <algorithm>

#include "txn/access/access.h"
#include "txn/session/session_state.h"

namespace gannet::txn {
namespace {

// A record in an owner's answer, without key and payload: address, state, meta, lengths.
constexpr double kAnswerOverhead = 32;
// The rest of an answer with rows: position, counts, witnesses of some leaves.
constexpr double kRowsOverhead = 160;

}  // namespace

PathChoice Access::ChooseForKey(const GetRequest& request, rdma::NodeId owner, const index::RemoteIndex& index) {
  OffloadChooser& paths = session_->paths;
  const Table& table = *request.table;
  if (!paths.adaptive()) {
    return paths.Fixed(AccessKind::kGet, table.id(), owner, paths.FixedPath(table.index_traits()));
  }
  AskedAccess asked{.kind = AccessKind::kGet, .table = table.id(), .owner = owner};
  const double bytes = FirstReadBytes(table, request.key);
  asked.reads = index.Estimate(std::span(&request.key, 1));
  asked.reads += {.postings = 1, .reads = 1, .bytes = bytes};
  asked.answer_bytes = bytes + kAnswerOverhead;
  return paths.Choose(asked, session_->epochs->LoadOf(owner), session_->random);
}

// The requests of one table are looked up together, those of several tables one after the other, and all records are
// READ at once.
StatusOr<PathChoice> Access::ChooseForGroup(std::span<const GetRequest> requests, const OwnerGroup& group) {
  OffloadChooser& paths = session_->paths;
  const Table& first_table = *requests[group.which[0]].table;
  AskedAccess asked{.kind = AccessKind::kGetMany, .table = first_table.id(), .owner = group.owner};
  const auto for_each_table = [&](auto&& visit) {
    for (size_t first = 0; first < group.which.size();) {
      const Table& table = *requests[group.which[first]].table;
      size_t end = first + 1;
      while (end < group.which.size() && requests[group.which[end]].table == &table) ++end;
      visit(table, group.which.subspan(first, end - first));
      first = end;
    }
  };
  Status status;
  if (paths.adaptive()) {
    asked.reads.postings = 1;
    for_each_table([&](const Table& table, std::span<const uint32_t> which) {
      StatusOr<index::RemoteIndex*> index = session_->RemoteIndexOf(table, group.owner);
      if (!index.ok()) {
        status.Update(index.status());
        return;
      }
      keys_.clear();
      for (const uint32_t i : which) {
        const double bytes = FirstReadBytes(table, requests[i].key);
        keys_.push_back(requests[i].key);
        asked.reads += {.reads = 1, .bytes = bytes};
        asked.answer_bytes += bytes + kAnswerOverhead;
      }
      asked.reads += (*index)->Estimate(keys_);
    });
    GANNET_RETURN_IF_ERROR(status);
  }
  const PathChoice choice =
      paths.adaptive() ? paths.Choose(asked, session_->epochs->LoadOf(group.owner), session_->random)
                       : paths.Fixed(asked.kind, asked.table, group.owner, paths.FixedPath(first_table.index_traits()));
  for_each_table([&](const Table& table, std::span<const uint32_t>) {
    if (table.id() != asked.table) paths.Count(asked.kind, table.id(), choice.path);
  });
  return choice;
}

PathChoice Access::ChooseForRows(const Table& table, const RowsWanted& wanted, rdma::NodeId owner,
                                 const index::RemoteIndex& index) {
  OffloadChooser& paths = session_->paths;
  const AccessKind kind = wanted.window.has_value() ? AccessKind::kSearch : AccessKind::kScan;
  if (!paths.adaptive()) return paths.Fixed(kind, table.id(), owner, paths.FixedPath(table.index_traits()));
  AskedAccess asked{.kind = kind, .table = table.id(), .owner = owner};
  asked.reads = wanted.window.has_value() ? index.EstimateSearch({*wanted.window}) : index.Estimate(wanted.range);
  const double rows = asked.reads.keys;
  const double bytes = FirstReadBytes(table, wanted.range.from);
  asked.reads += {.postings = 1, .reads = rows, .bytes = rows * bytes};
  asked.answer_bytes = kRowsOverhead + rows * (bytes + kAnswerOverhead);
  return paths.Choose(asked, session_->epochs->LoadOf(owner), session_->random);
}

}  // namespace gannet::txn
