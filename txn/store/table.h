// What a table is: its keys, its records, its index, and which node owns which key.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "index/key.h"
#include "index/types.h"
#include "rdma/global_address.h"
#include "txn/store/key_form.h"
#include "txn/store/placement.h"
#include "txn/store/secondary_index.h"

namespace gannet::index {
class LocalIndex;
class OwnLocations;
}  // namespace gannet::index

namespace gannet::txn {

using TableId = uint16_t;

using index::IndexKind;
using index::IndexRights;

struct TableOptions {
  std::string name;  // 1 to 255 bytes of UTF-8, no control characters
  index::KeyKind key_kind = index::KeyKind::kInteger;
  size_t max_key_bytes = index::kIntegerKeyBytes;  // of byte keys; at most IndexTraits::max_key_bytes of the kind
  // What the keys mean, for programs that print rows (key_form.h): kTuple if they are Key::Tuple, for instance. A data
  // directory keeps it. kPlain: what the directory has stays.
  KeyForm key_form = KeyForm::kPlain;
  IndexKind index = IndexKind::kHash;
  // Options that only the kind of index knows, as text: for kCatfish ToText(CatfishOptions) of index/catfish/catfish.h.
  // Empty: the kind's defaults. A data directory keeps them, and a table is opened with the same.
  std::string index_options = {};
  // Who may change the index: kClients only if the kind's clients can (IndexTraits::client_writes). None: the most that
  // the kind allows; of a table that a data directory has, those that it keeps. The same on every node.
  // docs/security.md says what a broken-in client can do with either.
  std::optional<IndexRights> index_rights = {};
  size_t payload_bytes = 0;  // of every record; if variable_length, the maximum; at most kMaxPayloadBytes
  bool variable_length = false;
  uint64_t expected_rows = 1024;  // on one node: sizes the hash table (which grows no further than its stated bound)
  Placement placement = Placement::OnFirstNode();
  // Kept in the manifest for programs that read the directory: free text, at most 4096 bytes of UTF-8. Empty: what the
  // directory has stays.
  std::string application = {};
};

// A table as one node sees it. Made by Database::CreateTable, or by Database::Open for a table that the directory has.
// The object lives as long as the database, also after Database::DropTable: accesses then return FailedPrecondition.
// Immutable once the database starts, except for its state and for what has a function that returns the present one;
// thread-safe.
class Table {
 public:
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  TableId id() const { return id_; }
  // The present one (Database::RenameTable); the reference is valid as long as the table.
  const std::string& name() const { return *name_.load(std::memory_order_acquire); }
  // The options, with index_options that name all options of the kind, and with index_rights. `name`, `payload_bytes`
  // and `key_form` are those at Open or CreateTable.
  const TableOptions& options() const { return options_; }
  // The present one: CreateTable may be the first to say it of a table that the directory has.
  KeyForm key_form() const { return key_form_.load(std::memory_order_relaxed); }
  // The present one: of every row; if options().variable_length, the maximum. Database::WidenTable raises it, for a
  // table of rows of one size while no transaction uses it.
  size_t payload_bytes() const { return payload_bytes_.load(std::memory_order_acquire); }
  // The largest payload that a row may have for those that read it, or that make it for another node. Greater than
  // payload_bytes() only for a moment, while a table of variable_length is widened on several nodes.
  size_t accepted_payload_bytes() const { return accepted_payload_bytes_.load(std::memory_order_acquire); }
  // If the table was widened, a log or a checkpoint may have shorter rows than payload_bytes(), of at least this size.
  // Recovery fills them up with zeros. Else it is payload_bytes().
  size_t least_payload_bytes() const { return least_payload_bytes_.load(std::memory_order_acquire); }
  // True if a row of a log or a checkpoint may have a payload of this size.
  bool MayHaveHad(size_t payload_bytes) const {
    return payload_bytes <= this->payload_bytes() &&
           (options_.variable_length || payload_bytes >= least_payload_bytes());
  }
  // Capabilities of the index, by its kind and its rights; transactions choose their paths by them.
  const index::IndexTraits& index_traits() const { return index_traits_; }
  // Placement::name, or what the directory says of a placement that is unknown here: kPlacedByFunction, or nothing if
  // an early version of Gannet made it.
  std::string_view placement_name() const { return placement_name_; }
  // False: only the program that made the table can say which node owns a key (Placement::Unknown).
  bool knows_owners() const { return all_here_ || !options_.placement.unknown; }
  // The index whose entries are the rows of this table; null: it has rows of the program.
  const SecondaryIndex* secondary() const { return secondary_.get(); }
  // The secondary indexes of its rows that are kept, also while they are built; null: there are none. The object lives
  // as long as the database.
  const SecondaryIndexes* secondary_indexes() const { return secondary_indexes_.load(std::memory_order_acquire); }
  // True if a write is looked at more closely: it is refused, or secondary indexes are kept.
  bool checks_writes() const { return checks_writes_.load(std::memory_order_relaxed); }
  // True if a key is looked at more closely than by its kind and its size.
  bool checks_more() const { return checks_more_.load(std::memory_order_acquire); }
  // See Database::DropTable: accesses are refused in all lives but the first. From kDropped there is no way back.
  // See Database::WidenTable and ArrangeTable: kBeingWidened and kBeingArranged are conflicts for accesses.
  // kHalfWidened: memory ran out, or a record stayed locked; accesses are refused.
  enum class State : uint8_t { kUsed, kBeingDropped, kDropped, kBeingWidened, kHalfWidened, kBeingArranged };
  State state() const { return state_.load(std::memory_order_acquire); }

