// Driver: accesses to tables and indexes that were dropped, in the middle of a body that goes on.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/model/driver.h"

namespace gannet::model {
namespace {

using absl::StatusCode;

}  // namespace

coro::Task<Status> Driver::UseDropped(Caller& caller, Random random) {
  const bool has_tables = !dropped_tables_.empty();
  if (!has_tables && dropped_indexes_.empty()) co_return absl::OkStatus();
  const bool of_index = !dropped_indexes_.empty() && (!has_tables || random.OneIn(3));
  coro::Task<Status> using_it = of_index ? UseDroppedIndex(caller, random) : UseDroppedTable(caller, random);
  const Status status = co_await using_it;
  co_return Judge(status, {StatusCode::kFailedPrecondition});
}

coro::Task<Status> Driver::UseDroppedTable(Caller& caller, Random random) {
  const DroppedTable& dropped = dropped_tables_[random.Below(dropped_tables_.size())];
  const txn::Table& table = *dropped.on[static_cast<size_t>(node_)];
  const txn::TableOptions& options = dropped.spec.options;
  const std::string& name = dropped.spec.keys[random.Below(dropped.spec.keys.size())];
  const index::Key key = KeyOf(options.key_kind, name);
  const std::string row = DrawPayload(random, DrawSize(random, options));
  std::string read(options.payload_bytes, ' ');
  const std::span<std::byte> out = std::as_writable_bytes(std::span(read));
  const index::ScanRange range{.from = key, .to = key};
  constexpr std::array kAccesses = {"Get",    "GetView", "Get the text", "Exists", "GetMany", "GetForUpdate", "Update",
                                    "Insert", "Upsert",  "UpdateIf",     "Add",    "Remove",  "Scan",         "Cursor"};
  const uint64_t way = random.Below(kAccesses.size());
  Say(absl::StrCat(kAccesses[way], " of ", options.name, ", which was dropped"));
  Status status;
  switch (way) {
    case 0: {
      coro::Async<Status> get = caller.Get(table, key, out, Caller::kWhole);
      status = co_await get;
      break;
    }
    case 1: {
      coro::Async<StatusOr<std::span<const std::byte>>> get = caller.GetView(table, key);
      const StatusOr<std::span<const std::byte>> got = co_await get;
      status = got.status();
      break;
    }
    case 2: {
      coro::Async<Status> get = caller.Get(table, key, &read);
      status = co_await get;
      break;
    }
    case 3: {
      coro::Async<StatusOr<bool>> ask = caller.Exists(table, key);
      const StatusOr<bool> exists = co_await ask;
      status = exists.status();
      break;
    }
    case 4: {
      txn::GetRequest request{.table = &table, .key = key, .out = out, .for_update = random.OneIn(2)};
      coro::Async<Status> get = caller.GetMany(std::span(&request, 1));
      status = co_await get;
      if (status.ok() || request.status != status) co_return Fail("the request has another status");
      break;
    }
    case 5: {
      coro::Async<StatusOr<txn::RecordHandle>> get = caller.GetForUpdate(table, key, out, Caller::kWhole);
      const StatusOr<txn::RecordHandle> got = co_await get;
      status = got.status();
      break;
    }
    case 6: {
      coro::Async<Status> update = caller.Update(table, key, BytesOf(row), Caller::kWhole);
      status = co_await update;
      break;
    }
    case 7:
      status = caller.Insert(table, key, BytesOf(row));
      break;
    case 8: {
      coro::Async<Status> upsert = caller.Upsert(table, key, BytesOf(row));
      status = co_await upsert;
      break;
    }
    case 9: {
      coro::Async<StatusOr<bool>> update = caller.UpdateIf(table, key, BytesOf(row), BytesOf(row));
      const StatusOr<bool> updated = co_await update;
      status = updated.status();
      break;
    }
    case 10: {
      int8_t sum = 0;
      coro::Async<Status> add = caller.Add(table, key, int8_t{1}, &sum, 0);
      status = co_await add;
      break;
    }
    case 11: {
      coro::Async<Status> removal = caller.Remove(table, key);
      status = co_await removal;
      break;
    }
    case 12: {
      coro::Async<Status> scan = caller.Scan(table, range, &rows_, {});
      status = co_await scan;
      break;
    }
    default: {
      txn::Cursor cursor = caller.OpenCursor(table, {});
      coro::Async<Status> move = caller.Done(random.OneIn(2) ? cursor.First() : cursor.SeekBackward(key));
      status = co_await move;
      if (cursor.valid()) co_return Fail("the cursor is at a row");
    }
  }
  co_return status;
}

coro::Task<Status> Driver::UseDroppedIndex(Caller& caller, Random random) {
  const auto& dropped = dropped_indexes_[random.Below(dropped_indexes_.size())];
  const txn::SecondaryIndex& index = *dropped[static_cast<size_t>(node_)];
  const bool get = index.unique() && random.OneIn(2);
  Say(get ? "GetBy an index that was dropped" : "a cursor of an index that was dropped");
  if (get) {
    coro::Async<StatusOr<txn::RowBy>> getting = caller.GetBy(index, index::Key(1), random.OneIn(2));
    const StatusOr<txn::RowBy> got = co_await getting;
    co_return got.status();
  }
  txn::IndexCursor cursor = caller.OpenCursor(index, {});
  coro::Async<Status> move = caller.Done(random.OneIn(2) ? cursor.First() : cursor.Last());
  const Status moved = co_await move;
  co_return moved;
}

}  // namespace gannet::model
