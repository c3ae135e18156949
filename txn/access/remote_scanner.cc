#include "txn/access/remote_scanner.h"

#include <algorithm>
#include <optional>

#include "rdma/versioned.h"
#include "txn/access/access_internal.h"
#include "txn/access/neighbour_reads.h"
#include "txn/access/path_choice.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

using index::FindResult;
using index::PayloadDataOffset;
using index::RecordBytes;

// Appends the row of `image`, which was checked for `request`.
Status RemoteScanner::AppendImage(const GetRequest& request, rdma::GlobalAddress record, const std::byte* image,
                                  ScanRows* rows, ScanOptions options) {
  if (absl::IsNotFound(request.status)) return absl::OkStatus();  // removed by this transaction
  if (!request.status.ok() && !absl::IsOutOfRange(request.status)) return Conflict(AbortCause::kRow);
  const uint32_t size = options.keys_only ? 0 : request.payload_bytes;
  ScanRows::Item& row = rows->Add(request.key, size);
  const std::span<std::byte> out = rows->PayloadOf(row);
  if (const int own = writes_.FindRecord(record); own >= 0) {
    writes_.CopyPayload(writes_[own], 0, out);
  } else {
    rdma::CopyOut(image, PayloadDataOffset(request.key.size()), out);
  }
  row.handle = request.handle;
  return absl::OkStatus();
}

coro::Task<Status> RemoteScanner::Append(const Table& table, RowsWanted wanted, rdma::NodeId node,
                                         CallBuffers::Messages* messages, ScanRows* rows, ScanOptions options) {
  reads_.NoteVerbs();
  StatusOr<index::RemoteIndex*> remote = session_->RemoteIndexOf(table, node);
  if (!remote.ok()) co_return remote.status();
  if (wanted.nearest.has_value()) {
    Status status = co_await AppendNearest(table, wanted, *remote, rows, options);
    co_return status;
  }
  wanted.range.limit = LimitBeyondRemovals(writes_, table, wanted.range, wanted.range.limit);
  const PathChoice choice = ChooseForRows(*session_, table, wanted, node, **remote);
  MeasuredAccess measured = session_->Measure(choice.measured);
  Status status;
  if (choice.path == AccessPath::kCall) {
    status = co_await AppendByCalls(table, wanted, node, messages, rows, options);
  } else {
    status = co_await AppendByReads(table, wanted, *remote, rows, options);
  }
  measured.End(status, choice);
  co_return status;
}

bool RemoteScanner::Estimate(const Table& table, const index::ScanRange& range, rdma::NodeId node, size_t* rows) {
  const StatusOr<index::RemoteIndex*> index = session_->RemoteIndexOf(table, node);
  if (!index.ok()) return false;  // asking will tell why
  const index::ReadEstimate estimate = (*index)->Estimate(range);
  if (estimate.calls > 0) return false;
  *rows = static_cast<size_t>(std::max(estimate.keys, 0.0));
  return true;
}

// The owner's index finds them: READs would take as many round trips as the tree has levels, and more. So there is no
// choice of a path.
coro::Task<Status> RemoteScanner::AppendNearest(const Table& table, RowsWanted wanted, index::RemoteIndex* remote,
                                                ScanRows* rows, ScanOptions options) {
  session_->paths.Count(AccessKind::kSearch, table.id(), AccessPath::kCall);
  index::NearestQuery query = *wanted.nearest;
  query.count = LimitBeyondRemovals(writes_, table, wanted.range, query.count);
  index::ScanResult found;
  Status status = co_await remote->Nearest(query, &found);
  if (!status.ok()) co_return status;
  size_t doubtful = SIZE_MAX;
  status = co_await Fetch(table, found, rows, options, &doubtful);
  co_return status;
}

coro::Task<Status> RemoteScanner::AppendByReads(const Table& table, RowsWanted wanted, index::RemoteIndex* remote,
                                                ScanRows* rows, ScanOptions options) {
  index::ScanResult found;
  Status status;
  if (wanted.window.has_value()) {
    status = co_await remote->Search({.window = *wanted.window}, &found);
  } else {
    status = co_await remote->Scan(wanted.range, &found);
  }
  if (!status.ok()) co_return status;
  for (const index::Entry& entry : found.entries) {
    if (!reader_.MayBeRecordOf(table, entry.key.view(), entry.record)) co_return IndexDamaged(table, entry.key.view());
  }
  size_t doubtful = SIZE_MAX;
  status = co_await Fetch(table, found, rows, options, &doubtful);
  if (doubtful == SIZE_MAX || !table.index_traits().client_writes) co_return status;
  // Another scan may do better; not if the index is damaged. A lookup of the key finds out.
  const Key key = found.entries[doubtful].key.view();
  GetRequest request{.table = &table, .key = key, .out = {}, .offset = 0};
  const Status looked_up = co_await reader_.GetByReads(&request, remote);
  co_return absl::IsDataLoss(looked_up) ? looked_up : status;
}

