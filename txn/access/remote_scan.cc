// Scans and searches of other nodes' rows: one-sided (READs of the index's leaves, then of the records, neighbours
// together), or by a call that does both at the owner.
#include <algorithm>
#include <optional>

#include "rdma/rpc.h"
#include "rdma/versioned.h"
#include "txn/access/access.h"
#include "txn/access/access_internal.h"
#include "txn/access/neighbour_reads.h"
#include "txn/peer/wire.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

using index::FindResult;
using index::PayloadDataOffset;
using index::RecordBytes;

// Appends the row of `image`, which was checked for `request`.
Status Access::AppendImage(const GetRequest& request, rdma::GlobalAddress record, const std::byte* image,
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

Status Access::RowsDirect(const Table& table, const RowsWanted& wanted, ScanRows* rows, ScanOptions options) {
  if (wanted.nearest.has_value()) return NearestDirect(table, *wanted.nearest, rows, options);
  if (wanted.window.has_value()) return SearchDirect(table, *wanted.window, rows, options);
  return ScanDirect(table, wanted.range, rows, options);
}

coro::Task<Status> Access::RowsOfNode(const Table& table, RowsWanted wanted, rdma::NodeId node, CallBuffers* buffers,
                                      ScanRows* rows, ScanOptions options) {
  if (OwnedDirectly(node)) co_return RowsDirect(table, wanted, rows, options);
  reads_.NoteVerbs();
  if (wanted.nearest.has_value()) {
    Status found = co_await NearestRemote(table, *wanted.nearest, node, rows, options);
    co_return found;
  }
  wanted.range = BeyondOwnRemovals(table, wanted.range);
  StatusOr<index::RemoteIndex*> remote = session_->RemoteIndexOf(table, node);
  if (!remote.ok()) co_return remote.status();
  const PathChoice choice = ChooseForRows(table, wanted, node, **remote);
  MeasuredAccess measured = session_->Measure(choice.measured);
  Status status;
  if (choice.path == AccessPath::kCall) {
    status = co_await RowsByCalls(table, wanted, node, buffers, rows, options);
  } else {
    status = co_await RowsByReads(table, wanted, *remote, rows, options);
  }
  measured.End(status, choice);
  co_return status;
}

coro::Task<Status> Access::RowsByReads(const Table& table, RowsWanted wanted, index::RemoteIndex* remote,
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
    if (!MayBeRecordOf(table, entry.key.view(), entry.record)) co_return IndexDamaged(table, entry.key.view());
  }
  size_t doubtful = SIZE_MAX;
  status = co_await FetchFound(table, found, rows, options, &doubtful);
  if (doubtful == SIZE_MAX || !table.index_traits().client_writes) co_return status;
  // Another scan may do better; not if the index is damaged. A lookup of the key finds out.
  const Key key = found.entries[doubtful].key.view();
  GetRequest request{.table = &table, .key = key, .out = {}, .offset = 0};
  const Status looked_up = co_await GetByReads(&request, remote);
  co_return absl::IsDataLoss(looked_up) ? looked_up : status;
}

coro::Task<Status> Access::FetchFound(const Table& table, const index::ScanResult& scan, ScanRows* rows,
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
    Look look = LookAtImage(&request, found, image, bytes);
    for (int again = 0; look == Look::kConflict && again < kReadAgain; ++again) {
      session_->channel->CountRetry();
      co_await session_->Yield();
      bytes = std::max(bytes, static_cast<uint32_t>(RecordBytes(request.key.size(), request.payload_bytes)));
      image = writes_.arena().Allocate(bytes);
      status = co_await session_->channel->Read(entry.record, image, bytes);
      if (!status.ok()) co_return status;
      look = LookAtImage(&request, found, image, bytes);
    }
    if (look != Look::kDone) {
      if (look == Look::kGone || !index::RecordHoldsKey(image, request.key)) *doubtful = i;
      co_return Conflict(AbortCause::kLock);
    }
    status = AppendImage(request, entry.record, image, rows, options);
    if (!status.ok()) co_return status;
  }
  co_return absl::OkStatus();
}

// Makes as many calls as necessary: an answer is one message. Each call continues where the owner says that the one
// before it stopped: after a row, or after leaves without rows.
coro::Task<Status> Access::RowsByCalls(const Table& table, RowsWanted wanted, rdma::NodeId node, CallBuffers* buffers,
                                       ScanRows* rows, ScanOptions options) {
  ScanRequest request{.table = table.id(), .range = wanted.range, .window = wanted.window};
  for (bool more = true; more;) {
    rdma::WireWriter writer(buffers->request.room());
    Put(writer, request);
    const std::span<const std::byte> question = writer.written();
    StatusOr<size_t> size = co_await AskOwner(node, kTxnScan, question, buffers->response.room());
    if (!size.ok()) co_return size.status();
    rdma::WireReader reader(buffers->response.room().first(*size));
    Status taken = TakeScanned(table, node, reader, &request, rows, options, &more);
    if (!taken.ok()) co_return taken;
  }
  co_return absl::OkStatus();
}

// Takes one answer to a kTxnScan. If there is more, *request becomes the rest.
Status Access::TakeScanned(const Table& table, rdma::NodeId node, rdma::WireReader& reader, ScanRequest* request,
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
    const std::byte* const image = MakeImage(key, row.state, row.meta, row.payload, &bytes);
    GetRequest got{.table = &table, .key = key, .out = {}, .offset = 0, .for_update = options.for_update};
    if (LookAtImage(&got, {.record = row.record}, image, bytes) != Look::kDone) return MalformedReply(node, "a scan");
    GANNET_RETURN_IF_ERROR(AppendImage(got, row.record, image, rows, options));
  }
  if ((flags & kConfirmedRows) != 0) reads_.Confirm(read_before);
  request->position = next;
  if (request->range.limit != SIZE_MAX) request->range.limit -= n;
  *more = *more && request->range.limit > 0;
  return reader.Finish().ok() ? absl::OkStatus() : MalformedReply(node, "a scan");
}

coro::Task<Status> Access::ScanRemote(const Table& table, index::ScanRange range, ScanRows* rows, ScanOptions options) {
  Status status = co_await RowsOfNodes(table, {.range = range}, rows, options);
  if (!status.ok()) {
    rows->rows_.clear();
    co_return Failed(std::move(status));
  }
  MergeOwnInserts(table, range, rows, options);
  co_return status;
}

}  // namespace gannet::txn
