// Transactions that take all data of three nodes from one round to the next: fixed and variable records, small ones and
// ones of several lines, removals and inserts, records that move. A transaction that reads all data must find a single
// round.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {

class Rounds {
 public:
  static constexpr int kNodes = 3;

  explicit Rounds(Cluster* cluster) : cluster_(cluster) {}

  static std::vector<TableOptions> Tables(IndexKind ordered = IndexKind::kXStore,
                                          std::optional<IndexRights> rights = {}) {
    return {{.name = "points", .payload_bytes = sizeof(Account), .expected_rows = 100, .placement = ByNumber()},
            {.name = "small", .payload_bytes = sizeof(uint64_t), .expected_rows = 100, .placement = ByNumber()},
            {.name = "ordered",
             .index = ordered,
             .index_rights = rights,
             .payload_bytes = sizeof(uint64_t),
             .placement = ByNumber()},
            {.name = "text",
             .key_kind = index::KeyKind::kBytes,
             .max_key_bytes = 8,
             .payload_bytes = 4000,
             .variable_length = true,
             .expected_rows = 100,
             .placement = ByNumber()}};
  }

  // Does round 0.
  Status Load(BlockingTransaction& t, int from) {
    for (uint64_t node = first_; node < end_; ++node) {
      if (Status s = t.Insert(Of(from, "points"), kStays + node, Account{}); !s.ok()) return s;
      if (Status s = t.Insert(Of(from, "small"), kStays + node, uint64_t{0}); !s.ok()) return s;
      if (Status s = t.Insert(Of(from, "ordered"), kComesAt + node, uint64_t{0}); !s.ok()) return s;
      if (Status s = t.Insert(Of(from, "text"), TextKey(node), Text(0)); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // The other nodes are dead: from now on only the data of nodes [first, end) is written and read.
  void LimitTo(uint64_t first, uint64_t end) { first_ = first, end_ = end; }

  // Takes all data from the state of round - 1 to that of `round`.
  Status Write(BlockingTransaction& t, int from, uint64_t round) {
    const auto balance = static_cast<int64_t>(round);
    for (uint64_t node = first_; node < end_; ++node) {
      if (Status s = t.Update(Of(from, "points"), kStays + node, Account{.balance = balance}); !s.ok()) return s;
      if (Status s = t.Update(Of(from, "small"), kStays + node, round); !s.ok()) return s;
      const uint64_t goes = kComesAt + (round - 1) % 2 * kNodes + node;
      const uint64_t comes = kComesAt + round % 2 * kNodes + node;
      uint64_t nothing = 0;
      if (Status s = t.Get(Of(from, "ordered"), kNeverThere + node, &nothing); !absl::IsNotFound(s)) return s;
      if (Status s = t.Remove(Of(from, "ordered"), goes); !s.ok()) return s;
      if (Status s = t.Insert(Of(from, "ordered"), comes, round); !s.ok()) return s;
      if (Status s = t.transaction().session().worker().BlockOn(Resize(t.transaction(), from, node, round)); !s.ok()) {
        return s;
      }
    }
    return absl::OkStatus();
  }

  // Finds out which round's state all data is in.
  Status Read(BlockingTransaction& t, int from, uint64_t* round) {
    if (Status s = t.Get(Of(from, "small"), kStays + first_, round); !s.ok()) return s;
    for (uint64_t node = first_; node < end_; ++node) {
      Account account;
      uint64_t small = 0;
      uint64_t came = 0;
      std::byte letter{};
      if (Status s = t.Get(Of(from, "points"), kStays + node, &account); !s.ok()) return s;
      if (Status s = t.Get(Of(from, "small"), kStays + node, &small); !s.ok()) return s;
      const Status gone = t.Get(Of(from, "ordered"), kComesAt + (*round + 1) % 2 * kNodes + node, &came);
      if (!absl::IsNotFound(gone)) return gone.ok() ? absl::DataLossError("a removed key is there") : gone;
      if (Status s = t.Get(Of(from, "ordered"), kComesAt + *round % 2 * kNodes + node, &came); !s.ok()) return s;
      if (Status s = t.Get(Of(from, "text"), TextKey(node), std::span(&letter, 1), 0); !s.ok()) return s;
      if (account.balance != static_cast<int64_t>(*round) || small != *round || came != *round ||
          letter != static_cast<std::byte>(*round)) {
        return absl::DataLossError("half a transaction");
      }
    }
    return absl::OkStatus();
  }

 private:
  static constexpr uint64_t kStays = 0;      // first key of one per node
  static constexpr uint64_t kComesAt = 999;  // and of each round: one of two is inserted, the other removed
  static constexpr uint64_t kNeverThere = 4998;

  static Placement ByNumber() {
    return {.owner =
                [](const index::Key& key, int n) {
                  return static_cast<rdma::NodeId>(
                      (key.kind() == index::KeyKind::kInteger ? key.integer() : static_cast<uint64_t>(key.bytes()[0])) %
                      static_cast<uint64_t>(n));
                },
            .range_owner = [](const index::Key&, const index::Key&, int) { return Placement::kSeveralNodes; }};
  }

  const Table& Of(int node, const std::string& name) { return cluster_->table(node, name); }
  static std::string_view TextKey(uint64_t node) {
    static constexpr std::array<std::string_view, kNodes> kKeys = {"c", "a", "b"};
    return kKeys[node];
  }
  // Sizes that need another block each round.
  std::span<const std::byte> Text(uint64_t round) {
    text_.assign(round % 2 == 0 ? 24 : 1500, static_cast<std::byte>(round));
    return text_;
  }

  coro::Task<Status> Resize(Transaction& t, int from, uint64_t node, uint64_t round) {
    const Table& table = Of(from, "text");
    StatusOr<RecordHandle> handle = co_await t.GetForUpdate(table, TextKey(node), std::span<std::byte>(), 0);
    if (!handle.ok()) co_return handle.status();
    co_return t.Update(*handle, Text(round));
  }

  Cluster* cluster_;
  uint64_t first_ = 0;
  uint64_t end_ = kNodes;
  std::vector<std::byte> text_;
};

}  // namespace gannet::txn
