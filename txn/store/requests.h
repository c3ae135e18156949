// The requests and results of a transaction's operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/plain_vector.h"
#include "base/status.h"
#include "index/key.h"
#include "txn/store/payload.h"
#include "txn/store/table.h"

namespace gannet::txn {

using index::Key;

class IndexReader;
class LocalScanner;
class RemoteScanner;
class ScatterScanner;
class Scanner;

// Names a record that this transaction read for update (or inserted); valid within the transaction.
struct RecordHandle {
  uint32_t index = UINT32_MAX;
};

// One of several keys requested together.
struct GetRequest {
  const Table* table = nullptr;
  Key key;
  std::span<std::byte> out;  // receives payload bytes [offset, offset + out.size())
  // kWhole: from 0 on, and the payload has the size of `out`. To read nothing, give an offset of 0 and no `out`.
  static constexpr uint32_t kWhole = kWholePayload;
  uint32_t offset = kWhole;
  bool for_update = false;
  bool up_to_end = false;  // the payload may have any size: `out` receives what there is

  // The results. GetMany sets all of them, whatever their values were.
  // Ok, NotFound; or, without up_to_end, InvalidArgument if the whole payload has another size, and OutOfRange if it
  // ends before offset + out.size().
  Status status = {};
  uint32_t payload_bytes = 0;  // of the whole record; NotFound: 0
  RecordHandle handle = {};    // if for_update, and there is such a record; else none

  static GetRequest Of(const Table& table, const Key& key, PayloadRoom row, bool for_update = false) {
    return {.table = &table, .key = key, .out = row, .for_update = for_update};
  }
};

// The keys and payloads of a scan's rows, one after the other. Not thread-safe. Places and sizes have 64 bits: a scan
// may bring more than 4 GiB.
class RowBytes {
 public:
  // There is always room for so many bytes more, so copies of a fixed size may end there.
  static constexpr size_t kSlackBytes = 64;

  size_t size() const { return bytes_.size(); }
  // Appends `size` bytes of undefined content and returns their place.
  size_t Append(size_t size) {
    const size_t place = bytes_.size();
    Room(size);
    bytes_.Resize(place + size);
    return place;
  }
  // The place of the next byte, with room for `size` and kSlackBytes. Append(size) then leaves what was written there.
  std::byte* Room(size_t size) { return bytes_.Room(size + kSlackBytes); }
  // The end of the room, without kSlackBytes. Only after a call of Room.
  const std::byte* end_of_room() const { return bytes_.data() + (bytes_.capacity() - kSlackBytes); }
  // Afterwards there are `size` bytes: later ones are dropped, and what was written in Room is taken up to there.
  void Cut(size_t size) { bytes_.Resize(size); }
  void Clear() { bytes_.clear(); }
  // Valid until the next Append.
  std::span<std::byte> At(size_t place, size_t size) { return {bytes_.data() + place, size}; }
  std::span<const std::byte> At(size_t place, size_t size) const { return {bytes_.data() + place, size}; }

 private:
  PlainVector<std::byte> bytes_;
};

// The rows that a scan found, in scan order. Reuse one object to reuse its memory.
class ScanRows {
 public:
  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  // Views, valid until this object changes.
  Key key(size_t i) const { return KeyOf(rows_[i]); }
  std::span<const std::byte> payload(size_t i) const { return PayloadOf(rows_[i]); }
  // The payload as a row; another size stops the process (RowOf).
  template <class Row>
  Row As(size_t i) const {
    return RowOf<Row>(payload(i));
  }
  // Valid if the scan was for update.
  RecordHandle handle(size_t i) const { return rows_[i].handle; }

 private:
  // These fill it.
  friend class IndexReader;
  friend class LocalScanner;
  friend class RemoteScanner;
  friend class ScatterScanner;
  friend class Scanner;
  // A key lies in bytes_ as in a record: an integer as 8 bytes, others filled up with zeros to whole words. The payload
  // follows it.
  struct Item {
    size_t key_place;
    uint32_t key_bytes : 12;
    uint32_t payload_bytes : 20;
    RecordHandle handle;
  };
  static_assert(sizeof(Item) == 16, "a scan writes one for each row");

  Key KeyOf(const Item& item) const {
    const std::byte* const at = bytes_.At(item.key_place, item.key_bytes).data();
    if (key_kind_ == index::KeyKind::kInteger) {
      uint64_t integer;
      std::memcpy(&integer, at, sizeof integer);
      return Key(integer);
    }
    return Key(std::string_view(reinterpret_cast<const char*>(at), item.key_bytes));
  }
  static size_t PayloadPlace(const Item& item) {
    constexpr size_t kWord = sizeof(uint64_t);
    return item.key_place + (item.key_bytes + kWord - 1) / kWord * kWord;
  }
  std::span<const std::byte> PayloadOf(const Item& item) const {
    return bytes_.At(PayloadPlace(item), item.payload_bytes);
  }
  std::span<std::byte> PayloadOf(const Item& item) { return bytes_.At(PayloadPlace(item), item.payload_bytes); }
  // Appends a row with a copy of `key`, which must not lie in this object, and a payload of undefined bytes. All keys
  // are of one kind.
  Item& Add(const Key& key, size_t payload_bytes);
  // Gives a row a longer payload, of undefined bytes.
  void Enlarge(Item* item, size_t payload_bytes);
  void Clear() {
    rows_.clear();
    bytes_.Clear();
  }

  index::KeyKind key_kind_ = index::KeyKind::kInteger;  // of all rows
  PlainVector<Item> rows_;
  RowBytes bytes_;
};

// A row that was found by a secondary index. Its views are valid until the transaction ends.
struct RowBy {
  Key key;  // primary
  std::span<const std::byte> payload;
  RecordHandle handle = {};  // if it was read for update
  // Does what ScanRows::As does.
  template <class Row>
  Row As() const {
    return RowOf<Row>(payload);
  }
};

struct ScanOptions {
  bool keys_only = false;  // payloads are not read (and rows not validated beyond their existence)
  bool for_update = false;
};

}  // namespace gannet::txn
