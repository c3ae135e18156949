// The calls of clients to the server that owns a key. Integers are encoded as in rdma/rpc.h; all values of a cluster
// have the same fixed number of bytes.
//
//   kGetCall     u64 key                 -> value                             NotFound
//   kUpdateCall  u64 key, value          -> nothing, or u64 epoch             NotFound
//   kInsertCall  u64 key, value          -> nothing, or u64 epoch             AlreadyExists
//   kScanCall    u64 from, u16 limit     -> u16 n, n x (u64 key, value)       Unimplemented (not an ordered index)
//                                           (the first `limit` keys of this server from `from` on)
//
// An epoch: the write is durable when that epoch is (DurabilityMode::kSync).
// Aborted: the record stays locked by another writer; ask again.
//
// Calls of clients in other processes, outside of the measurement (server_report.h):
//
//   kReportCall   nothing                -> ServerReport
//   kModelCall    nothing                -> ModelStatistics                   Unimplemented (not a learned index)
//   kReserveCall  u32 n                  -> u64 first                         ResourceExhausted (no room for more keys)
//                                           (n numbers of keys to insert, given to this client only; server 0)
#pragma once

#include <string_view>

#include "rdma/fabric.h"

namespace gannet::ycsb {

inline constexpr rdma::MethodId kGetCall = 768;  // ycsb: 768-1023 (rdma/fabric.h)
inline constexpr rdma::MethodId kUpdateCall = 769;
inline constexpr rdma::MethodId kInsertCall = 770;
inline constexpr rdma::MethodId kScanCall = 771;
inline constexpr rdma::MethodId kReportCall = 772;
inline constexpr rdma::MethodId kModelCall = 773;
inline constexpr rdma::MethodId kReserveCall = 774;

// The name of a method for metrics; empty: it is none of these.
constexpr std::string_view NameOfMethod(rdma::MethodId method) {
  constexpr std::string_view kNames[] = {"get", "update", "insert", "scan", "report", "model", "reserve"};
  return method >= kGetCall && method <= kReserveCall ? kNames[method - kGetCall] : "";
}

}  // namespace gannet::ycsb
