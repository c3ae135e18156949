#include "txn/access/remote_reader.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/sometimes.h"
#include "index/record_image.h"
#include "rdma/versioned.h"
#include "txn/access/access_internal.h"
#include "txn/access/path_choice.h"
#include "txn/node/row_checks.h"
#include "txn/record/record.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

using index::FindResult;
using index::PayloadDataOffset;
using index::RecordBytes;

namespace {

// Room for a kTxnRead: in place for a short key.
using Question = absl::InlinedVector<std::byte, 128>;

}  // namespace

Look RemoteReader::LookAtImage(GetRequest* request, const FindResult& found, const std::byte* image,
                               size_t image_bytes) {
  // An index cache may have an address where another key's record lies now.
  if (const int own = writes_.FindRecord(found.record);
      own >= 0 && writes_[own].table == request->table && writes_[own].key == request->key) {
    writes_.ReadOwn(own, request);
    return Look::kDone;
  }
  const index::RecordLook look = index::LookAtRecord(image, image_bytes, request->table->id(), request->key);
  switch (look.is) {
    case index::RecordImage::kLocked:
      Sometimes<"read: a record of another node is locked">();
      return Look::kConflict;
    case index::RecordImage::kTorn:
      Sometimes<"read: a record of another node is torn">();
      return Look::kConflict;
    case index::RecordImage::kAbsent:
      return Look::kGone;
    case index::RecordImage::kOther:
      Sometimes<"read: the address of a record leads to another key">();
      if (found.from_cache || found.witness.word.is_null()) return Look::kGone;
      ReadMissing(reads_, writes_, request, found.witness);
      return Look::kDone;
    case index::RecordImage::kLonger:
      request->payload_bytes = look.meta.payload_bytes;
      return Look::kConflict;
    case index::RecordImage::kWhole:
      request->payload_bytes = look.meta.payload_bytes;
      break;
  }
  reads_.NoteVerbs();
  if (request->for_update) {
    request->handle = writes_.AddForUpdate(*request, found.record, look.state, nullptr, const_cast<std::byte*>(image));
  } else {
    request->handle = {};
    reads_.AddRecord(found.record, look.state);
  }
  rdma::CopyOut(image, PayloadDataOffset(request->key.size()) + OffsetOf(*request),
                OutWithin(*request, request->payload_bytes));
  request->status = StatusWithin(*request, request->payload_bytes);
  return Look::kDone;
}

coro::Task<Status> RemoteReader::Get(GetRequest* request) {
  GANNET_CO_RETURN_IF_ERROR(CheckRow(*session_->local, *request->table, request->key));
  const rdma::NodeId owner = request->table->OwnerOf(request->key, session_->self);
  StatusOr<index::RemoteIndex*> remote = session_->RemoteIndexOf(*request->table, owner);
  if (!remote.ok()) co_return remote.status();
  reads_.NoteVerbs();
  const PathChoice choice = ChooseForKey(*session_, *request, owner, **remote);
  MeasuredAccess measured = session_->Measure(choice.measured);
  Status status;
  if (choice.path == AccessPath::kCall) {
    status = co_await GetByCall(request, owner);
  } else {
    status = co_await GetByReads(request, *remote);
  }
  measured.End(status, choice);
  co_return status;
}

coro::Task<Status> RemoteReader::GetByReads(GetRequest* request, index::RemoteIndex* remote) {
  rdma::GlobalAddress gone;
  for (int looks = 0; looks < kReadAgain; ++looks) {
    StatusOr<FindResult> found = co_await remote->Find(request->key);
    if (!found.ok()) co_return found.status();
    if (found->is_lost()) co_return IndexDamaged(*request->table, request->key);
    if (found->record.is_null()) {
      ReadMissing(reads_, writes_, request, found->witness);
      co_return Served(request);
    }
    // If an index that others damage leads to a record that was gone before, it will do so again (StillLeadsTo).
    const bool is_judged = request->table->index_traits().client_writes && !found->from_cache;
    if (is_judged && (found->record == gone || !MayBeRecordOf(*request->table, request->key, found->record))) {
      co_return IndexDamaged(*request->table, request->key);
    }
    uint32_t bytes = FirstReadBytes(*request->table, request->key);
    Look look = Look::kConflict;
    uint64_t state = 0;
    bool holds_key = true;
    for (int reads = 0; reads < kReadAgain && look == Look::kConflict; ++reads) {
      if (reads > 0) session_->channel->CountRetry();
      if (reads > 2) co_await session_->Yield();
      std::byte* image = writes_.arena().Allocate(bytes);
      Status read = co_await session_->channel->Read(found->record, image, bytes);
      if (!read.ok()) co_return read;
      request->payload_bytes = 0;
      look = LookAtImage(request, *found, image, bytes);
      state = LoadWord(image);
      holds_key = !is_judged || index::RecordHoldsKey(image, request->key);
      if (look == Look::kConflict && request->payload_bytes > 0) {  // longer than the READ
        bytes = static_cast<uint32_t>(RecordBytes(request->key.size(), request->payload_bytes));
      }
    }
    if (look == Look::kConflict) {
      Sometimes<"read: a record of another node stays locked or torn">();
      // It may not be a record any more, but part of something that is always being written.
      if (found->from_cache) remote->Forget(request->key);
      // A locked record has its key, too (LeadsToKey).
      if (is_judged && !holds_key && found->witness.word.is_null()) {
        co_return IndexDamaged(*request->table, request->key);
      }
      co_return session_->LockedTooLong(state);
    }
    if (look == Look::kDone) co_return Served(request);
    gone = is_judged ? found->record : rdma::GlobalAddress();
    remote->Forget(request->key);
  }
  co_return Conflict(AbortCause::kIndex);
}

