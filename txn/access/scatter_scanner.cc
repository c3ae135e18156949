#include "txn/access/scatter_scanner.h"

#include <algorithm>
#include <utility>

#include "txn/session/session_state.h"

namespace gannet::txn {
namespace {

// Buffers with more bytes of payloads than this are not kept for the next access.
constexpr size_t kMostKeptBytes = 1 << 20;

bool Before(const index::Key& a, const index::Key& b, bool reverse) {
  return reverse ? b < a : a < b;
}

}  // namespace

bool ScatterScanner::OwnedDirectly(rdma::NodeId owner) const {
  return owner == session_->self && session_->direct;
}

coro::Task<Status> ScatterScanner::AppendHere(const Table& table, RowsWanted wanted, ScanRows* rows,
                                              ScanOptions options) {
  co_return local_.Append(table, wanted, rows, options);
}

coro::Task<Status> ScatterScanner::AppendOf(rdma::NodeId owner, const Table& table, const RowsWanted& wanted,
                                            CallBuffers::Messages* messages, ScanRows* rows, ScanOptions options) {
  if (OwnedDirectly(owner)) return AppendHere(table, wanted, rows, options);
  return remote_.Append(table, wanted, owner, messages, rows, options);
}

coro::Task<Status> ScatterScanner::Append(const Table& table, RowsWanted wanted, ScanRows* rows, ScanOptions options) {
  const Owners owners = table.OwnersOf(wanted.range.from, wanted.range.to, session_->self);
  if (!owners.several()) {
    Status status = co_await AppendOf(owners.first, table, wanted, buffers_.Of(0), rows, options);
    co_return status;
  }
  PrepareParts(owners, wanted.range.reverse);
  const Parts parts(parts_.data(), static_cast<size_t>(owners.count()));
  for (size_t round = 0;; ++round) {
    StartRound(table, wanted, owners.in_order, round, parts, options);
    bool any = false;
    Status status;
    for (const std::unique_ptr<Part>& part : parts) {
      coro::Started<Status>& answer = part->answer;
      if (!answer.valid()) continue;
      any = true;
      Status answered = co_await answer;
      answer = {};
      NoteAnswer(*part);
      status.Update(answered);
    }
    if (!status.ok()) co_return status;
    if (!any) break;
  }
  MergeParts(wanted.range, owners.in_order && !wanted.is_spatial(), parts, rows);
  co_return absl::OkStatus();
}

// Lists the owners in the order in which they are asked. If they have ranges of the keys, that is the order of the
// scan. Otherwise this node is the last: it reads its rows while the others work.
void ScatterScanner::PrepareParts(const Owners& owners, bool reverse) {
  const auto n = static_cast<size_t>(owners.count());
  while (parts_.size() < n) parts_.push_back(std::make_unique<Part>());
  for (size_t i = 0; i < n; ++i) {
    Part& part = *parts_[i];
    part.owner = static_cast<rdma::NodeId>(reverse ? owners.last - i : owners.first + i);
    part.rows.rows_.clear();
    part.rows.bytes_.Clear();
    part.rows_before = part.asked_for = 0;
    part.has_all = false;
  }
  if (owners.in_order) return;
  const auto is_other = [this](const std::unique_ptr<Part>& part) { return part->owner != session_->self; };
  std::partition(parts_.begin(), parts_.begin() + static_cast<ptrdiff_t>(n), is_other);
}

// Asks all owners whose rows will probably be needed and are not known. Nobody is asked if enough is known.
void ScatterScanner::StartRound(const Table& table, const RowsWanted& wanted, bool in_order, size_t round, Parts parts,
                                ScanOptions options) {
  const size_t limit = wanted.range.limit;
  const bool stops_early = in_order && limit != SIZE_MAX;
  double likely = 0;  // rows of the owners so far
  size_t sure = 0;    // rows that they have at least, more or less
  const size_t most_unknown = round < 2 ? 1 : size_t{1} << std::min<size_t>(round - 1, 10);
  size_t unknown = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = *parts[i];
    const size_t still = limit - (stops_early ? std::min(sure, limit) : 0);
    size_t more = 0;       // rows that are expected
    bool is_known = true;  // that there are as many
    if (!part.has_all && part.rows.size() < still) {
      RowsWanted rest = wanted;
      rest.range = RestOf(part, wanted.range, still - part.rows.size());
      if (stops_early && !OwnedDirectly(part.owner)) is_known = remote_.Estimate(table, rest.range, part.owner, &more);
      part.asked_for = still - part.rows.size();
      part.rows_before = part.rows.size();
      part.answer = coro::Started<Status>(AppendOf(part.owner, table, rest, buffers_.Of(i), &part.rows, options));
      if (stops_early && OwnedDirectly(part.owner)) NoteAnswer(part);  // it has not waited for anything
    }
    if (!stops_early) continue;
    if (!is_known && ++unknown >= most_unknown) return;
    likely += static_cast<double>(part.rows.size() + more);
    sure += part.rows.size() + more / 2;
    if (likely >= static_cast<double>(limit)) return;
  }
}

// The part of the range behind the rows that are known, with the last of them: it costs little, and the key after it
// need not be computed.
index::ScanRange ScatterScanner::RestOf(const Part& part, index::ScanRange range, size_t more) {
  range.limit = more;
  if (part.rows.empty()) return range;
  (range.reverse ? range.to : range.from) = writes_.arena().Keep(part.rows.key(part.rows.size() - 1));
  if (range.limit != SIZE_MAX) ++range.limit;
  return range;
}

// An answer with fewer rows than it was asked for has all. (This transaction's removals were asked for in addition:
// LimitBeyondRemovals.) May be called again for the same answer.
void ScatterScanner::NoteAnswer(Part& part) {
  PlainVector<ScanRows::Item>& rows = part.rows.rows_;
  const size_t before = part.rows_before;
  if (before > 0 && rows.size() > before && part.rows.key(before) == part.rows.key(before - 1)) {
    rows.erase(rows.begin() + before);
  }
  part.has_all = rows.size() - before < part.asked_for;
}

void ScatterScanner::MergeParts(const index::ScanRange& range, bool in_order, Parts parts, ScanRows* rows) {
  std::vector<std::pair<const Part*, const ScanRows::Item*>> all;
  for (const std::unique_ptr<Part>& part : parts) {
    for (const ScanRows::Item& row : part->rows.rows_) all.emplace_back(part.get(), &row);
  }
  if (!in_order) {
    std::ranges::sort(all, [&](const auto& a, const auto& b) {
      return Before(a.first->rows.KeyOf(*a.second), b.first->rows.KeyOf(*b.second), range.reverse);
    });
  }
  if (all.size() > range.limit) all.resize(range.limit);
  for (const auto& [part, row] : all) {
    ScanRows::Item& merged = rows->Add(part->rows.KeyOf(*row), row->payload_bytes);
    merged.handle = row->handle;
    std::ranges::copy(part->rows.PayloadOf(*row), rows->PayloadOf(merged).begin());
  }
  for (const std::unique_ptr<Part>& part : parts) {
    if (part->rows.bytes_.size() > kMostKeptBytes) part->rows = {};
  }
}

}  // namespace gannet::txn
