// Secondary indexes: other orders of a table's rows, which the engine keeps in the transactions that change the rows.
//
//   struct Account { char mail[24]; uint64_t city; int64_t balance; };
//   auto by_city = database->CreateIndex({.name = "accounts_by_city", .table = "accounts",
//                                         .fields = {IndexField::Of<&Account::city>()}});
//   auto by_mail = database->CreateIndex({.name = "accounts_by_mail", .table = "accounts", .unique = true,
//                                         .fields = {IndexField::Of<&Account::mail>()}});
//   StatusOr<RowBy> row = t.GetBy(**by_mail, Key::Tuple("ann@example.org"));      // row->key, row->As<Account>()
//   IndexCursor cursor(t, **by_city, {.range = KeyRange::Closed(Key::Tuple(7), Key::Tuple(9))});   //
//   txn/run/index_cursor.h
//
// The secondary key of a row is a tuple (index/tuple_key.h) of fields of its payload and its primary key. The fields
// are kept in the directory, so every program that opens it keeps the index right. Or it is what a function of the
// program returns; then the program gives the function each time, before it writes to the table.
//
// How it is stored. An index is a table of the catalog with an ordered index of its own, whose rows are called entries:
//
//   not unique   key = secondary key, then the bytes of the primary key      payload: none
//   unique       key = secondary key                                         payload: the bytes of the primary key
//
// A secondary key ends by itself, so what follows it is the primary key. An integer primary key is its 8 bytes,
// big-endian. Entries are rows like others: the commit, the log, checkpoints, recovery, repair, the protection from
// phantoms and the access from other nodes are those of every table. Only the engine writes them.
//
// How it is kept. The commit compares, before it locks anything, the secondary keys that each row of its write set had
// when it was read with those that it has now, and adds the changes of entries to the write set
// (access/entry_keeper.h). So a row and its entries change at one point in time, or not at all. A read by an index does
// the same first, for what was written up to then, so a transaction sees its own writes by all indexes. It is done
// there and not by each write because a row may be changed in several steps, of which only the last counts: two rows
// can exchange their keys of a unique index.
//
// Why the index is right. The entries of a row are changed only together with the row, by a transaction that has locked
// the row as it read it. So for each row the transactions that change its entries are in the order of its versions, and
// each leaves the entries of its own version.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "index/key.h"
#include "index/tuple_key.h"
#include "index/types.h"
#include "txn/store/key_range.h"
#include "txn/store/payload.h"
#include "txn/store/placement.h"

namespace gannet::log {
struct IndexDescription;
struct IndexFieldDescription;
}  // namespace gannet::log

namespace gannet::txn {

class Table;
// Longest payload of a row.
inline constexpr size_t kMaxPayloadBytes = 64 * 1024;

// A field of a secondary key.
struct IndexField {
  enum class Source : uint8_t { kPayload, kKey };
  enum class Type : uint8_t {
    kUnsigned,  // 1 to 8 bytes, little-endian; of an integer primary key the number
    kSigned,    // the same with a sign; of an integer primary key that of Key::Signed
    kFloating,  // 4 or 8 bytes
    kText,      // up to the first zero byte, or the end of the field
    kBytes,     // all bytes
  };
  Source source = Source::kPayload;
  Type type = Type::kUnsigned;
  uint32_t offset = 0;
  uint32_t bytes = 8;  // kText and kBytes, 0: all up to the end of the payload or key

