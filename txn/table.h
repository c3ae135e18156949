// What a table is: its keys, its records, its index, and which node owns which key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "index/index.h"
#include "index/key.h"
#include "index/registry.h"
#include "rdma/global_address.h"

namespace gannet::txn {

using TableId = uint16_t;
inline constexpr size_t kMaxPayloadBytes = 64 * 1024;

// A payload type: plain bytes, but not a view of bytes (a span or a vector stands for the bytes it refers to).
template <class T>
concept PayloadType = std::is_trivially_copyable_v<T> && !std::is_convertible_v<const T&, std::span<const std::byte>>;

using index::IndexKind;

// Which node owns a key. Plain functions of the key and of the number of nodes that own rows
// (DatabaseOptions::data_nodes), the same on every node.
struct Placement {
  // Owner of one key.
  using Owner = rdma::NodeId (*)(const index::Key& key, int num_nodes);
  // The one owner of all keys in [from, to], or kSeveralNodes.
  using RangeOwner = int (*)(const index::Key& from, const index::Key& to, int num_nodes);
  static constexpr int kSeveralNodes = -1;

  // Every node has the whole table and uses its own copy. Such a table is filled by BulkLoader on each node and is
  // read-only for transactions.
  static Placement Replicated() { return {.replicated = true}; }
  // Everything on node 0.
  static Placement OnFirstNode();
  // By a hash of the key; scans ask all nodes.
  static Placement ByHash();

  bool replicated = false;
  Owner owner = nullptr;
  RangeOwner range_owner = nullptr;
};

struct TableOptions {
  std::string name;  // 1 to 255 bytes of UTF-8, no control characters
  index::KeyKind key_kind = index::KeyKind::kInteger;
  size_t max_key_bytes = index::kIntegerKeyBytes;  // of byte keys; at most 64
  IndexKind index = IndexKind::kHash;
  size_t payload_bytes = 0;  // of every record; if variable_length, the maximum; at most kMaxPayloadBytes
  bool variable_length = false;
  uint64_t expected_rows = 1024;  // on one node: sizes the hash table (which grows no further than its stated bound)
  Placement placement = Placement::OnFirstNode();
};

// A table as one node sees it. Made by Database::CreateTable, lives as long as the database. Immutable; thread-safe.
class Table {
 public:
  TableId id() const { return id_; }
  const std::string& name() const { return options_.name; }
  const TableOptions& options() const { return options_; }
  // Capabilities of the kind of index; transactions choose their paths by them.
  const index::IndexTraits& index_traits() const { return index_traits_; }

  // The owner of `key`, as seen from node `self` (which owns all of a replicated table).
  rdma::NodeId OwnerOf(const index::Key& key, rdma::NodeId self) const {
    if (all_here_) return self;
    return options_.placement.owner(key, data_nodes_);
  }
  // The one owner of the range, or Placement::kSeveralNodes.
  int OwnerOfRange(const index::Key& from, const index::Key& to, rdma::NodeId self) const {
    if (all_here_) return self;
    return options_.placement.range_owner(from, to, data_nodes_);
  }
  // This node's part of the index.
  index::LocalIndex& local_index() const { return *local_index_; }

 private:
  friend class Database;
  // `self`: the node that has this object. options.index is in the registry.
  Table(TableId id, TableOptions options, int data_nodes, rdma::NodeId self)
      : id_(id),
        options_(std::move(options)),
        index_traits_(index::EntryOf(options_.index).traits),
        data_nodes_(data_nodes),
        all_here_(options_.placement.replicated || (data_nodes == 1 && self == 0)) {}

  TableId id_;
  TableOptions options_;
  index::IndexTraits index_traits_;
  int data_nodes_;
  bool all_here_;  // this node owns, or has a copy of, every row
  std::unique_ptr<index::LocalIndex> local_index_;
};

}  // namespace gannet::txn
