// Client: the operations of YCSB, used by one coroutine.
//
//              one-sided                                            by call
//   Read       the index client's lookup, then a READ of the record   one CALL
//   Scan       the index client's scan, then READs of its records     one CALL per server that it touches
//   Update     Read, CAS to lock the record, WRITE it, unlock it      one CALL
//   Insert     -                                                      one CALL
//
// If values lie in the entries of the index (ClusterOptions::values_in_entries), there are no records to READ, and
// clients may change the index itself, if it is of a kind that they can change:
//
//   Update     RemoteIndex::Replace                                   one CALL
//   Insert     RemoteIndex::Insert                                    one CALL
//
// If writes are logged (ClusterOptions::durability), they are calls: a log is its owner's.
//
// Adjacent records of a scan, such as records that were loaded together, are fetched with one READ.
//
// XStore (OSDI'20, section 5) does Read and Scan one-sided and the rest by call. The "server-centric" designs to which
// it is compared do everything by call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "rdma/fabric.h"
#include "txn/access/neighbour_reads.h"
#include "txn/path/offload_chooser.h"
#include "txn/store/arena.h"
#include "ycsb/connection.h"

namespace gannet::ycsb {

// kAdaptive: for each access the one that is estimated to be cheaper (txn/path/offload_chooser.h).
enum class Path : uint8_t { kOneSided, kCall, kAdaptive };
inline constexpr std::string_view kPathNames[] = {"one-sided", "rpc", "adaptive"};
inline constexpr std::string_view kUpdatePathNames[] = {"one-sided", "rpc"};

struct Paths {
  Path reads = Path::kOneSided;  // also of scans
  Path updates = Path::kCall;    // the same for all clients: locks are taken either by NICs or by the owner
  Path inserts = Path::kCall;
};

// Not thread-safe; one operation at a time. `connection` must outlive it.
class Client {
 public:
  Client(Connection* connection, const Paths& paths);

  // Reads the key's value into value(). NotFound. DeadlineExceeded: the record stayed locked.
  coro::Task<Status> Read(uint64_t key);
  std::span<const std::byte> value() const { return value_; }

  // NotFound and DeadlineExceeded as for Read.
  coro::Task<Status> Update(uint64_t key, std::span<const std::byte> value);
  // AlreadyExists if the key is there.
  coro::Task<Status> Insert(uint64_t key, std::span<const std::byte> value);

  // Reads the first `limit` (at most kMaxScan) keys from `from` on, and their values: scanned_keys(), ScannedValue(i).
  // `last`: of the server of `from`, if the scan ends there; otherwise it goes on at the next one.
  coro::Task<Status> Scan(uint64_t from, size_t limit, std::optional<uint64_t> last = std::nullopt);
  std::span<const uint64_t> scanned_keys() const { return scanned_keys_; }
  std::span<const std::byte> ScannedValue(size_t i) const {
    return std::span(scanned_values_).subspan(i * value_.size(), value_.size());
  }

 private:
  class InEpoch;
  class Patience;

  // The fixed path, or the chooser's.
  txn::PathChoice ChooseForKey(uint64_t key, rdma::NodeId server);
  txn::PathChoice ChooseForScan(const index::ScanRange& range, rdma::NodeId server);
  coro::Task<Status> ReadByCall(uint64_t key, rdma::NodeId server);
  // Reads at a cached address into image_. NotFound if the record there does not hold `key`.
  coro::Task<Status> ReadRemembered(uint64_t key);
  coro::Task<Status> ReadOneSided(uint64_t key);
  coro::Task<Status> ReadEntry(uint64_t key);
  coro::Task<Status> UpdateOneSided(uint64_t key, std::span<const std::byte> value);
  // Calls the owner of `key`, and repeats the call while it returns Aborted. Returns the size of the response.
  coro::Task<StatusOr<size_t>> Ask(rdma::NodeId server, rdma::MethodId method, std::span<const std::byte> request);
  coro::Task<Status> Change(rdma::MethodId method, uint64_t key, std::span<const std::byte> value);

  // Defined in client_scan.cc.
  coro::Task<Status> ScanServer(rdma::NodeId server, uint64_t from, uint64_t to, size_t limit);
  coro::Task<Status> ScanByReads(rdma::NodeId server, const index::ScanRange& range);
  coro::Task<Status> ScanByCall(rdma::NodeId server, uint64_t from, size_t limit);
  coro::Task<Status> ReadEntries();

  Connection* connection_;
  rdma::Channel* channel_;
  const Paths paths_;
  rdma::GlobalAddress record_;  // of the last ReadOneSided, whose image is in image_
  std::vector<std::byte> image_;
  std::vector<std::byte> value_;
  std::vector<std::byte> request_;
  std::vector<std::byte> response_;

  index::ScanResult found_;
  std::vector<rdma::Operation> reads_;
  txn::NeighbourReads images_;  // of the records of found_
  txn::Arena image_memory_;
  std::vector<uint64_t> scanned_keys_;
  std::vector<std::byte> scanned_values_;
};

}  // namespace gannet::ycsb