  static IndexField Unsigned(size_t offset, size_t bytes) { return At(Type::kUnsigned, offset, bytes); }
  static IndexField Signed(size_t offset, size_t bytes) { return At(Type::kSigned, offset, bytes); }
  static IndexField Floating(size_t offset, size_t bytes) { return At(Type::kFloating, offset, bytes); }
  static IndexField Text(size_t offset, size_t bytes) { return At(Type::kText, offset, bytes); }
  static IndexField Bytes(size_t offset, size_t bytes) { return At(Type::kBytes, offset, bytes); }
  // The integer primary key, or bytes of a byte key.
  static IndexField KeyNumber() { return {.source = Source::kKey, .type = Type::kUnsigned}; }
  static IndexField SignedKeyNumber() { return {.source = Source::kKey, .type = Type::kSigned}; }
  static IndexField KeyBytes(size_t offset = 0, size_t bytes = 0) {
    IndexField field = Bytes(offset, bytes);
    field.source = Source::kKey;
    return field;
  }
  // A member of the row's type: Of<&Account::city>(). Arrays of char are texts, other arrays of bytes are bytes.
  template <auto member>
  static IndexField Of() {
    return OfMember(member);
  }

  bool operator==(const IndexField&) const = default;

 private:
  static IndexField At(Type type, size_t offset, size_t bytes) {
    return {.source = Source::kPayload,
            .type = type,
            .offset = static_cast<uint32_t>(offset),
            .bytes = static_cast<uint32_t>(bytes)};
  }
  template <class Row, class Member>
  static IndexField OfMember(Member Row::*member) {
    const size_t offset = OffsetOf(member);
    if constexpr (std::is_array_v<Member>) {
      using Element = std::remove_extent_t<Member>;
      static_assert(sizeof(Element) == 1, "of arrays only those of bytes are fields");
      return std::same_as<Element, char> ? Text(offset, sizeof(Member)) : Bytes(offset, sizeof(Member));
    } else if constexpr (std::is_floating_point_v<Member>) {
      return Floating(offset, sizeof(Member));
    } else {
      static_assert(std::is_integral_v<Member> || std::is_enum_v<Member>, "fields are numbers and arrays of bytes");
      return std::is_signed_v<Member> ? Signed(offset, sizeof(Member)) : Unsigned(offset, sizeof(Member));
    }
  }
};

// Returns the secondary key of a row, or nothing: the row is not in the index then. It depends on its arguments alone,
// and is called by any thread. It may throw: the transaction then gets Internal, a failure. A key of a negative number
// is refused, as by tables, with InvalidArgument: Key::Signed makes keys of such numbers.
using KeyFunction =
    std::function<std::optional<index::OwnedKey>(const index::Key& key, std::span<const std::byte> payload)>;

struct SecondaryIndexOptions {
  std::string name;   // a table's name: tables and indexes have different ones
  std::string table;  // its rows are indexed
  bool unique = false;
  // The secondary key, first field first; a row whose payload or key ends before one of them is not in the index.
  std::vector<IndexField> fields = {};
  // Makes the key in place of the fields, which are empty then. The key of an entry has at most 64 bytes then; if it
  // ends with the primary key, and the table's may be longer than 64 bytes, so much more.
  KeyFunction function = nullptr;
  // The kind of the index of the table of the entries. An ordered kind, and not replicated.
  index::IndexKind index = index::IndexKind::kXStore;
  Placement placement = Placement::OnFirstNode();
  uint64_t expected_rows = 1024;
  // Limit for the transactions that are open when the index is made: it waits until they end. Not negative.
  absl::Duration wait_for_transactions = absl::Seconds(30);
};

// An index as one node sees it. Lives as long as the database. Thread-safe.
class SecondaryIndex {
 public:
  const std::string& name() const;
  // The table whose rows are indexed, and that of the entries.
  const Table& table() const { return *table_; }
  const Table& entries() const { return *entries_; }
  bool unique() const { return unique_; }
  const std::vector<IndexField>& fields() const { return fields_; }
  bool by_function() const { return by_function_; }
  // False while it is being built: reads by it return FailedPrecondition.
  bool is_complete() const { return complete_.load(std::memory_order_acquire); }
  // Somebody drops it, and is the only one.
  bool is_being_dropped() const { return is_being_dropped_; }
  // False: it needs a function that was not given yet. Writes to the table return FailedPrecondition until it is.
  bool has_key_function() const { return !by_function_ || function_.load(std::memory_order_acquire) != nullptr; }
  // True while one node after the other begins to keep it, or ends that: to a commit that finds it kept this is a
  // conflict. So no commit keeps it before all nodes do (access/entry_keeper.h).
  bool is_being_published() const { return is_being_published_.load(std::memory_order_acquire); }

