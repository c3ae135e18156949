// The calls that a server handles (messages.h).
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "index/shared_leaf/claim/claim.h"
#include "rdma/versioned.h"
#include "ycsb/messages.h"
#include "ycsb/record.h"
#include "ycsb/server.h"
#include "ycsb/workload.h"

namespace gannet::ycsb {
namespace {

// Number of looks at a record that another writer has locked.
constexpr int kSpinsOnLock = 4096;

Status StaysLocked() {
  return Status(absl::StatusCode::kAborted, "");
}

// A lookup has found none; or the leaf is kept, and what is there only its holder knows.
Status NoRecord(uint64_t key, const index::FindResult& found) {
  const index::Witness& leaf = found.witness;
  return index::shared_leaf::IsKept(leaf.seen) ? index::shared_leaf::LeafIsKept(leaf.word, leaf.seen) : NotThere(key);
}

}  // namespace

void Server::RegisterCalls() {
  const auto handle = [this](rdma::MethodId method, Call call) {
    node_->Handle(method,
                  [this, call](rdma::NodeId, std::span<const std::byte> request,
                               std::span<std::byte> response) -> StatusOr<size_t> {
                    rdma::WireReader reader(request);
                    rdma::WireWriter writer(response);
                    index::IndexService::Guard guard(service_.get());
                    GANNET_RETURN_IF_ERROR((this->*call)(guard.context(), reader, writer));
                    return writer.Finish();
                  });
  };
  handle(kGetCall, &Server::ServeGet);
  handle(kUpdateCall, &Server::ServeUpdate);
  handle(kInsertCall, &Server::ServeInsert);
  handle(kScanCall, &Server::ServeScan);
  handle(kReportCall, &Server::ServeReport);
  handle(kModelCall, &Server::ServeModel);
  handle(kReserveCall, &Server::ServeReserve);
}

// The record's first line was prefetched, or costs a miss that the caller charges.
bool Server::ReadRecord(const std::byte* record, std::span<std::byte> value) const {
  for (int spins = 0; spins < kSpinsOnLock; ++spins) {
    Charge(Cost::kRecordLine, RecordLines(value.size()));
    uint64_t state = 0;
    if (rdma::TryReadLocal(record, kValueOffset, value, &state)) return true;
    CpuRelax();
  }
  return false;
}

Status Server::ServeGet(index::Context&, rdma::WireReader& request, rdma::WireWriter& response) {
  const uint64_t key = request.GetU64();
  GANNET_RETURN_IF_ERROR(request.Finish());
  const index::FindResult found = index_->Find(key);
  if (found.record.is_null()) return NoRecord(key, found);
  const std::span<std::byte> value = response.Reserve(options_.value_bytes);
  if (value.empty()) return absl::InvalidArgumentError("get: the client has no room for the value");
  if (!options_.values_in_entries) Charge(Cost::kIndexStep);  // the record is a dependent miss, like the node before it
  return ReadFound(found.record, value) ? absl::OkStatus() : StaysLocked();
}

bool Server::ReadFound(rdma::GlobalAddress found, std::span<std::byte> value) {
  if (!options_.values_in_entries) return ReadRecord(At(found), value);
  CopyValue(found, value);
  return true;
}

// NotFound of Replace: another writer was faster, so the entry is another one now.
Status Server::UpdateEntry(uint64_t key, std::span<const std::byte> value) {
  for (int spins = 0; spins < kSpinsOnLock; ++spins) {
    const index::FindResult found = index_->Find(key);
    if (found.record.is_null()) return NoRecord(key, found);
    Status replaced = index_->Replace(key, found.record, EntryOfValue(value));
    if (!absl::IsNotFound(replaced)) return replaced;
  }
  return StaysLocked();
}

void Server::PutEpoch(const WriteLog::Write& write, rdma::WireWriter& response) const {
  if (options_.durability == DurabilityMode::kSync) response.PutU64(write.epoch());
}

Status Server::ServeUpdate(index::Context&, rdma::WireReader& request, rdma::WireWriter& response) {
  const uint64_t key = request.GetU64();
  const std::span<const std::byte> value = request.GetRaw(options_.value_bytes);
  GANNET_RETURN_IF_ERROR(request.Finish());
  if (options_.values_in_entries) return UpdateEntry(key, value);
  if (!cpu_atomics_ && locked_by_clients_.load(std::memory_order_relaxed)) {
    return absl::FailedPreconditionError(
        "update: clients lock by CAS, which is not atomic with this server's CPU; let all of them call, or none");
  }
  WriteLog::Write write(write_log_.get());
  GANNET_RETURN_IF_ERROR(write.Reserve(value.size()));
  const index::FindResult found = index_->Find(key);
  if (found.record.is_null()) return NotThere(key);
  std::byte* record = At(found.record);
  const size_t lines = RecordLines(value.size());
  Charge(Cost::kIndexStep);
  for (int spins = 0; spins < kSpinsOnLock; ++spins) {
    const uint64_t state = LoadWord(record);
    if (!txn::IsLocked(state) && CompareAndSwapWord(record, state, txn::Locked(state, 0)) == state) {
      const uint64_t next = txn::NextState(state, false);
      write.Append(key, txn::VersionOf(next), value);
      rdma::BeginWrite(record, lines);
      rdma::CopyIn(record, kValueOffset, value);
      Charge(Cost::kRecordLine, lines);
      rdma::EndWrite(record, lines, next);
      PutEpoch(write, response);
      return absl::OkStatus();
    }
    CpuRelax();
  }
  return StaysLocked();
}

Status Server::ServeInsert(index::Context& context, rdma::WireReader& request, rdma::WireWriter& response) {
  const uint64_t key = request.GetU64();
  const std::span<const std::byte> value = request.GetRaw(options_.value_bytes);
  GANNET_RETURN_IF_ERROR(request.Finish());
  if (options_.values_in_entries) return index_->Insert(context, key, EntryOfValue(value), nullptr).status();
  WriteLog::Write write(write_log_.get());
  GANNET_RETURN_IF_ERROR(write.Reserve(value.size()));
  uint64_t state = 0;
  const StatusOr<rdma::GlobalAddress> record = MakeRecord(context, key, value, &state);
  if (!record.ok()) return record.status();
  // Readers that find the record through the index see it locked until its state is stored.
  const StatusOr<index::Change> change = index_->Insert(context, key, *record, nullptr);
  if (!change.ok()) {
    txn::MarkAbsent(At(*record), RecordLines(value.size()), state);
    context.slab->Free(At(*record), RecordBytes(value.size()));
    return change.status();
  }
  const uint64_t next = txn::NextState(state, false);
  write.Append(key, txn::VersionOf(next), value);
  StoreWord(At(*record), next);
  PutEpoch(write, response);
  return absl::OkStatus();
}

Status Server::ServeScan(index::Context&, rdma::WireReader& request, rdma::WireWriter& response) {
  const uint64_t from = request.GetU64();
  const uint16_t limit = request.GetU16();
  GANNET_RETURN_IF_ERROR(request.Finish());
  if (limit == 0 || limit > kMaxScan) return absl::InvalidArgumentError(absl::StrCat("scan: of ", limit, " records"));
  index::ScanResult found;
  GANNET_RETURN_IF_ERROR(index_->Scan({.from = from, .to = UINT64_MAX, .limit = limit}, &found));
  response.PutU16(static_cast<uint16_t>(found.entries.size()));
  if (!options_.values_in_entries) {
    for (const index::Entry& entry : found.entries) Prefetch(At(entry.record));
    Charge(Cost::kIndexStep, (found.entries.size() + kOverlappedMisses - 1) / kOverlappedMisses);
  }
  for (const index::Entry& entry : found.entries) {
    response.PutU64(entry.key.integer());
    const std::span<std::byte> value = response.Reserve(options_.value_bytes);
    if (value.empty()) return absl::InvalidArgumentError("scan: the client has no room for the values");
    if (!ReadFound(entry.record, value)) return StaysLocked();
  }
  return absl::OkStatus();
}

Status Server::ServeReport(index::Context&, rdma::WireReader& request, rdma::WireWriter& response) {
  GANNET_RETURN_IF_ERROR(request.Finish());
  Put(Report(), response);
  return absl::OkStatus();
}

Status Server::ServeModel(index::Context&, rdma::WireReader& request, rdma::WireWriter& response) {
  GANNET_RETURN_IF_ERROR(request.Finish());
  if (xstore_ == nullptr) return absl::UnimplementedError("this kind of index has no model");
  Put(xstore_->model_statistics(), response);
  return absl::OkStatus();
}

Status Server::ServeReserve(index::Context&, rdma::WireReader& request, rdma::WireWriter& response) {
  const uint32_t count = request.GetU32();
  GANNET_RETURN_IF_ERROR(request.Finish());
  uint64_t first = reserved_inserts_.load(std::memory_order_relaxed);
  do {
    if (first + count > max_inserts_.load(std::memory_order_relaxed)) {
      return absl::ResourceExhaustedError("the key space has no room for more inserted keys; start the servers again");
    }
  } while (!reserved_inserts_.compare_exchange_weak(first, first + count, std::memory_order_relaxed));
  response.PutU64(first);
  return absl::OkStatus();
}

}  // namespace gannet::ycsb
