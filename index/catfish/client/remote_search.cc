// CatfishClient: searches.
//
// A search by READs believes what it read only if the words of all its nodes are unchanged afterwards (tree.h). In a
// transaction that is the commit's validation; otherwise the search does it itself, by READs of these words.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/catfish/client/read_nodes.h"

namespace gannet::index::catfish {
namespace {

// The searches of a node that READ a tree right now.
class Offloading {
 public:
  // `most` 0: no limit.
  Offloading(rdma::NodeId node, uint32_t most) : count_(&CountOf(node)) {
    admitted_ = count_->fetch_add(1, std::memory_order_relaxed) < most || most == 0;
  }
  ~Offloading() { count_->fetch_sub(1, std::memory_order_relaxed); }
  Offloading(const Offloading&) = delete;
  Offloading& operator=(const Offloading&) = delete;
  bool admitted() const { return admitted_; }

 private:
  // Nodes of one process (tests, simulations) have different counts, as processes have.
  static std::atomic<uint32_t>& CountOf(rdma::NodeId node) {
    static std::array<std::atomic<uint32_t>, 256> counts{};
    return counts[node % counts.size()];
  }
  std::atomic<uint32_t>* count_;
  bool admitted_;
};

// A window that every rectangle meets whose SquaredDistance to the point is at most `reach`. The square's sides are a
// little longer than twice the square root: that distance is rounded, and is 0 for the least ones.
Rectangle WindowAround(const NearestQuery& query, double reach) {
  if (std::isinf(reach)) return Rectangle::Everything();
  const double side = std::sqrt(reach) * (1 + 1e-15) + 1e-160;
  const auto below = [side](double x) { return std::max(std::nextafter(x - side, -kMaxCoordinate), -kMaxCoordinate); };
  const auto above = [side](double x) { return std::min(std::nextafter(x + side, kMaxCoordinate), kMaxCoordinate); };
  return {below(query.x), below(query.y), above(query.x), above(query.y)};
}

// What a search has added to *result.
SearchHistory::Met MetSince(const ScanResult& result, size_t entries, size_t witnesses) {
  return {.nodes = static_cast<double>(result.witnesses.size() - witnesses),
          .entries = static_cast<double>(result.entries.size() - entries)};
}

}  // namespace

class CatfishClient::WindowVisit {
 public:
  WindowVisit(const CatfishClient& client, Session* session, const Rectangle& window, ScanResult* result)
      : client_(client), session_(session), window_(window), result_(result) {}

  bool operator()(const Pending& pending, const NodeCopy& node) {
    if (node.head.level == 0 || !GANNET_MUTANT(kLeafWitnesses)) {
      result_->witnesses.push_back({{client_.owner_, pending.offset}, node.state});
    }
    for (const Entry& entry : node.entries()) {
      if (!window_.Meets(entry.box)) continue;
      if (node.head.level > 0) {
        if (!IsNodeOffset(entry.target, client_.tree_->layout)) return false;
        session_->pending.push_back({entry.target, node.head.level - 1, 0});
        continue;
      }
      if (!IsLeafEntry(entry, client_.owner_)) return false;
      const RectangleKeyBytes key({entry.box, entry.id});
      result_->entries.push_back({OwnedKey(key.view()), rdma::GlobalAddress::FromBits(entry.target)});
    }
    return true;
  }

