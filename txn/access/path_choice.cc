#include "txn/access/path_choice.h"

#include "txn/access/access_internal.h"

namespace gannet::txn {
namespace {

// A record in an owner's answer, without key and payload: address, state, meta, lengths.
constexpr double kAnswerOverhead = 32;
// The rest of an answer with rows: position, counts, witnesses of some leaves.
constexpr double kRowsOverhead = 160;

}  // namespace

PathChoice ChooseForKey(SessionState& session, const GetRequest& request, rdma::NodeId owner,
                        const index::RemoteIndex& index) {
  OffloadChooser& paths = session.paths;
  const Table& table = *request.table;
  if (!paths.adaptive()) {
    return paths.Fixed(AccessKind::kGet, table.id(), owner, paths.FixedPath(table.index_traits()));
  }
  AskedAccess asked{.kind = AccessKind::kGet, .table = table.id(), .owner = owner};
  const double bytes = FirstReadBytes(table, request.key);
  asked.reads = index.Estimate(std::span(&request.key, 1));
  asked.reads += {.postings = 1, .reads = 1, .bytes = bytes};
  asked.answer_bytes = bytes + kAnswerOverhead;
  return paths.Choose(asked, session.epochs->LoadOf(owner), session.random);
}

StatusOr<PathChoice> ChooseForGroup(SessionState& session, std::span<const GetRequest> requests, rdma::NodeId owner,
                                    std::span<const uint32_t> which, std::vector<index::Key>* keys) {
  OffloadChooser& paths = session.paths;
  const Table& first_table = *requests[which[0]].table;
  AskedAccess asked{.kind = AccessKind::kGetMany, .table = first_table.id(), .owner = owner};
  const auto for_each_table = [&](auto&& visit) {
    for (size_t first = 0; first < which.size();) {
      const Table& table = *requests[which[first]].table;
      size_t end = first + 1;
      while (end < which.size() && requests[which[end]].table == &table) ++end;
      visit(table, which.subspan(first, end - first));
      first = end;
    }
  };
  Status status;
  if (paths.adaptive()) {
    asked.reads.postings = 1;
    for_each_table([&](const Table& table, std::span<const uint32_t> of_table) {
      StatusOr<index::RemoteIndex*> index = session.RemoteIndexOf(table, owner);
      if (!index.ok()) {
        status.Update(index.status());
        return;
      }
      keys->clear();
      for (const uint32_t i : of_table) {
        const double bytes = FirstReadBytes(table, requests[i].key);
        keys->push_back(requests[i].key);
        asked.reads += {.reads = 1, .bytes = bytes};
        asked.answer_bytes += bytes + kAnswerOverhead;
      }
      asked.reads += (*index)->Estimate(*keys);
    });
    GANNET_RETURN_IF_ERROR(status);
  }
  const PathChoice choice =
      paths.adaptive() ? paths.Choose(asked, session.epochs->LoadOf(owner), session.random)
                       : paths.Fixed(asked.kind, asked.table, owner, paths.FixedPath(first_table.index_traits()));
  for_each_table([&](const Table& table, std::span<const uint32_t>) {
    if (table.id() != asked.table) paths.Count(asked.kind, table.id(), choice.path);
  });
  return choice;
}

PathChoice ChooseForRows(SessionState& session, const Table& table, const RowsWanted& wanted, rdma::NodeId owner,
                         const index::RemoteIndex& index) {
  OffloadChooser& paths = session.paths;
  const AccessKind kind = wanted.window.has_value() ? AccessKind::kSearch : AccessKind::kScan;
  if (!paths.adaptive()) return paths.Fixed(kind, table.id(), owner, paths.FixedPath(table.index_traits()));
  AskedAccess asked{.kind = kind, .table = table.id(), .owner = owner};
  asked.reads = wanted.window.has_value() ? index.EstimateSearch({*wanted.window}) : index.Estimate(wanted.range);
  const double rows = asked.reads.keys;
  const double bytes = FirstReadBytes(table, wanted.range.from);
  asked.reads += {.postings = 1, .reads = rows, .bytes = rows * bytes};
  asked.answer_bytes = kRowsOverhead + rows * (bytes + kAnswerOverhead);
  return paths.Choose(asked, session.epochs->LoadOf(owner), session.random);
}

}  // namespace gannet::txn