  // False while it is created on all nodes, and this node has it, but another one may not: nobody can find it yet.
  bool is_everywhere() const { return is_everywhere_.load(std::memory_order_acquire); }

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
  // This node's part of the index. Of a table that the directory has and the program has not created, it is there once
  // Start has been called. Not of a table that was dropped.
  index::LocalIndex& local_index() const { return *local_index_; }
  // The places where its records on this node probably lie; null: its index needs no such help, or the table was
  // dropped.
  index::OwnLocations* own_locations() const { return own_locations_.get(); }

  // The rest is for txn/schema/, which alone makes and changes tables: one thread at a time, under
  // DatabaseState::create_mutex or before anybody else knows the table.

  // `self`: the node that has this object. options.index is in the registry, and options.index_rights are there.
  Table(TableId id, TableOptions options, int data_nodes, rdma::NodeId self);
  // What a program says of a table of the directory that it creates; before the table has an index.
  void SetOptions(TableOptions options);
  // What the directory says of it.
  void NoteInDirectory(std::string_view placement_name, size_t least_payload_bytes);
  void SetName(std::string name);
  void SetKeyForm(KeyForm form) { key_form_.store(form, std::memory_order_relaxed); }
  void SetState(State state);
  void SetEverywhere(bool everywhere) { is_everywhere_.store(everywhere, std::memory_order_release); }
  // CreateTable has returned it.
  bool is_created() const { return created_; }
  void SetCreated(bool created) { created_ = created; }
  // Rows of this size are accepted, before payload_bytes() is raised on all nodes.
  bool grows() const { return grows_; }
  void BeginToGrow(size_t payload_bytes);
  void EndGrowing();
  void Widen(size_t payload_bytes);
  bool has_index() const { return local_index_ != nullptr; }
  void SetIndex(std::unique_ptr<index::LocalIndex> index, std::unique_ptr<index::OwnLocations> locations);
  std::unique_ptr<index::LocalIndex> TakeIndex();
  SecondaryIndex* secondary() { return secondary_.get(); }
  void SetSecondary(std::unique_ptr<SecondaryIndex> index);
  // Replaces the set of indexes that are kept.
  void SetSecondaryIndexes(SecondaryIndexes indexes);

 private:
  void Derive();
  void DeriveWrites();

  TableId id_;
  TableOptions options_;
  std::string placement_name_;
  int data_nodes_;
  rdma::NodeId self_;
  std::vector<std::unique_ptr<const std::string>> names_;  // all that it had: readers may still have a reference
  std::atomic<const std::string*> name_{nullptr};
  bool grows_ = false;
  bool created_ = false;
  // These follow from the members above.
  index::IndexTraits index_traits_;
  bool all_here_ = false;  // this node owns, or has a copy of, every row
  std::atomic<KeyForm> key_form_{KeyForm::kPlain};
  std::atomic<size_t> payload_bytes_{0};
  std::atomic<size_t> accepted_payload_bytes_{0};
  std::atomic<size_t> least_payload_bytes_{0};
  std::atomic<bool> checks_more_{false};
  std::atomic<State> state_{State::kUsed};
  std::atomic<bool> is_everywhere_{true};
  std::atomic<bool> checks_writes_{false};
  std::unique_ptr<index::LocalIndex> local_index_;
  std::unique_ptr<index::OwnLocations> own_locations_;
  std::unique_ptr<SecondaryIndex> secondary_;
  std::vector<std::unique_ptr<const SecondaryIndexes>> index_sets_;  // all that it had: readers may still have one
  std::atomic<const SecondaryIndexes*> secondary_indexes_{nullptr};
};

}  // namespace gannet::txn
