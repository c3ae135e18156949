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
// A call needs a leaf that its machine does not keep (ClusterOptions::keeping); so adaptive paths push down only what
// the machine has not cached (DEX, VLDB'24, section 6), and scans of kept leaves are never pushed down.
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

struct Paths {
  Path reads = Path::kOneSided;  // also of scans
  // Updates of records: one-sided or by call, the same for all clients, since locks are taken either by NICs or by the
  // owner. Of entries that hold values: any.
  Path updates = Path::kCall;
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

  // This path, or the chooser's. `kind`: kGet or kChange.
  txn::PathChoice ChooseForKey(Path path, txn::AccessKind kind, uint64_t key, rdma::NodeId server);
  txn::PathChoice ChooseForScan(const index::ScanRange& range, rdma::NodeId server);
  coro::Task<Status> ReadByCall(uint64_t key, rdma::NodeId server);
  // Reads at a cached address into image_. NotFound if the record there does not hold `key`.
  coro::Task<Status> ReadRemembered(uint64_t key);
  coro::Task<Status> ReadOneSided(uint64_t key);
  coro::Task<Status> ReadEntry(uint64_t key);
  coro::Task<Status> UpdateRecord(uint64_t key, std::span<const std::byte> value);
  // Updates or inserts (`method`) a value that lies in an entry.
  coro::Task<Status> ChangeEntry(Path path, rdma::MethodId method, uint64_t key, std::span<const std::byte> value);
  coro::Task<Status> ChangeEntryOneSided(rdma::MethodId method, uint64_t key, std::span<const std::byte> value);
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
