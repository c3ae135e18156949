// Arranging a table: its rows move among the blocks that they have, until those of one size are in the order of their
// keys. Scans in this order then read memory in sequence.
//
//   1. Keep checkpoints' walks and loads away from the table (UnsavedLoads::TryHold).
//   2. State::kBeingArranged: accesses that begin now are conflicts. Wait for a grace period, as dropping a table does.
//      Then this thread alone uses the table.
//   3. Of the rows whose blocks have one size, row i belongs to the block with the i-th address. One free block is
//      enough: a row that lies in the wrong place moves there, and then always the row that belongs to the block that
//      was left last. Each move leaves the table whole, so this may end after any of them.
//   4. State::kUsed.
//
// A block that a row has left gets another row at once, without a grace period, because nobody can be reading it. The
// location cache (index/own_locations.h), which keeps addresses for longer, finds another key there. The new version of
// the block is above that of the row that was there, because versions of a block only grow. It is also above the old
// version of the row that comes, because the log's next change of this row must be newer. Nothing is logged: recovery
// makes new records, and those of a checkpoint in the order of their keys.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/bulk_memory.h"
#include "base/check.h"
#include "base/stop.h"
#include "index/record_header.h"
#include "index/service.h"
#include "txn/node/record_walk.h"
#include "txn/peer/unused_records.h"
#include "txn/record/record.h"
#include "txn/schema/new_table.h"
#include "txn/schema/quiesce.h"
#include "txn/schema/schema.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

// An array whose memory goes back to the system with it.
template <class T>
class BulkArray {
 public:
  explicit BulkArray(size_t size) : memory_(std::max<size_t>(size, 1) * sizeof(T)), size_(size) {}
  T& operator[](size_t i) { return begin()[i]; }
  T* begin() { return reinterpret_cast<T*>(memory_.data()); }
  T* end() { return begin() + size_; }
  size_t size() const { return size_; }

 private:
  BulkMemory memory_;
  size_t size_;
};

// Moves the rows whose blocks have one size.
class Arrangement {
 public:
  // `places`: of the rows' records, in the order of their keys. They are sorted, and must outlive it.
  Arrangement(const DatabaseState& state, const Table& table, std::span<rdma::GlobalAddress> places)
      : state_(state), table_(table), places_(places), row_at_(places_.size()), place_of_(places_.size()) {
    std::iota(row_at_.begin(), row_at_.end(), size_t{0});
    std::ranges::sort(row_at_, {}, [&](size_t row) { return places_[row].offset(); });
    for (size_t place = 0; place < row_at_.size(); ++place) place_of_[row_at_[place]] = place;
    std::ranges::sort(places_, {}, &rdma::GlobalAddress::offset);
  }
  ~Arrangement() {
    if (free_ == nullptr) return;
    index::IndexService::Guard guard(state_.indexes.get());
    guard.context().epoch->Retire(free_, free_bytes_, guard.context().slab);
  }
  Arrangement(const Arrangement&) = delete;
  Arrangement& operator=(const Arrangement&) = delete;

  Status Run() {
    for (size_t place = 0; place < places_.size(); ++place) {
      if (row_at_[place] == place) continue;
      if (free_ == nullptr) GANNET_RETURN_IF_ERROR(AllocateFree(places_[place]));
      GANNET_RETURN_IF_ERROR(MoveCycle(place));
    }
    return absl::OkStatus();
  }

 private:
  // A guard keeps the memory that others retire, so it is not kept for long.
  static constexpr uint64_t kMovesPerGuard = 1024;

  // A block for rows like that at `place`.
  Status AllocateFree(rdma::GlobalAddress place) {
    const index::RecordMeta meta = index::LoadMeta(state_.local->Direct(place));
    free_bytes_ = index::RecordBytes(meta.key_bytes, meta.payload_bytes);
    index::IndexService::Guard guard(state_.indexes.get());
    const StatusOr<std::byte*> block = guard.context().slab->Allocate(free_bytes_);
    if (!block.ok()) return block.status();
    free_ = *block;
    MarkAbsent(free_, rdma::LinesFor(index::PayloadDataOffset(meta.key_bytes) + meta.payload_bytes), LoadWord(free_));
    return absl::OkStatus();
  }

  // The row at `first` makes room for the one that belongs there, and so on, until the place where it belongs is free.
  Status MoveCycle(size_t first) {
    const size_t waiting = row_at_[first];
    const rdma::GlobalAddress meanwhile = state_.local->node.AddressOf(free_);
    GANNET_RETURN_IF_ERROR(MoveToFree(places_[first]));
    for (size_t place = first;;) {
      const size_t from = place_of_[place];
      GANNET_RETURN_IF_ERROR(MoveToFree(place == waiting ? meanwhile : places_[from]));
      row_at_[place] = place_of_[place] = place;
      if (place == waiting) return absl::OkStatus();
      place = from;
    }
  }