  // The rest is for txn/ itself.

  // Appends the secondary key of a row to *to, as it begins its entry. False: it has none. Internal: the function
  // threw. InvalidArgument: it returned a negative number. `payload` may lack what follows the first
  // payload_bytes_needed() bytes.
  StatusOr<bool> AppendKey(const index::Key& key, std::span<const std::byte> payload, std::string* to) const;
  size_t payload_bytes_needed() const { return payload_bytes_needed_; }
  // The key that a user gives becomes what entries begin with. InvalidArgument: it is no tuple of the first fields.
  // `whole`: of all fields.
  Status EncodeKey(const index::Key& key, bool whole, std::string* to) const;
  StatusOr<KeyRange> EncodeRange(const KeyRange& range) const;
  // Appends the bytes of a primary key.
  static void AppendPrimaryKey(const index::Key& key, std::string* to);
  // The primary key to which an entry leads; a view of the entry. DataLoss: it is no entry.
  StatusOr<index::Key> PrimaryKeyOf(std::string_view entry_key, std::span<const std::byte> entry_payload) const;
  // The secondary key of an entry, for its user: Key::Tuple of the fields, or what the function returned.
  StatusOr<index::OwnedKey> SecondaryKeyOf(std::string_view entry_key) const;
  // Texts for messages: `index 'accounts_by_mail' of table 'accounts'`, and the same with the key of an entry.
  std::string Describe() const;
  std::string DescribeEntry(std::string_view entry_key) const;

  log::IndexDescription Description() const;

  // The functions below are for txn/schema/, which makes it and changes what it is.
  SecondaryIndex(const Table* table, const Table* entries, const log::IndexDescription& description,
                 std::vector<IndexField> fields);
  void SetFunction(KeyFunction function);
  void SetComplete(bool complete) { complete_.store(complete, std::memory_order_release); }
  // The caller has the locks of all nodes, or it was the one that drops it.
  void SetBeingDropped(bool dropped) { is_being_dropped_ = dropped; }
  void SetBeingPublished(bool published) { is_being_published_.store(published, std::memory_order_release); }

 private:
  // Number of the first bytes of an entry's key that are the secondary key. DataLoss: it does not begin with one.
  StatusOr<size_t> SecondaryBytes(std::string_view entry_key) const;
  Status NegativeKey() const;

  const Table* const table_;
  const Table* const entries_;
  const bool unique_;
  const bool by_function_;
  const std::vector<IndexField> fields_;
  size_t payload_bytes_needed_ = 0;
  std::atomic<bool> complete_;
  std::atomic<bool> is_being_published_{false};
  std::atomic<bool> is_being_dropped_{false};
  std::unique_ptr<const KeyFunction> owned_function_;
  std::atomic<const KeyFunction*> function_{nullptr};
};

using SecondaryIndexes = std::vector<const SecondaryIndex*>;

// The fields of a description, and back. InvalidArgument: this program does not know one of them.
StatusOr<std::vector<IndexField>> IndexFieldsOf(const log::IndexDescription& description);
std::vector<log::IndexFieldDescription> DescribeFields(const std::vector<IndexField>& fields);
// `u64 at 8`, for messages and tools.
std::string ToText(const IndexField& field);
std::string ToText(const std::vector<IndexField>& fields);

// InvalidArgument names what is wrong with the index's fields for rows of `table`.
Status CheckFields(const SecondaryIndexOptions& options, const Table& table);
// Bytes of the longest key that an entry may have; and of those that every key has, whatever its texts are. At least 1.
size_t MostEntryKeyBytes(const SecondaryIndexOptions& options, const Table& table);
size_t LeastEntryKeyBytes(const SecondaryIndexOptions& options, const Table& table);

}  // namespace gannet::txn
