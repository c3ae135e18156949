#include "txn/access/local_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/sometimes.h"
#include "index/own_locations.h"
#include "rdma/versioned.h"
#include "txn/access/access_internal.h"
#include "txn/node/index_damage.h"
#include "txn/node/row_checks.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

using index::FindResult;
using index::PayloadDataOffset;

namespace {

constexpr int kSpinsOnLock = 256;

// Lines of the record from its start to the last one that the request needs.
size_t LinesToRead(const GetRequest& request) {
  return rdma::LinesFor(PayloadDataOffset(request.key.size()) + OffsetOf(request) + request.out.size());
}

// Does what rdma::CopyOut does. Most payloads that are read alone are a few whole words in the first line of their
// record.
[[gnu::always_inline]] inline void CopyPayload(const std::byte* record, size_t data_offset, std::span<std::byte> out) {
  if ((data_offset | out.size()) % kWordBytes != 0 || data_offset + out.size() > rdma::kLineDataBytes) {
    return rdma::CopyOut(record, data_offset, out);
  }
  const std::byte* const from = record + rdma::PlaceOf(0) + data_offset;
  for (size_t at = 0; at < out.size(); at += kWordBytes) {
    const uint64_t word = LoadWord(from + at);
    std::memcpy(out.data() + at, &word, kWordBytes);
  }
}

// One attempt to copy what `request` asks for from a record. False if it was locked or changed during the copy; then
// *state is the last word seen.
[[gnu::always_inline]] inline bool TryCopy(const std::byte* record, GetRequest* request, uint64_t* state) {
  *state = LoadWord(record);
  if (IsLocked(*state)) return false;
  request->payload_bytes = index::LoadMeta(record).payload_bytes;
  const std::span<std::byte> out = OutWithin(*request, request->payload_bytes);
  CopyPayload(record, PayloadDataOffset(request->key.size()) + OffsetOf(*request), out);
  Charge(Cost::kRecordLine, 1 + out.size() / rdma::kLineDataBytes);
  PreemptionPoint();
  const uint64_t after = LoadWord(record);
  const bool unchanged = after == *state;
  *state = after;
  return unchanged;
}

}  // namespace

Look LocalReader::LookAt(GetRequest* request, rdma::GlobalAddress address) {
  if (!LeadsToKey(*session_->local, *request->table, request->key, address)) [[unlikely]]
    return Look::kDamaged;
  if (const int own = writes_.FindRecord(address); own >= 0) {
    writes_.ReadOwn(own, request);
    return Look::kDone;
  }
  std::byte* record = session_->Direct(address);
  uint64_t state;
  int spins = 0;
  while (!TryCopy(record, request, &state)) {
    if (++spins > kSpinsOnLock) {
      Sometimes<"read: a record of this node stays locked">();
      session_->conflict.Note(*request->table, request->key);
      request->status = session_->LockedTooLong(state);
      return Look::kConflict;
    }
    CpuRelax();
  }
  if (IsAbsent(state)) {
    Sometimes<"read: a record of this node goes away between index and read">();
    return Look::kGone;
  }
  if (request->for_update) {
    request->handle = writes_.AddForUpdate(*request, address, state, record, nullptr);
  } else {
    request->handle = {};
    reads_.AddRecord(address, state);
  }
  request->status = StatusWithin(*request, request->payload_bytes);
  return Look::kDone;
}

Status LocalReader::Get(GetRequest* request) {
  GANNET_RETURN_IF_ERROR(CheckRow(*session_->local, *request->table, request->key));
  index::OwnLocations* const locations = request->table->own_locations();
  uint64_t hash = 0;
  if (locations != nullptr) {
    hash = locations->HashOf(request->key);
    const rdma::GlobalAddress record =
        locations->IsFor(hash) ? locations->Find(hash, request->key, LinesToRead(*request)) : rdma::GlobalAddress();
    if (!record.is_null()) [[likely]] {
      const Look look = LookAt(request, record);
      if (look == Look::kDone) [[likely]]
        return Served(request);
      if (look == Look::kConflict) return request->status;
    }
  }
  for (int looks = 0; looks < kLookAgain; ++looks) {
    const FindResult found = request->table->local_index().Find(request->key);
    if (found.is_lost()) [[unlikely]]
      return IndexDamaged(*request->table, request->key);
    if (found.record.is_null()) {
      ReadMissing(reads_, writes_, request, found.witness);
      return Served(request);
    }
    switch (LookAt(request, found.record)) {
      case Look::kDone:
        if (locations != nullptr) locations->Remember(hash, found.record, *session_->participant);
        return Served(request);
      case Look::kConflict:
        return request->status;
      case Look::kGone:
        if (StillLeadsTo(*request->table, request->key, found.record)) {
          return IndexDamaged(*request->table, request->key);
        }
        CpuRelax();
        break;
      case Look::kDamaged:
        return IndexDamaged(*request->table, request->key);
    }
  }
  return Conflict(AbortCause::kIndex);
}