 private:
  const CatfishClient& client_;
  Session* session_;
  Rectangle window_;
  ScanResult* result_;
};

coro::Task<Status> CatfishClient::Search(WindowQuery query, ScanResult* result) {
  const Status valid = CheckRectangle(query.window);
  GANNET_CO_RETURN_IF_ERROR(valid);
  ++statistics_.lookups;
  PooledSession pooled(this);
  Session& session = *pooled;
  if (!options_.by_call) {
    if (!tree_.has_value()) {
      const Status described = co_await Describe(session);
      GANNET_CO_RETURN_IF_ERROR(described);
    }
    const Offloading offloading(channel_->node(), options_.offloading.value_or(tree_->offloading));
    const size_t entries = result->entries.size();
    const size_t witnesses = result->witnesses.size();
    for (int attempt = 0; offloading.admitted() && attempt < kMostAttempts; ++attempt) {
      const StatusOr<bool> found = co_await SearchByReads(session, query, result);
      if (!found.ok()) co_return found.status();
      if (*found) {
        ++statistics_.one_sided;
        searches_.Add(query.window, MetSince(*result, entries, witnesses));
        co_return absl::OkStatus();
      }
      result->entries.resize(entries);
      result->witnesses.resize(witnesses);
      if (session.too_large) break;
      Sometimes<"catfish: a window is READ once more">();
    }
    Sometimes<"catfish: a search by READs ends in a call">();
  }
  ++statistics_.fallbacks;
  const size_t entries = result->entries.size();
  const size_t witnesses = result->witnesses.size();
  const Status called = co_await SearchByCalls(session, query, result);
  if (called.ok()) searches_.Add(query.window, MetSince(*result, entries, witnesses));
  co_return called;
}

// Follows SearchByReads: each level of the tree is a posting, and large levels are several.
ReadEstimate CatfishClient::EstimateSearch(const WindowQuery& query) const {
  const SearchHistory::Met met = searches_.Predict(query.window, {.nodes = levels_, .entries = 1});
  if (options_.by_call) return {.calls = 1, .keys = met.entries};
  const auto node_bytes = static_cast<double>(tree_.has_value() ? tree_->layout.bytes : NodeLayout(kMostEntries).bytes);
  ReadEstimate estimate{.postings = levels_ + std::floor(met.nodes / options_.reads_at_once),
                        .reads = met.nodes,
                        .calls = tree_.has_value() ? 0.0 : 1.0,
                        .bytes = met.nodes * node_bytes,
                        .keys = met.entries};
  if (query.at_one_moment || !channel_->capabilities().line_consistent) {
    estimate += {.postings = 1, .reads = met.nodes, .bytes = met.nodes * kWordBytes};
  }
  return estimate;
}

coro::Task<StatusOr<bool>> CatfishClient::SearchByReads(Session& session, WindowQuery query, ScanResult* result) {
  const auto first = static_cast<ptrdiff_t>(result->entries.size());
  session.pending.assign(1, {tree_->root, -1, 0});
  session.seen.clear();
  WindowVisit visit(*this, &session, query.window, result);
  const StatusOr<bool> read = co_await ReadNodes(session, visit);
  if (!read.ok() || !*read) co_return read;
  // Where lines may tear, the words decide, too, whether the images are believed (fabric.h).
  if (query.at_one_moment || !channel_->capabilities().line_consistent) {
    const StatusOr<bool> confirmed = co_await ConfirmSeen(session);
    co_return confirmed;
  }
  // An entry that moved meanwhile may have been met at both places.
  const auto same = [](const index::Entry& a, const index::Entry& b) { return a.key.view() == b.key.view(); };
  std::sort(result->entries.begin() + first, result->entries.end(),
            [](const index::Entry& a, const index::Entry& b) { return a.key.view() < b.key.view(); });
  result->entries.erase(std::unique(result->entries.begin() + first, result->entries.end(), same),
                        result->entries.end());
  co_return true;
}

coro::Task<Status> CatfishClient::SearchByCalls(Session& session, WindowQuery query, ScanResult* result) {
  const size_t entries = result->entries.size();
  const size_t witnesses = result->witnesses.size();
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const StatusOr<bool> found = co_await SearchByPages(session, query, result);
    if (!found.ok()) co_return found.status();
    if (*found) co_return absl::OkStatus();
    result->entries.resize(entries);
    result->witnesses.resize(witnesses);
  }
  co_return absl::AbortedError(absl::StrCat("the rectangles in ", query.window.ToString(),
                                            " change faster than they can be sent: search smaller windows"));
}