coro::Task<Status> RemoteScanner::Fetch(const Table& table, const index::ScanResult& scan, ScanRows* rows,
                                        ScanOptions options, size_t* doubtful) {
  for (const index::Witness& witness : scan.witnesses) reads_.AddWitness(witness);
  if (scan.entries.empty()) co_return absl::OkStatus();

  NeighbourReads pieces;
  for (const index::Entry& entry : scan.entries) pieces.Add(entry.record, FirstReadBytes(table, entry.key.view()));
  std::vector<rdma::Operation> reads;
  pieces.AppendTo(&reads, session_->channel->capabilities().line_consistent, &writes_.arena());
  Status status = co_await session_->channel->Post(reads);
  if (!status.ok()) co_return status;

  for (size_t i = 0; i < scan.entries.size(); ++i) {
    const index::Entry& entry = scan.entries[i];
    const FindResult found{.record = entry.record};
    GetRequest request{
        .table = &table, .key = entry.key.view(), .out = {}, .offset = 0, .for_update = options.for_update};
    std::byte* image = pieces.image(i);
    uint32_t bytes = pieces.bytes(i);
    Look look = reader_.LookAtImage(&request, found, image, bytes);
    for (int again = 0; look == Look::kConflict && again < kReadAgain; ++again) {
      session_->channel->CountRetry();
      co_await session_->Yield();
      bytes = std::max(bytes, static_cast<uint32_t>(RecordBytes(request.key.size(), request.payload_bytes)));
      image = writes_.arena().Allocate(bytes);
      status = co_await session_->channel->Read(entry.record, image, bytes);
      if (!status.ok()) co_return status;
      look = reader_.LookAtImage(&request, found, image, bytes);
    }
    if (look != Look::kDone) {
      if (look == Look::kGone || !index::RecordHoldsKey(image, request.key)) *doubtful = i;
      co_return look == Look::kConflict ? session_->LockedTooLong(LoadWord(image)) : Conflict(AbortCause::kLock);
    }
    status = AppendImage(request, entry.record, image, rows, options);
    if (!status.ok()) co_return status;
  }
  co_return absl::OkStatus();
}

// Makes as many calls as necessary: an answer is one message. Each call continues where the owner says that the one
// before it stopped: after a row, or after leaves without rows.
coro::Task<Status> RemoteScanner::AppendByCalls(const Table& table, RowsWanted wanted, rdma::NodeId node,
                                                CallBuffers::Messages* messages, ScanRows* rows, ScanOptions options) {
  ScanRequest request{.table = table.id(), .range = wanted.range, .window = wanted.window};
  for (bool more = true; more;) {
    rdma::WireWriter writer(messages->request.room());
    Put(writer, request);
    const std::span<const std::byte> question = writer.written();
    StatusOr<size_t> size = co_await reader_.AskOwner(node, kTxnScan, question, messages->response.room());
    if (!size.ok()) co_return size.status();
    rdma::WireReader reader(messages->response.room().first(*size));
    Status taken = TakeScanned(table, node, reader, &request, rows, options, &more);
    if (!taken.ok()) co_return taken;
  }
  co_return absl::OkStatus();
}

// Takes one answer to a kTxnScan. If there is more, *request becomes the rest.
Status RemoteScanner::TakeScanned(const Table& table, rdma::NodeId node, rdma::WireReader& reader, ScanRequest* request,
                                  ScanRows* rows, ScanOptions options, bool* more) {
  const uint8_t flags = reader.GetU8();
  *more = (flags & kMoreRows) != 0;
  const size_t read_before = reads_.size();
  const index::ScanPosition next = GetPosition(reader, (flags & kLongPosition) != 0);
  const uint16_t witnesses = reader.GetU16();
  for (uint16_t i = 0; i < witnesses && reader.ok(); ++i) {
    const index::Witness witness = index::GetWitness(reader);
    reads_.AddWitness(witness);
  }
  const uint32_t n = reader.GetU32();
  const std::optional<index::ScanPosition>& last = request->position;
  const bool moved_on = !last.has_value() || (request->range.reverse ? next < *last : *last < next);
  if (n > request->range.limit || (*more && (!moved_on || n + witnesses == 0))) return MalformedReply(node, "a scan");
  for (uint32_t i = 0; i < n; ++i) {
    ScannedRow row;
    if (!txn::Get(reader, &row) || row.meta.payload_bytes != row.payload.size() ||
        row.meta.key_bytes != row.key.size() || row.key.kind() != table.options().key_kind) {
      return MalformedReply(node, "a scan");
    }
    const Key key = writes_.arena().Keep(row.key);
    size_t bytes = 0;
    const std::byte* const image = reader_.MakeImage(key, row.state, row.meta, row.payload, &bytes);
    GetRequest got{.table = &table, .key = key, .out = {}, .offset = 0, .for_update = options.for_update};
    if (reader_.LookAtImage(&got, {.record = row.record}, image, bytes) != Look::kDone)
      return MalformedReply(node, "a scan");
    GANNET_RETURN_IF_ERROR(AppendImage(got, row.record, image, rows, options));
  }
  if ((flags & kConfirmedRows) != 0) reads_.Confirm(read_before);
  request->position = next;
  if (request->range.limit != SIZE_MAX) request->range.limit -= n;
  *more = *more && request->range.limit > 0;
  return reader.Finish().ok() ? absl::OkStatus() : MalformedReply(node, "a scan");
}

}  // namespace gannet::txn
