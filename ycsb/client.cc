#include "ycsb/client.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "index/shared_leaf/claim/claim.h"
#include "rdma/rpc.h"
#include "rdma/versioned.h"
#include "ycsb/client_internal.h"
#include "ycsb/messages.h"
#include "ycsb/record.h"
#include "ycsb/workload.h"

namespace gannet::ycsb {
namespace {

// The answer to a call, whose leaf is kept.
bool IsKept(const Status& answer) {
  return index::shared_leaf::IsLeafKept(answer);
}

}  // namespace

Client::Client(Connection* connection, const Paths& paths)
    : connection_(connection),
      channel_(&connection->channel()),
      paths_(paths),
      image_(RecordBytes(connection->value_bytes())),
      value_(connection->value_bytes()),
      request_(sizeof(uint64_t) + connection->value_bytes()),
      response_(sizeof(uint16_t) + kMaxScan * (sizeof(uint64_t) + connection->value_bytes())) {}

coro::Task<StatusOr<size_t>> Client::Ask(rdma::NodeId server, rdma::MethodId method,
                                         std::span<const std::byte> request) {
  Patience patience;
  while (true) {
    StatusOr<size_t> bytes = co_await channel_->Call(server, method, request, response_);
    if (bytes.ok() || !absl::IsAborted(bytes.status())) co_return bytes;
    channel_->CountRetry();
    if (patience.over()) co_return Patience::Error();
    co_await connection_->Yield();
  }
}

txn::PathChoice Client::ChooseForKey(Path path, txn::AccessKind kind, uint64_t key, rdma::NodeId server) {
  txn::OffloadChooser& chooser = connection_->chooser();
  txn::AskedAccess asked{.kind = kind, .owner = server};
  if (path != Path::kAdaptive) return chooser.Fixed(kind, asked.table, server, Fixed(path));
  const index::Key index_key(key);
  const LocationCache* const locations = connection_->locations();
  if (locations == nullptr || locations->Find(key).is_null()) {
    asked.reads = connection_->index(server).Estimate(std::span(&index_key, 1));
  }
  if (connection_->values_in_entries()) {
    // The cache has the leaf.
    if (asked.reads.reads == 0) return chooser.Fixed(kind, asked.table, server, txn::AccessPath::kOneSided);
    // The lock, and the lines.
    if (kind == txn::AccessKind::kChange) asked.reads += {.postings = 2, .reads = 2, .bytes = 3 * kLineBytes};
  } else {
    asked.reads += {.postings = 1, .reads = 1, .bytes = static_cast<double>(image_.size())};
  }
  asked.answer_bytes = static_cast<double>(value_.size());
  return chooser.Choose(asked, connection_->LoadOf(server), connection_->random());
}

coro::Task<Status> Client::Read(uint64_t key) {
  const rdma::NodeId server = connection_->keys().OwnerOf(key);
  const txn::PathChoice choice = ChooseForKey(paths_.reads, txn::AccessKind::kGet, key, server);
  txn::MeasuredAccess measured(channel_, &connection_->chooser(), choice.measured);
  Status read;
  if (choice.path == txn::AccessPath::kOneSided) {
    if (connection_->values_in_entries()) {
      read = co_await ReadEntry(key);
    } else {
      read = co_await ReadOneSided(key);
      if (read.ok()) rdma::CopyOut(image_.data(), kValueOffset, value_);
    }
  } else {
    read = co_await ReadByCall(key, server);
  }
  measured.End(read, choice);
  if (!IsKept(read)) co_return read;
  // A thread of this machine keeps the leaf since a moment ago.
  read = co_await ReadEntry(key);
  co_return read;
}

coro::Task<Status> Client::ReadByCall(uint64_t key, rdma::NodeId server) {
  rdma::WireWriter writer(request_);
  writer.PutU64(key);
  const std::span<const std::byte> request = writer.written();
  const StatusOr<size_t> bytes = co_await Ask(server, kGetCall, request);
  if (!bytes.ok()) co_return bytes.status();
  if (*bytes != value_.size()) co_return absl::InternalError("a server's answer to a get has the wrong size");
  std::memcpy(value_.data(), response_.data(), value_.size());
  co_return absl::OkStatus();
}

coro::Task<Status> Client::ReadRemembered(uint64_t key) {
  LocationCache& locations = *connection_->locations();
  record_ = locations.Find(key);
  if (record_.is_null()) co_return NotThere(key);
  Patience patience;
  while (true) {
    const Status read = co_await channel_->Read(record_, image_.data(), static_cast<uint32_t>(image_.size()));
    GANNET_CO_RETURN_IF_ERROR(read);
    const index::RecordLook look = LookAt(image_.data(), value_.size(), key);
    if (look.is == index::RecordImage::kWhole) co_return absl::OkStatus();
    if (!look.is_unsettled()) break;
    channel_->CountRetry();
    if (patience.over()) co_return Patience::Error();
    co_await connection_->Yield();
  }
  locations.Forget(key);
  co_return NotThere(key);
}

coro::Task<Status> Client::ReadEntry(uint64_t key) {
  const InEpoch in(connection_);
  const StatusOr<index::FindResult> found = co_await connection_->FindEntry(key);
  if (!found.ok()) co_return found.status();
  if (found->record.is_null()) co_return NotThere(key);
  CopyValue(found->record, value_);
  co_return absl::OkStatus();
}

coro::Task<Status> Client::ReadOneSided(uint64_t key) {
  const InEpoch in(connection_);
  if (connection_->locations() != nullptr) {
    Status remembered = co_await ReadRemembered(key);
    if (!absl::IsNotFound(remembered)) co_return remembered;
  }
  index::RemoteIndex& index = connection_->index(connection_->keys().OwnerOf(key));
  const auto bytes = static_cast<uint32_t>(image_.size());
  Patience patience;
  while (true) {
    coro::Async<StatusOr<index::FindResult>> find = index.Find(key);
    const StatusOr<index::FindResult> found = co_await find;
    if (!found.ok()) co_return found.status();
    if (found->record.is_null()) co_return NotThere(key);
    record_ = found->record;
    index::RecordLook look;
    while (true) {
      const Status read = co_await channel_->Read(record_, image_.data(), bytes);
      GANNET_CO_RETURN_IF_ERROR(read);
      look = LookAt(image_.data(), value_.size(), key);
      if (!look.is_unsettled()) break;
      channel_->CountRetry();
      if (patience.over()) co_return Patience::Error();
      co_await connection_->Yield();
    }
    if (look.is == index::RecordImage::kWhole) {
      if (connection_->locations() != nullptr) connection_->locations()->Put(key, record_);
      co_return absl::OkStatus();
    }
    // The cached address is stale, or belongs to another key with the same tag (index/index.h).
    if (!found->from_cache) co_return NotThere(key);
    index.Forget(key);
  }
}

coro::Task<Status> Client::Update(uint64_t key, std::span<const std::byte> value) {
  Status updated;
  if (connection_->values_in_entries()) {
    updated = co_await ChangeEntry(paths_.updates, kUpdateCall, key, value);
  } else if (paths_.updates == Path::kOneSided) {
    updated = co_await UpdateRecord(key, value);
  } else {
    updated = co_await Change(kUpdateCall, key, value);
  }
  co_return updated;
}

coro::Task<Status> Client::ChangeEntry(Path path, rdma::MethodId method, uint64_t key,
                                       std::span<const std::byte> value) {
  const rdma::NodeId server = connection_->keys().OwnerOf(key);
  const txn::PathChoice choice = ChooseForKey(path, txn::AccessKind::kChange, key, server);
  txn::MeasuredAccess measured(channel_, &connection_->chooser(), choice.measured);
  Status changed;
  if (choice.path == txn::AccessPath::kOneSided) {
    changed = co_await ChangeEntryOneSided(method, key, value);
  } else {
    changed = co_await Change(method, key, value);
  }
  measured.End(changed, choice);
  if (!IsKept(changed)) co_return changed;
  changed = co_await ChangeEntryOneSided(method, key, value);
  co_return changed;
}

coro::Task<Status> Client::ChangeEntryOneSided(rdma::MethodId method, uint64_t key, std::span<const std::byte> value) {
  const InEpoch in(connection_);
  Status changed;
  if (method == kInsertCall) {
    changed = co_await connection_->Insert(key, EntryOfValue(value));
  } else {
    changed = co_await connection_->Replace(key, EntryOfValue(value));
  }
  co_return changed;
}

coro::Task<Status> Client::UpdateRecord(uint64_t key, std::span<const std::byte> value) {
  const size_t lines = RecordLines(value.size());
  Patience patience;
  while (true) {
    const Status read = co_await ReadOneSided(key);
    GANNET_CO_RETURN_IF_ERROR(read);
    const uint64_t state = LoadWord(image_.data());
    const uint64_t locked = txn::Locked(state, txn::OwnerBits(channel_->node(), channel_->index()));
    const StatusOr<uint64_t> was = co_await channel_->CompareAndSwap(record_, state, locked);
    if (!was.ok()) co_return was.status();
    if (*was != state) {
      channel_->CountRetry();
      if (patience.over()) co_return Patience::Error();
      co_await connection_->Yield();
      continue;
    }
    // One line is written and unlocked in one step. Of several lines, the first stays locked until all are written.
    const uint64_t next = txn::NextState(state, false);
    rdma::CopyIn(image_.data(), kValueOffset, value);
    rdma::StampImage(image_.data(), lines, lines == 1 ? next : locked, next);
    Charge(Cost::kRecordLine, lines);
    std::array<rdma::Operation, 2> writes = {
        rdma::Operation::Write(image_.data(), record_, static_cast<uint32_t>(image_.size())),
        rdma::Operation::Write(&next, record_, kWordBytes)};
    const std::span<rdma::Operation> operations = std::span(writes).first(lines == 1 ? 1 : 2);
    Status written = co_await channel_->Post(operations);
    co_return written;
  }
}

coro::Task<Status> Client::Change(rdma::MethodId method, uint64_t key, std::span<const std::byte> value) {
  rdma::WireWriter writer(request_);
  writer.PutU64(key);
  std::memcpy(writer.Reserve(value.size()).data(), value.data(), value.size());
  const std::span<const std::byte> request = writer.written();
  const rdma::NodeId server = connection_->keys().OwnerOf(key);
  const StatusOr<size_t> bytes = co_await Ask(server, method, request);
  if (!bytes.ok() || !connection_->awaits_durability()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(response_).first(*bytes));
  const uint64_t epoch = reader.GetU64();
  GANNET_CO_RETURN_IF_ERROR(reader.Finish());
  Status durable = co_await connection_->AwaitDurable(server, epoch);
  co_return durable;
}

coro::Task<Status> Client::Insert(uint64_t key, std::span<const std::byte> value) {
  Status inserted;
  if (connection_->values_in_entries()) {
    inserted = co_await ChangeEntry(paths_.inserts, kInsertCall, key, value);
  } else {
    inserted = co_await Change(kInsertCall, key, value);
  }
  co_return inserted;
}

}  // namespace gannet::ycsb