// A result that takes several messages is of one moment only if no node of any has changed at the end.
coro::Task<StatusOr<bool>> CatfishClient::SearchByPages(Session& session, WindowQuery query, ScanResult* result) {
  const size_t first_witness = result->witnesses.size();
  std::optional<ScanPosition> position;
  for (bool first = true;; first = false) {
    std::array<std::byte, 128> request;
    rdma::WireWriter writer(request);
    writer.PutU16(id_);
    PutRectangle(writer, query.window);
    writer.PutU8(query.at_one_moment ? 1 : 0);
    PutPosition(writer, position);
    const StatusOr<std::span<const std::byte>> response = co_await Call(session, kSearch, writer.written());
    if (!response.ok()) co_return response.status();
    rdma::WireReader reader(*response);
    const std::optional<ScanPosition> next = GetPosition(reader);
    if (!GetResult(reader, owner_, result) || !reader.Finish().ok()) {
      co_return absl::DataLossError("the owner of a catfish index sent a malformed result of a search");
    }
    if (!next.has_value() && first) co_return true;
    if (!next.has_value()) break;
    if (position.has_value() && !(*position < *next)) {
      co_return absl::DataLossError("the owner's search does not advance");
    }
    position = next;
  }
  if (!query.at_one_moment) co_return true;
  session.seen.clear();
  for (size_t i = first_witness; i < result->witnesses.size(); ++i) {
    session.seen.push_back({result->witnesses[i].word.offset(), result->witnesses[i].seen, 0});
  }
  const StatusOr<bool> confirmed = co_await ConfirmSeen(session);
  co_return confirmed;
}

// The window decides nothing but how much is searched: if the rectangles within the reach are enough when the window is
// searched, the nearest are among them, and the window's witnesses cover all that is as near. If they are too few (some
// were removed after the owner had answered), the owner is asked again.
coro::Task<Status> CatfishClient::Nearest(NearestQuery query, ScanResult* result) {
  const Status valid = CheckRectangle(Rectangle::Point(query.x, query.y));
  GANNET_CO_RETURN_IF_ERROR(valid);
  ++statistics_.lookups;
  ++statistics_.fallbacks;
  const size_t entries = result->entries.size();
  const size_t witnesses = result->witnesses.size();
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const StatusOr<std::optional<double>> reach = co_await AskForNearest(query, result);
    if (!reach.ok()) co_return reach.status();
    if (!reach->has_value()) co_return absl::OkStatus();
    const StatusOr<bool> found = co_await NearestWithin(query, **reach, result);
    if (!found.ok()) co_return found.status();
    if (*found) co_return absl::OkStatus();
    result->entries.resize(entries);
    result->witnesses.resize(witnesses);
  }
  co_return absl::AbortedError(
      absl::StrCat("the ", query.count, " nearest rectangles change faster than they can be sent: ask for fewer"));
}

coro::Task<StatusOr<std::optional<double>>> CatfishClient::AskForNearest(NearestQuery query, ScanResult* result) {
  PooledSession pooled(this);
  std::array<std::byte, 64> request;
  rdma::WireWriter writer(request);
  writer.PutU16(id_);
  PutNumber(writer, query.x);
  PutNumber(writer, query.y);
  writer.PutU64(query.count);
  const StatusOr<std::span<const std::byte>> response = co_await Call(*pooled, kNearest, writer.written());
  if (!response.ok()) co_return response.status();
  rdma::WireReader reader(*response);
  const size_t before = result->entries.size();
  std::optional<double> reach;
  bool well_formed = true;
  if (reader.GetU8() != 0) {
    well_formed = GetResult(reader, owner_, result) && result->entries.size() - before <= query.count;
  } else {
    reach = GetNumber(reader);
    well_formed = *reach >= 0;
  }
  if (!reader.Finish().ok() || !well_formed) {
    co_return absl::DataLossError("the owner of a catfish index sent a malformed result of a search");
  }
  co_return reach;
}

coro::Task<StatusOr<bool>> CatfishClient::NearestWithin(NearestQuery query, double reach, ScanResult* result) {
  const size_t first = result->entries.size();
  const WindowQuery within{.window = WindowAround(query, reach), .at_one_moment = true};
  const Status searched = co_await Search(within, result);
  if (!searched.ok()) co_return searched;
  std::vector<std::pair<double, index::Entry>> near;
  for (const index::Entry& entry : std::span(result->entries).subspan(first)) {
    const StatusOr<RectangleKey> key = DecodeRectangleKey(entry.key.view());
    if (!key.ok()) co_return key.status();
    const double distance = key->box.SquaredDistance(query.x, query.y);
    if (distance <= reach) near.emplace_back(distance, entry);
  }
  if (near.size() < query.count && !std::isinf(reach)) co_return false;
  std::ranges::sort(near, {}, [](const auto& one) { return std::pair(one.first, one.second.key.bytes()); });
  if (near.size() > query.count) near.resize(query.count);
  result->entries.resize(first);
  for (const auto& [distance, entry] : near) result->entries.push_back(entry);
  co_return true;
}

}  // namespace gannet::index::catfish
