// Placement: which node owns which key of a table. The same on every node: nodes that disagree do not find each other's
// rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "index/key.h"
#include "rdma/global_address.h"

namespace gannet::txn {

// The owners of a range of keys: all nodes from `first` to `last`.
struct Owners {
  rdma::NodeId first = 0;
  rdma::NodeId last = 0;
  bool in_order = false;  // the keys of each are greater than those of the nodes before it

  bool several() const { return first != last; }
  int count() const { return last - first + 1; }
};

// Bounds between the ranges of nodes. Immutable; thread-safe.
class KeyRanges {
 public:
  // starts[i] is the smallest key of node i + 1.
  explicit KeyRanges(std::span<const index::Key> starts);

  // InvalidArgument says what is wrong: keys of another kind than the table's, or too long for it; not in ascending
  // order; more ranges than nodes. Other calls are made only after it has returned Ok.
  Status Check(index::KeyKind kind, size_t max_key_bytes, int num_nodes) const;

  rdma::NodeId OwnerOf(const index::Key& key) const;
  // The starts as text: decimal numbers, or hexadecimal with 0x.
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  Status status_;  // what is wrong with the starts alone
  index::KeyKind kind_ = index::KeyKind::kInteger;
  std::vector<uint64_t> integers_;
  std::vector<index::OwnedKey> bytes_;
  std::vector<std::string> texts_;
};

// Names of placements in manifests: never change one.
inline constexpr std::string_view kPlacedOnFirstNode = "first_node";
inline constexpr std::string_view kPlacedByHash = "hash";
inline constexpr std::string_view kPlacedByRange = "range";
inline constexpr std::string_view kReplicated = "replicated";
inline constexpr std::string_view kPlacedByFunction = "function";

// Plain functions of the key and of the number of nodes that own rows (DatabaseOptions::data_nodes), or ranges.
struct Placement {
  // Owner of one key.
  using Owner = rdma::NodeId (*)(const index::Key& key, int num_nodes);
  // The one owner of all keys in [from, to], or kSeveralNodes.
  using RangeOwner = int (*)(const index::Key& from, const index::Key& to, int num_nodes);
  static constexpr int kSeveralNodes = -1;

  // Every node has the whole table and uses its own copy. Such a table is filled by BulkLoader on each node and is
  // read-only for transactions.
  static Placement Replicated() { return {.replicated = true}; }
  // Node 0 owns everything.
  static Placement OnFirstNode();
  // The owner follows from a hash of the key; scans ask all nodes.
  static Placement ByHash();
  // The owner follows from ranges of the key (XStore, OSDI'20, section 5.5): node 0 owns the keys below starts[0], node
  // 1 those from there to below starts[1], and so on; nodes behind the last range own nothing. Scans ask only the nodes
  // whose ranges they meet. The keys are copied. CreateTable says what is wrong with them (KeyRanges::Check). A
  // database with a directory keeps them, and refuses to open the table with others, if several nodes own rows.
  //
  //   .placement = Placement::ByRange({1'000'000, 2'000'000})   // three owners
  static Placement ByRange(const std::vector<index::Key>& starts);
  // Does what ByRange does, from KeyRanges::texts. InvalidArgument names a text that no key has.
  static StatusOr<Placement> ByRangeTexts(std::span<const std::string> texts);
  // A directory has the table, and the program that knows its functions has not created it here. If one node owns all
  // rows, they are not needed; otherwise every access returns FailedPrecondition. CreateTable refuses it.
  static Placement Unknown();

  // Must not be called for replicated tables.
  rdma::NodeId OwnerOf(const index::Key& key, int num_nodes) const {
    return ranges == nullptr ? owner(key, num_nodes) : ranges->OwnerOf(key);
  }
  Owners OwnersOf(const index::Key& from, const index::Key& to, int num_nodes) const;
  // One of the names above; kPlacedByFunction if it is unknown.
  std::string_view name() const;

  bool replicated = false;
  Owner owner = nullptr;
  RangeOwner range_owner = nullptr;
  std::shared_ptr<const KeyRanges> ranges = nullptr;  // instead of the two functions
  bool unknown = false;                               // the two functions are there, and wrong
};

}  // namespace gannet::txn
