// Shared by the files that read and lock records: their limits, and what a request for one row asks for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "index/record_header.h"
#include "rdma/global_address.h"
#include "rdma/slab.h"
#include "txn/store/arena.h"
#include "txn/store/conflict.h"
#include "txn/store/key_status.h"
#include "txn/store/requests.h"

namespace gannet::txn {

// How often a read retries on a record that is locked or being removed before it gives up (Aborted).
inline constexpr int kLookAgain = 64;
// READs of one record that is locked or being written before the access gives up.
inline constexpr int kReadAgain = 16;
// Bytes of the buffer for the first read of a row of variable length. Most rows are not longer.
inline constexpr size_t kFirstViewBytes = 512;
// Largest first READ of a record of variable length, unless its key needs more. A longer record takes a second READ.
inline constexpr size_t kFirstReadOfVariable = 512;
static_assert(std::max(kFirstReadOfVariable, index::HeaderReadBytes(index::kMaxKeyBytes)) <=
                  kLineBytes + rdma::kReadBeyondBytes,
              "a record has one line at least");

// Number of bytes that the first READ of a record with this key brings. index::LookAtRecord compares the whole key.
inline uint32_t FirstReadBytes(const Table& table, const Key& key) {
  const size_t whole = index::RecordBytes(key.size(), table.accepted_payload_bytes());
  if (!table.options().variable_length || whole <= kFirstReadOfVariable) return static_cast<uint32_t>(whole);
  return static_cast<uint32_t>(std::max(kFirstReadOfVariable, index::HeaderReadBytes(key.size())));
}

// The first byte of the payload that the request is about.
inline uint32_t OffsetOf(const GetRequest& request) {
  return request.offset == GetRequest::kWhole ? 0 : request.offset;
}
// A request that reads nothing of the record but its state, to write the record.
inline GetRequest RequestForHandle(const Table& table, const Key& key) {
  return {.table = &table, .key = key, .out = {}, .offset = 0, .for_update = true};
}
// Bytes of the room for the payload of a row whose length is not known.
inline size_t FirstViewBytes(const Table& table) {
  const size_t whole = table.accepted_payload_bytes();
  return table.options().variable_length ? std::min(whole, kFirstViewBytes) : whole;
}
// Reads a whole row into memory of `arena`. HasWholeView tells whether its payload fitted.
inline GetRequest RequestForView(const Table& table, const Key& key, Arena* arena) {
  const size_t room = FirstViewBytes(table);
  return {.table = &table, .key = key, .out = {arena->Allocate(room), room}, .up_to_end = true};
}
// False: the payload is longer than the request's room, which is large enough now; serve the request again.
inline bool HasWholeView(GetRequest* request, Arena* arena) {
  if (request->payload_bytes <= request->out.size()) return true;
  request->out = {arena->Allocate(request->payload_bytes), request->payload_bytes};
  return false;
}
// The part of the request's output that a payload of `payload_bytes` fills: all of it, if it reaches that far.
inline std::span<std::byte> OutWithin(const GetRequest& request, uint32_t payload_bytes) {
  const uint32_t offset = OffsetOf(request);
  if (offset + request.out.size() <= payload_bytes) [[likely]]
    return request.out;
  if (!request.up_to_end) return {};
  return request.out.first(payload_bytes - std::min(payload_bytes, offset));
}
// The result of such a request.
inline Status StatusWithin(const GetRequest& request, uint32_t payload_bytes) {
  const bool whole = request.offset == GetRequest::kWhole;
  const size_t end = OffsetOf(request) + request.out.size();
  if (end == payload_bytes || request.up_to_end || (!whole && end < payload_bytes)) [[likely]]
    return absl::OkStatus();
  if (whole) return RowIsNot(*request.table, request.key, request.out.size(), payload_bytes);
  return PayloadEndsBefore(*request.table, request.key, request.offset, request.out.size(), payload_bytes);
}

// `what`: the request, such as "a read".
inline Status MalformedReply(rdma::NodeId node, const char* what) {
  return absl::InternalError(absl::StrCat("node ", node, " answered ", what, " with a malformed message"));
}

}  // namespace gannet::txn
