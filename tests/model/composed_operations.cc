// Driver: operations that read and then write, views, and cursors; their expected results, and their effect on the
// model.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "tests/model/driver.h"

namespace gannet::model {
namespace {

using absl::StatusCode;
using txn::KeyRange;

template <class Number>
bool AddNumbers(Number a, Number b, Number* sum) {
  if constexpr (std::is_integral_v<Number>) {
    return !__builtin_add_overflow(a, b, sum);
  } else {
    *sum = a + b;
    return true;
  }
}

}  // namespace

coro::Task<Status> Driver::GetView(Caller& caller, const Op& op, Random random) {
  const Drawn d = Draw(op, &random);
  const bool by_value = random.OneIn(2);
  Say(absl::StrCat(by_value ? "Get the text of " : "GetView ", Describe(d.table, d.key)));
  Status status;
  std::string got = "before";
  if (by_value) {
    coro::Async<Status> get = caller.Get(TableAt(d.table), KeyAt(d.table, d.key), &got);
    status = co_await get;
  } else {
    coro::Async<StatusOr<std::span<const std::byte>>> get = caller.GetView(TableAt(d.table), KeyAt(d.table, d.key));
    const StatusOr<std::span<const std::byte>> view = co_await get;
    status = view.status();
    if (view.ok()) got = TextOf(*view);
  }
  const StatusCode expected = d.too_long         ? StatusCode::kInvalidArgument
                              : d.row == nullptr ? StatusCode::kNotFound
                                                 : StatusCode::kOk;
  Status judged = Judge(status, {expected});
  if (!judged.ok()) co_return judged;
  if (!d.too_long) NoteRead(d.table, d.key);
  const std::string_view wanted = status.ok() ? std::string_view(*d.row) : "before";
  if (got != wanted) co_return Fail(absl::StrCat("it has other bytes: ", got.size(), " for ", wanted.size()));
  co_return absl::OkStatus();
}

coro::Task<Status> Driver::Exists(Caller& caller, const Op& op, Random random) {
  const Drawn d = Draw(op, &random);
  Say(absl::StrCat("Exists ", Describe(d.table, d.key)));
  coro::Async<StatusOr<bool>> ask = caller.Exists(TableAt(d.table), KeyAt(d.table, d.key));
  const StatusOr<bool> exists = co_await ask;
  Status judged = Judge(exists.status(), {d.too_long ? StatusCode::kInvalidArgument : StatusCode::kOk});
  if (!judged.ok() || d.too_long) co_return judged;
  NoteRead(d.table, d.key);
  if (*exists != (d.row != nullptr)) co_return Fail(*exists ? "it says yes" : "it says no");
  co_return absl::OkStatus();
}

coro::Task<Status> Driver::Upsert(Caller& caller, const Op& op, Random random) {
  const Drawn d = Draw(op, &random);
  const txn::TableOptions& table = world_.tables[d.table].options;
  if (!MayWrite(d.table, d.key)) co_return absl::OkStatus();
  bool fits = true;
  size_t size = AffordableSize(random, table);
  if (random.OneIn(16)) {
    size = UnfitSize(random, table);
    fits = false;
  }
  const std::string payload = DrawPayload(random, size);
  Say(absl::StrCat("Upsert ", Describe(d.table, d.key), " of ", size, " bytes"));
  coro::Async<Status> upsert = caller.Upsert(TableAt(d.table), KeyAt(d.table, d.key), BytesOf(payload));
  const Status status = co_await upsert;
  if (d.too_long) co_return Judge(status, {StatusCode::kInvalidArgument});
  if (!IsTrouble(status)) NoteRead(d.table, d.key);
  if (table.placement.replicated) {
    co_return Judge(status, fits ? Codes{StatusCode::kFailedPrecondition}
                                 : Codes{StatusCode::kFailedPrecondition, StatusCode::kInvalidArgument});
  }
  if (!fits) co_return Judge(status, {StatusCode::kInvalidArgument});
  const bool is_new = d.row == nullptr;
  Status judged = JudgeWrite(status, d.table, d.key, payload);
  if (judged.ok() && is_new && status.ok()) {
    // Handles from before the removal of this row may refer to it or not.
    std::erase_if(held_, [&](const Held& held) { return held.table == d.table && held.key == d.key; });
  }
  co_return judged;
}

coro::Task<Status> Driver::UpdateIf(Caller& caller, const Op& op, Random random) {
  const Drawn d = Draw(op, &random);
  const txn::TableOptions& table = world_.tables[d.table].options;
  if (!MayWrite(d.table, d.key)) co_return absl::OkStatus();
  std::string expected = d.row != nullptr ? *d.row : DrawPayload(random, AffordableSize(random, table));
  switch (random.Below(5)) {
    case 0:
      expected += 'x';
      break;
    case 1:
      if (!expected.empty()) expected[random.Below(expected.size())] ^= 1;
      break;
    case 2:
      expected.resize(random.Below(expected.size() + 1));
      break;
    default:
      break;
  }
  const bool is = d.row != nullptr && *d.row == expected;
  const bool unfit = random.OneIn(16);
  const std::string payload = DrawPayload(random, unfit ? UnfitSize(random, table) : AffordableSize(random, table));
  // A row cannot have the size that is expected, or that it is to get.
  const bool fits = !unfit && (table.variable_length ? expected.size() <= table.payload_bytes
                                                     : expected.size() == table.payload_bytes);
  Say(absl::StrCat("UpdateIf ", Describe(d.table, d.key), " is ", expected.size(), is ? " such" : " other",
                   " bytes, to ", payload.size()));
  coro::Async<StatusOr<bool>> update =
      caller.UpdateIf(TableAt(d.table), KeyAt(d.table, d.key), BytesOf(expected), BytesOf(payload));
  const StatusOr<bool> updated = co_await update;
  if (d.too_long) co_return Judge(updated.status(), {StatusCode::kInvalidArgument});
  if (!IsTrouble(updated.status())) NoteRead(d.table, d.key);
  if (d.row == nullptr) co_return Judge(updated.status(), {StatusCode::kNotFound});
  if (!fits) co_return Judge(updated.status(), {StatusCode::kInvalidArgument});
  if (is && table.placement.replicated) co_return Judge(updated.status(), {StatusCode::kFailedPrecondition});
  if (is) {
    if (updated.ok() && !*updated) co_return Fail("it found another payload");
    co_return JudgeWrite(updated.status(), d.table, d.key, payload);
  }
  Status judged = Judge(updated.status(), {StatusCode::kOk});
  if (judged.ok() && *updated) co_return Fail("it updated another payload");
  co_return judged;
}

template <class Number>
coro::Task<Status> Driver::Add(Caller& caller, const Op& op, Random random) {
  const Drawn d = Draw(op, &random);
  const txn::TableOptions& table = world_.tables[d.table].options;
  if (!MayWrite(d.table, d.key)) co_return absl::OkStatus();
  const size_t size = d.row != nullptr ? d.row->size() : random.Below(100);
  auto offset = static_cast<uint32_t>(random.Below(size + 2));
  if (size >= sizeof(Number) && !random.OneIn(5))
    offset = static_cast<uint32_t>(random.Below(size - sizeof(Number) + 1));
  // The number that is the whole row, or is not.
  const bool whole = size == sizeof(Number) ? random.OneIn(2) : random.OneIn(16);
  const uint32_t place = whole ? 0 : offset;
  const auto delta = static_cast<Number>(random.OneIn(2) ? random() : random.Below(5));
  const bool is_row = size == sizeof(Number) || !whole;
  const bool within = d.row != nullptr && place + sizeof(Number) <= size && is_row;
  Number sum = 1;
  Number expected{};
  bool fits = within;
  if (within) {
    Number old;
    std::memcpy(&old, d.row->data() + place, sizeof(Number));
    fits = AddNumbers(old, delta, &expected);
  }
  Say(absl::StrCat("Add to ", sizeof(Number), " bytes",
                   whole ? ", the whole payload, of " : absl::StrCat(" at ", place, " of "), Describe(d.table, d.key)));
  coro::Async<Status> add =
      caller.Add(TableAt(d.table), KeyAt(d.table, d.key), delta, &sum, whole ? Caller::kWhole : place);
  const Status status = co_await add;
  if (d.too_long) co_return Judge(status, {StatusCode::kInvalidArgument});
  if (!IsTrouble(status)) NoteRead(d.table, d.key);
  if (fits && table.placement.replicated) co_return Judge(status, {StatusCode::kFailedPrecondition});
  if (!status.ok() && sum != 1) co_return Fail("it stored a sum although it failed");
  if (!fits) {
    co_return Judge(status, {d.row == nullptr ? StatusCode::kNotFound
                             : is_row         ? StatusCode::kOutOfRange
                                              : StatusCode::kInvalidArgument});
  }
  if (status.ok() && std::memcmp(&sum, &expected, sizeof(Number)) != 0) co_return Fail("the sum is wrong");
  const std::string bytes(reinterpret_cast<const char*>(&expected), sizeof(Number));
  co_return JudgeWrite(status, d.table, d.key, WriteOf(*d.row, place, bytes));
}

template coro::Task<Status> Driver::Add<uint64_t>(Caller& caller, const Op& op, Random random);
template coro::Task<Status> Driver::Add<int8_t>(Caller& caller, const Op& op, Random random);
template coro::Task<Status> Driver::Add<double>(Caller& caller, const Op& op, Random random);

Status Driver::CompareCursor(const txn::Cursor& cursor, const Op& op, const std::optional<Model::Row>& expected) {
  const size_t table = op.places[0].table;
  if (cursor.valid() != expected.has_value()) {
    return Fail(cursor.valid() ? absl::StrCat("it is at ", Describe(table, StringOf(cursor.key())), ", not at the end")
                               : absl::StrCat("it is at the end, not at ", Describe(table, expected->key)));
  }
  if (!expected.has_value()) return absl::OkStatus();
  const std::string key = StringOf(cursor.key());
  if (key != expected->key) {
    return Fail(absl::StrCat("it is at ", Describe(table, key), ", not at ", Describe(table, expected->key)));
  }
  if (!op.keys_only && TextOf(cursor.payload()) != expected->payload) {
    return Fail(absl::StrCat("the payload of ", Describe(table, key), " is wrong"));
  }
  if (op.for_update) held_.push_back({cursor.handle(), table, key});
  scans_.push_back({.table = table, .from = key, .to = key, .keys_only = op.keys_only});
  return absl::OkStatus();
}

coro::Task<Status> Driver::MoveCursor(Caller& caller, const Op& op, Random random) {
  const size_t table = op.places[0].table;
  const TableSpec& spec = world_.tables[table];
  const bool bytes = spec.options.key_kind == index::KeyKind::kBytes;
  const std::string least = bytes ? "" : IntegerKey(0);
  const std::string greatest = bytes ? std::string(spec.options.max_key_bytes, '\xff') : IntegerKey(UINT64_MAX);
  // The range, for the cursor and as rows of the model.
  std::string from = spec.keys[op.places[0].key];
  std::string to = spec.keys[op.places[1].key];
  KeyRange range;
  bool with_from = true;
  bool with_to = true;
  if (bytes && random.OneIn(4)) {
    const std::string prefix = from.substr(0, random.Below(from.size() + 1));
    range = KeyRange::Prefix(prefix);
    from = prefix;
    to = prefix + std::string(spec.options.max_key_bytes - prefix.size(), '\xff');
  } else {
    if (to < from && !random.OneIn(10)) std::swap(from, to);
    with_from = !random.OneIn(3);
    with_to = !random.OneIn(3);
    const bool open_from = random.OneIn(3);
    const bool open_to = random.OneIn(3);
    if (!open_from) range.from = KeyRange::End{txn::KeyCopy(KeyAt(table, from)), with_from};
    if (!open_to) range.to = KeyRange::End{txn::KeyCopy(KeyAt(table, to)), with_to};
    if (open_from) from = least;
    if (open_to) to = greatest;
    with_from = with_from || open_from;
    with_to = with_to || open_to;
  }
  const auto rows = [&] {
    std::vector<Model::Row> all = model_.Range(table, from, to, /*reverse=*/false, SIZE_MAX);
    std::erase_if(
        all, [&](const Model::Row& row) { return (row.key == from && !with_from) || (row.key == to && !with_to); });
    return all;
  };
  Say(absl::StrCat("Cursor from ", with_from ? "" : "behind ", Describe(table, from), " to ", with_to ? "" : "before ",
                   Describe(table, to), op.keys_only ? " keys only" : "", op.for_update ? " for update" : ""));
  txn::Cursor cursor =
      caller.OpenCursor(TableAt(table), {.range = range, .keys_only = op.keys_only, .for_update = op.for_update});
  if (op.for_update) read_ahead_.push_back({.table = table, .from = from, .to = to, .keys_only = op.keys_only});
  std::optional<Model::Row> at;
  const uint64_t moves = 1 + random.Below(random.OneIn(4) ? 60 : 8);
  for (uint64_t i = 0; i < moves; ++i) {
    if (i > 0 && random.OneIn(6)) {
      Op write = op;
      write.places = {{.table = table, .key = random.Below(spec.keys.size())}};
      coro::Task<Status> writing;
      const uint64_t kind = random.Below(3);
      if (kind == 0) writing = Upsert(caller, write, Random(random()));
      if (kind == 1) writing = RemoveByKey(caller, write, Random(random()));
      if (kind == 2) writing = UpdateByKey(caller, write, Random(random()));
      Status written = co_await writing;
      if (!written.ok()) co_return written;
    }
    const std::vector<Model::Row> all = rows();
    const std::string& key = spec.keys[random.Below(spec.keys.size())];
    const uint64_t kind = random.Below(10);
    const bool forward = random.OneIn(2);
    coro::Async<Status> move = absl::OkStatus();
    std::string base;  // the rows that count are not on this side of it
    bool with_base = true;
    if (kind == 0) {
      Say(forward ? "  First" : "  Last");
      base = forward ? least : greatest;
      move = caller.Done(forward ? cursor.First() : cursor.Last());
    } else if (kind < 3) {
      Say(absl::StrCat(forward ? "  SeekForward " : "  SeekBackward ", Describe(table, key)));
      base = key;
      move = caller.Done(forward ? cursor.SeekForward(KeyAt(table, key)) : cursor.SeekBackward(KeyAt(table, key)));
    } else {
      Say(forward ? "  Next" : "  Previous");
      move = caller.Done(forward ? cursor.Next() : cursor.Previous());
      if (!at.has_value()) {
        const Status refused = co_await move;
        Status judged = Judge(refused, {StatusCode::kFailedPrecondition});
        if (!judged.ok()) co_return judged;
        continue;
      }
      base = at->key;
      with_base = false;
    }
    const Status status = co_await move;
    if (spec.options.index == txn::IndexKind::kHash) {
      co_return Judge(status, {StatusCode::kFailedPrecondition});
    }
    Status judged = Judge(status, {StatusCode::kOk});
    if (!judged.ok()) co_return judged;
    at.reset();
    for (const Model::Row& row : all) {
      const bool counts = row.key == base ? with_base : forward ? base < row.key : row.key < base;
      if (counts && (!forward || !at.has_value())) at = row;
    }
    judged = CompareCursor(cursor, op, at);
    if (!judged.ok()) co_return judged;
  }
  co_return absl::OkStatus();
}

}  // namespace gannet::model