  // Moves the row at `from` to the free block. Then its own is free.
  Status MoveToFree(rdma::GlobalAddress from) {
    if (moves_++ % kMovesPerGuard == 0) {
      GANNET_RETURN_IF_ERROR(CheckStop(state_.options.stop, "a table was arranged"));
      guard_.reset();
      guard_.emplace(state_.indexes.get());
    }
    std::byte* const record = state_.local->Direct(from);
    const StatusOr<uint64_t> state = AwaitUnlocked(table_, record);
    if (!state.ok()) return state.status();
    const index::RecordMeta meta = index::LoadMeta(record);
    const index::OwnedKey key = index::LoadKey(record, table_.options().key_kind);
    payload_.resize(meta.payload_bytes);
    uint64_t seen = 0;
    const bool is_whole = rdma::TryReadLocal(record, index::PayloadDataOffset(meta.key_bytes), payload_, &seen);
    GANNET_CHECK(is_whole && seen == *state, "a record of table '%s' changed while it was arranged", table_.name());
    const NewRecord made = MakeLockedRecordAt(std::exchange(free_, nullptr), table_.id(), key.view(), payload_,
                                              OwnerBits(0, 0), VersionOf(*state));
    // What a damaged index leads to is not free.
    if (!MoveRow(*state_.local, table_, key.view(), from, *state, made)) return IndexDamaged(table_, key.view());
    free_ = record;
    return absl::OkStatus();
  }

  const DatabaseState& state_;
  const Table& table_;
  std::span<rdma::GlobalAddress> places_;  // by their addresses: row i belongs to place i
  BulkArray<size_t> row_at_;               // by place
  BulkArray<size_t> place_of_;             // by row
  std::optional<index::IndexService::Guard> guard_;
  uint64_t moves_ = 0;
  std::byte* free_ = nullptr;  // a block of the same size without a row
  size_t free_bytes_ = 0;
  std::vector<std::byte> payload_;
};

// Calls take(address, bytes of its block) for each record of a table that nobody uses, in the order of the keys.
template <class Take>
Status ForEachRow(const DatabaseState& state, const Table& table, const Take& take) {
  RecordWalk walk(*state.local, table);
  while (walk.has_more()) {
    GANNET_RETURN_IF_ERROR(CheckStop(state.options.stop, "a table was arranged"));
    const index::IndexService::Guard guard(state.indexes.get());
    const auto records = walk.Next();
    if (!records.ok()) return records.status();
    for (const rdma::GlobalAddress address : *records) {
      const std::byte* const record = state.local->Direct(address);
      const StatusOr<uint64_t> word = AwaitUnlocked(table, record);
      if (!word.ok()) return word.status();
      if (IsAbsent(*word)) continue;
      const index::RecordMeta meta = index::LoadMeta(record);
      take(address, rdma::SlabAllocator::BlockBytes(index::RecordBytes(meta.key_bytes, meta.payload_bytes)));
    }
  }
  return absl::OkStatus();
}

// Nobody uses the table.
Status ArrangeRows(const DatabaseState& node, const Table& table) {
  struct Size {
    size_t rows = 0;
    size_t first = 0;  // of its places
    size_t found = 0;
  };
  std::map<size_t, Size> sizes;  // by the bytes of the blocks
  GANNET_RETURN_IF_ERROR(
      ForEachRow(node, table, [&](rdma::GlobalAddress, size_t block_bytes) { ++sizes[block_bytes].rows; }));
  size_t rows = 0;
  for (auto& [block_bytes, size] : sizes) size.first = std::exchange(rows, rows + size.rows);
  BulkArray<rdma::GlobalAddress> places(rows);
  GANNET_RETURN_IF_ERROR(ForEachRow(node, table, [&](rdma::GlobalAddress address, size_t block_bytes) {
    Size& size = sizes[block_bytes];
    GANNET_CHECK(size.found < size.rows, "rows of table '%s' appeared while it was arranged", table.name());
    places[size.first + size.found++] = address;
  }));
  Status full;
  for (const auto& [block_bytes, size] : sizes) {
    Status arranged = Arrangement(node, table, std::span(places).subspan(size.first, size.found)).Run();
    if (!absl::IsResourceExhausted(arranged)) {
      GANNET_RETURN_IF_ERROR(arranged);
    } else if (full.ok()) {
      full = absl::ResourceExhaustedError(absl::StrCat("rows of ", NameOf(table), " in blocks of ", block_bytes,
                                                       " bytes stay where they are: ", arranged.message()));
    }
  }
  return full;
}

}  // namespace

Status Schema::ArrangeTable(std::string_view name) {
  DatabaseState& node = *nodes_.front();
  Table* table = nullptr;
  GANNET_RETURN_IF_ERROR(Hold(nodes_, [&]() -> StatusOr<bool> {
    const StatusOr<std::vector<Table*>> found = ChangeableTables(
        nodes_, name, "ArrangeTable", "its rows stay where they are; arrange a table where it is alone");
    if (!found.ok()) return found.status();
    table = found->front();
    if (!table->index_traits().ordered) {
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(*table), " cannot be arranged: its index is not ordered"));
    }
    if (table->secondary() != nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(NameOf(*table), " has the entries of a secondary index"));
    }
    if (!TryHoldLoads(nodes_, table->id())) return false;
    table->SetState(Table::State::kBeingArranged);
    return true;
  }));
  const auto apply = [&] {
    node.indexes->AwaitGuards();
    return ArrangeRows(node, *table);
  };
  const auto release = [&](const Status&) {
    table->SetState(Table::State::kUsed);
    ReleaseLoads(nodes_, table->id());
  };
  return ApplyAlone(nodes_, absl::StrCat(NameOf(*table), " was not arranged"), Awaits::kTheirPendingToo, apply,
                    release);
}

}  // namespace gannet::txn
