// What a table is: its keys, its records, its index, and which node owns which key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "index/index.h"
#include "index/index_rights.h"
#include "index/key.h"
#include "index/registry.h"
#include "rdma/global_address.h"
#include "txn/placement.h"

namespace gannet::txn {

using TableId = uint16_t;
inline constexpr size_t kMaxPayloadBytes = 64 * 1024;

// A payload type: plain bytes, but not a view of bytes (a span or a vector stands for the bytes it refers to).
template <class T>
concept PayloadType = std::is_trivially_copyable_v<T> && !std::is_convertible_v<const T&, std::span<const std::byte>>;

using index::IndexKind;
using index::IndexRights;

struct TableOptions {
  std::string name;  // 1 to 255 bytes of UTF-8, no control characters
  index::KeyKind key_kind = index::KeyKind::kInteger;
  size_t max_key_bytes = index::kIntegerKeyBytes;  // of byte keys; at most 64
  IndexKind index = IndexKind::kHash;
  // Options that only the kind of index knows, as text: for kCatfish ToText(CatfishOptions) of index/catfish/catfish.h.
  // Empty: the kind's defaults. A data directory keeps them, and a table is opened with the same.
  std::string index_options = {};
  // Who may change the index: kClients only if the kind's clients can (kBlink, kRolex). None: the most that the kind
  // allows. The same on every node. docs/security.md says what a broken-in client can do with either.
  std::optional<IndexRights> index_rights = {};
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
  // With index_options that name all options of the kind, and with index_rights.
  const TableOptions& options() const { return options_; }
  // Capabilities of the index, by its kind and its rights; transactions choose their paths by them.
  const index::IndexTraits& index_traits() const { return index_traits_; }

  // The owner of `key`, as seen from node `self` (which owns all of a replicated table).
  rdma::NodeId OwnerOf(const index::Key& key, rdma::NodeId self) const {
    if (all_here_) return self;
    return options_.placement.OwnerOf(key, data_nodes_);
  }
  // The owners of the keys in [from, to], which is not empty.
  Owners OwnersOf(const index::Key& from, const index::Key& to, rdma::NodeId self) const {
    if (all_here_) return {.first = self, .last = self};
    return options_.placement.OwnersOf(from, to, data_nodes_);
  }
  // True if node `self` owns all of them.
  bool OwnsRange(const index::Key& from, const index::Key& to, rdma::NodeId self) const {
    const Owners owners = OwnersOf(from, to, self);
    return owners.first == self && owners.last == self;
  }
  // This node's part of the index.
  index::LocalIndex& local_index() const { return *local_index_; }

 private:
  friend class Database;
  // `self`: the node that has this object. options.index is in the registry, and options.index_rights are there.
  Table(TableId id, TableOptions options, int data_nodes, rdma::NodeId self)
      : id_(id),
        options_(std::move(options)),
        index_traits_(index::TraitsOf(index::EntryOf(options_.index), *options_.index_rights)),
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