namespace {

// Number of requests that pass through the steps of a lookup together: more than the cache misses that a core can have
// in flight.
constexpr size_t kLookupGroup = 64;

bool HoldsKey(const std::byte* record, const Key& key) {
  if (key.kind() != index::KeyKind::kInteger) return index::RecordHoldsKey(record, key);
  return LoadWord(record + rdma::PlaceOf(index::kKeyDataOffset)) == key.integer();
}

void PrefetchLines(const std::byte* record, const GetRequest& request) {
  const size_t from = PayloadDataOffset(request.key.size()) + OffsetOf(request);
  for (size_t at = from; at < from + request.out.size(); at += rdma::kLineDataBytes) {
    Prefetch(record + rdma::PlaceOf(at));
  }
}

}  // namespace

// Puts the certain or probable addresses of all requests' records into found_, and prefetches their lines. Indexes that
// predict records take two steps, such as the buckets and then the records, each for all requests at once: a cache miss
// is waited for once per step.
Status LocalReader::Locate(std::span<GetRequest> requests) {
  found_.resize(std::max(found_.size(), requests.size()));
  pending_.clear();
  for (uint32_t i = 0; i < requests.size(); ++i) {
    const GetRequest& request = requests[i];
    GANNET_RETURN_IF_ERROR(CheckRow(*session_->local, *request.table, request.key));
    if (request.table->index_traits().guesses_records) {
      request.table->local_index().PrefetchFor(request.key);
    } else {
      pending_.push_back(i);
    }
  }
  FindOrdered(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const GetRequest& request = requests[i];
    if (request.table->index_traits().guesses_records) {
      found_[i] = {.record = request.table->local_index().GuessRecord(request.key)};
    }
    if (found_[i].record.is_null()) continue;
    Prefetch(session_->Direct(found_[i].record));
    PrefetchLines(session_->Direct(found_[i].record), request);
  }
  return absl::OkStatus();
}

// Looks up the requests in pending_, those of one table together; results go to found_.
void LocalReader::FindOrdered(std::span<const GetRequest> requests) {
  while (!pending_.empty()) {
    const Table* table = requests[pending_.front()].table;
    keys_.clear();
    group_.clear();
    size_t kept = 0;
    for (const uint32_t i : pending_) {
      if (requests[i].table == table) {
        keys_.push_back(requests[i].key);
        group_.push_back(i);
      } else {
        pending_[kept++] = i;
      }
    }
    pending_.resize(kept);
    results_.resize(std::max(results_.size(), keys_.size()));
    table->local_index().FindMany(keys_, std::span(results_).first(keys_.size()));
    for (size_t n = 0; n < group_.size(); ++n) found_[group_[n]] = results_[n];
  }
}

Status LocalReader::GetMany(std::span<GetRequest> requests) {
  for (; requests.size() > kLookupGroup; requests = requests.subspan(kLookupGroup)) {
    GANNET_RETURN_IF_ERROR(GetGroup(requests.first(kLookupGroup)));
  }
  return GetGroup(requests);
}

Status LocalReader::GetGroup(std::span<GetRequest> requests) {
  GANNET_RETURN_IF_ERROR(Locate(requests));
  for (size_t i = 0; i < requests.size(); ++i) {
    GetRequest& request = requests[i];
    FindResult found = found_[i];
    if (request.table->index_traits().guesses_records &&
        (found.record.is_null() || !HoldsKey(session_->Direct(found.record), request.key))) [[unlikely]] {
      found = request.table->local_index().Find(request.key);
    }
    if (found.is_lost()) [[unlikely]]
      return IndexDamaged(*request.table, request.key);
    if (found.record.is_null()) {
      ReadMissing(reads_, writes_, &request, found.witness);
      GANNET_RETURN_IF_ERROR(Served(&request));
      continue;
    }
    switch (LookAt(&request, found.record)) {
      case Look::kDone:
        GANNET_RETURN_IF_ERROR(Served(&request));
        break;
      case Look::kConflict:
        return request.status;
      case Look::kGone:
        GANNET_RETURN_IF_ERROR(Get(&request));
        break;
      case Look::kDamaged:
        return IndexDamaged(*request.table, request.key);
    }
  }
  return absl::OkStatus();
}

}  // namespace gannet::txn