const std::byte* RemoteReader::MakeImage(const Key& key, uint64_t state, index::RecordMeta meta,
                                         std::span<const std::byte> payload, size_t* bytes) {
  *bytes = RecordBytes(key.size(), payload.size());
  std::byte* const image = writes_.arena().Allocate(*bytes);
  rdma::StampImage(image, *bytes / kLineBytes, state, state);
  index::StoreHeader(image, meta, key);
  rdma::CopyIn(image, PayloadDataOffset(key.size()), payload);
  return image;
}

coro::Task<StatusOr<size_t>> RemoteReader::AskOwner(rdma::NodeId owner, rdma::MethodId method,
                                                    std::span<const std::byte> question, std::span<std::byte> room) {
  for (int asked = 1;; ++asked) {
    StatusOr<size_t> size =
        co_await session_->channel->Call(owner, method, question, room, session_->local->options.call_timeout);
    if (!absl::IsAborted(size.status())) co_return size;
    if (asked == kReadAgain) co_return Conflict(AbortCause::kLock);
    session_->channel->CountRetry();
    co_await session_->Yield();
  }
}

coro::Task<Status> RemoteReader::GetByCall(GetRequest* request, rdma::NodeId owner) {
  Question message(sizeof(TableId) + index::WireKeyBytes(request->key));
  rdma::WireWriter writer{std::span<std::byte>(message)};
  writer.PutU16(request->table->id());
  index::PutKey(writer, request->key);
  const std::span<const std::byte> question = writer.written();
  StatusOr<size_t> size = co_await AskOwner(owner, kTxnRead, question, response_.room());
  if (!size.ok()) co_return size.status();

  rdma::WireReader reader(response_.room().first(*size));
  const auto outcome = static_cast<ReadOutcome>(reader.GetU8());
  if (outcome == ReadOutcome::kLocked || !TakeAnswer(reader, outcome, request) || !reader.Finish().ok()) {
    co_return MalformedReply(owner, "a read");
  }
  co_return Served(request);
}

bool RemoteReader::TakeAnswer(rdma::WireReader& reader, ReadOutcome outcome, GetRequest* request) {
  const index::Witness where = index::GetWitness(reader);  // the witness, or the record and its state
  if (outcome == ReadOutcome::kAbsent) {
    if (reader.ok()) ReadMissing(reads_, writes_, request, where);
    return reader.ok();
  }
  const index::RecordMeta meta = index::RecordMeta::Unpack(reader.GetU64());
  const std::span<const std::byte> payload = reader.GetBytes();
  if (!reader.ok() || meta.payload_bytes != payload.size() || meta.key_bytes != request->key.size()) return false;
  size_t bytes = 0;
  const std::byte* const image = MakeImage(request->key, where.seen, meta, payload, &bytes);
  if (LookAtImage(request, {.record = where.word}, image, bytes) != Look::kDone) return false;
  Remember(*request, where.word);
  return true;
}

// Calls teach the client's cache, too. Otherwise a client that makes calls because its cache is empty would go on so.
void RemoteReader::Remember(const GetRequest& request, rdma::GlobalAddress record) {
  if (!session_->paths.adaptive()) return;
  const StatusOr<index::RemoteIndex*> index = session_->RemoteIndexOf(*request.table, record.node());
  if (index.ok()) (*index)->Remember(request.key, record);
}

}  // namespace gannet::txn
