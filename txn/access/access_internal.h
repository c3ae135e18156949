// Shared by the files that read and lock records.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "rdma/global_address.h"
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

// The first byte of the payload that the request is about.
inline uint32_t OffsetOf(const GetRequest& request) {
  return request.offset == GetRequest::kWhole ? 0 : request.offset;
}
// Reads nothing of the record but its state, to write it.
inline GetRequest RequestForHandle(const Table& table, const Key& key) {
  return {.table = &table, .key = key, .out = {}, .offset = 0, .for_update = true};
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
