// Format of a CALL: its request and its response are each one or more fragments, SENT in order on one queue pair.
//
//   | header 24 | payload 0..4072 |
//
// Flow control. Each end of a queue pair always has kWindow receive buffers posted. A caller starts a call only if the
// request fragments of all its unanswered calls on this queue pair, this one included, are at most kWindow, and the
// fragments of the responses that it makes room for are, too. A receiver copies a fragment out of its buffer and posts
// the buffer again as soon as it sees the fragment, before any handler runs. So an answer also returns the buffers of
// its request. A peer that sends more is cut off.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rdma/fabric.h"

namespace gannet::rdma::verbs {

struct FragmentHeader {
  uint64_t call = 0;          // the caller's name for it
  uint32_t total_bytes = 0;   // of the whole message
  uint32_t offset = 0;        // of this fragment's payload in it
  uint32_t room_or_code = 0;  // request: bytes that the response may have; response: its absl::StatusCode
  uint16_t method = 0;        // of a request
  uint16_t reserved = 0;
};
static_assert(sizeof(FragmentHeader) == 24);

inline constexpr uint32_t kFragmentBytes = 4096;
inline constexpr uint32_t kPayloadBytes = kFragmentBytes - sizeof(FragmentHeader);
inline constexpr uint32_t kMaxErrorBytes = 1024;  // of a response's error message
inline constexpr uint32_t kWindow = 64;

// Even an empty message is a fragment.
constexpr uint32_t FragmentsOf(uint64_t bytes) {
  return static_cast<uint32_t>(std::max<uint64_t>(1, (bytes + kPayloadBytes - 1) / kPayloadBytes));
}

static_assert(FragmentsOf(kMaxMessageBytes) <= kWindow);
static_assert(kMaxErrorBytes <= kPayloadBytes);

}  // namespace gannet::rdma::verbs
