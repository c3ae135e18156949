// Driver: reads by secondary indexes.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/model/driver.h"

namespace gannet::model {
namespace {

using absl::StatusCode;
using index::Key;

// `fields` may be the first ones.
index::TupleKey TupleOf(const std::vector<int>& fields) {
  index::TupleKey tuple;
  for (const int field : fields) tuple.Append(field);
  return tuple;
}

}  // namespace

// The fields of the row's entry. Empty: the row is not in the index.
std::vector<int> Driver::FieldsOf(const IndexSpec& index, const std::string& payload) {
  if (payload.size() < 2) return {};
  if (index.options.unique) return {static_cast<uint8_t>(payload[1])};
  return {static_cast<uint8_t>(payload[0]), static_cast<int8_t>(payload[1])};
}

std::vector<Driver::Indexed> Driver::RowsOf(const Model& model, const IndexSpec& index) const {
  std::vector<Indexed> rows;
  for (const auto& [key, payload] : model.All(index.table)) {
    std::vector<int> fields = FieldsOf(index, *payload);
    if (!fields.empty()) rows.push_back({std::move(fields), key, payload});
  }
  std::ranges::sort(rows, [](const Indexed& a, const Indexed& b) { return a < b; });
  return rows;
}

bool Driver::Violates(const Model& model) const {
  return std::ranges::any_of(world_.indexes, [&](const IndexSpec& index) {
    if (!index.options.unique) return false;
    const std::vector<Indexed> rows = RowsOf(model, index);
    return std::ranges::adjacent_find(rows, {}, &Indexed::fields) != rows.end();
  });
}

coro::Task<Status> Driver::GetBy(Caller& caller, const Op& op, Random random) {
  const IndexSpec& spec = world_.indexes[op.index];
  const txn::SecondaryIndex& index = cluster_.index(static_cast<size_t>(node_), op.index);
  const std::vector<Indexed> rows = RowsOf(model_, spec);
  const int field =
      rows.empty() || random.OneIn(3) ? static_cast<int>(random.Below(256)) : rows[random.Below(rows.size())].fields[0];
  Say(absl::StrCat("GetBy ", spec.options.name, " ", field, op.for_update ? " for update" : ""));
  const auto row = std::ranges::find(rows, std::vector<int>{field}, &Indexed::fields);
  const bool violates = Violates(model_);
  const index::TupleKey tuple = TupleOf({field});
  coro::Async<StatusOr<txn::RowBy>> getting =
      caller.GetBy(index, random.OneIn(2) ? Key(field) : Key(tuple), op.for_update);
  const StatusOr<txn::RowBy> got = co_await getting;
  Status judged = Judge(got.status(), {violates            ? StatusCode::kAlreadyExists
                                       : row == rows.end() ? StatusCode::kNotFound
                                                           : StatusCode::kOk});
  if (!judged.ok()) co_return judged;
  read_by_index_.insert(spec.table);
  if (!got.ok()) co_return absl::OkStatus();
  if (StringOf(got->key) != row->key) {
    co_return Fail(absl::StrCat("it is ", Describe(spec.table, StringOf(got->key)), " instead of ",
                                Describe(spec.table, row->key)));
  }
  if (TextOf(got->payload) != *row->payload) co_return Fail("it has another payload");
  NoteRead(spec.table, row->key);
  if (op.for_update) held_.push_back({got->handle, spec.table, row->key});
  co_return absl::OkStatus();
}

coro::Task<Status> Driver::MoveIndexCursor(Caller& caller, const Op& op, Random random) {
  const IndexSpec& spec = world_.indexes[op.index];
  const txn::SecondaryIndex& index = cluster_.index(static_cast<size_t>(node_), op.index);
  // Ends of one field or of two.
  const auto draw = [&] {
    std::vector<int> end = {static_cast<int>(random.Below(256))};
    if (!spec.options.unique && random.OneIn(2)) end.push_back(static_cast<int>(random.Below(256)) - 128);
    return end;
  };
  std::vector<int> from = draw();
  std::vector<int> to = draw();
  if (to < from) std::swap(from, to);
  const bool has_from = random.OneIn(2);
  const bool has_to = random.OneIn(2);
  const bool with_from = random.OneIn(2);
  const bool with_to = random.OneIn(2);
  txn::KeyRange range;
  const index::TupleKey from_key = TupleOf(from);
  const index::TupleKey to_key = TupleOf(to);
  if (has_from) range.from = txn::KeyRange::End{txn::KeyCopy(from_key), with_from};
  if (has_to) range.to = txn::KeyRange::End{txn::KeyCopy(to_key), with_to};
  Say(absl::StrCat("IndexCursor ", spec.options.name, has_from ? with_from ? " from " : " behind " : "",
                   has_from ? absl::StrJoin(from, ",") : "", has_to ? with_to ? " to " : " before " : "",
                   has_to ? absl::StrJoin(to, ",") : "", op.reverse ? " reverse" : "", op.keys_only ? " keys only" : "",
                   op.for_update ? " for update" : ""));
  // An end of fewer fields stands for all that begin so.
  const auto part = [](const std::vector<int>& fields, const std::vector<int>& end) {
    return std::vector<int>(fields.begin(), fields.begin() + static_cast<ptrdiff_t>(end.size()));
  };
  std::vector<Indexed> expected = RowsOf(model_, spec);
  std::erase_if(expected, [&](const Indexed& row) {
    const std::vector<int> low = part(row.fields, from);
    const std::vector<int> high = part(row.fields, to);
    return (has_from && (low < from || (low == from && !with_from))) ||
           (has_to && (to < high || (high == to && !with_to)));
  });
  if (op.reverse) std::ranges::reverse(expected);
  const bool violates = Violates(model_);
  txn::IndexCursor cursor =
      caller.OpenCursor(index, {.range = range, .keys_only = op.keys_only, .for_update = op.for_update});
  for (size_t i = 0; i < op.limit; ++i) {
    coro::Async<Status> move = caller.Done(i == 0       ? op.reverse ? cursor.Last() : cursor.First()
                                                 : op.reverse ? cursor.Previous()
                                                        : cursor.Next());
    const Status status = co_await move;
    Status judged = Judge(status, {violates ? StatusCode::kAlreadyExists : StatusCode::kOk});
    if (!judged.ok() || violates) co_return judged;
    read_by_index_.insert(spec.table);
    if (cursor.valid() != (i < expected.size())) {
      co_return Fail(absl::StrCat("row ", i, " is ", cursor.valid() ? "there" : "missing"));
    }
    if (!cursor.valid()) break;
    const std::string key = StringOf(cursor.key());
    if (key != expected[i].key) {
      co_return Fail(absl::StrCat("row ", i, " is ", Describe(spec.table, key), " instead of ",
                                  Describe(spec.table, expected[i].key)));
    }
    if (!op.keys_only && TextOf(cursor.payload()) != *expected[i].payload) {
      co_return Fail(absl::StrCat("row ", i, " has another payload"));
    }
    const StatusOr<index::OwnedKey> index_key = cursor.index_key();
    if (!index_key.ok() || index_key->bytes() != TupleOf(expected[i].fields).bytes()) {
      co_return Fail(absl::StrCat("row ", i, " has another key in the index"));
    }
    if (!op.keys_only) NoteRead(spec.table, key);
    if (op.for_update) held_.push_back({cursor.handle(), spec.table, key});
  }
  co_return absl::OkStatus();
}

coro::Task<Status> Driver::CompareIndexes(txn::Transaction& transaction, const Model& model, std::string* difference) {
  Model committed = model;
  committed.Rollback();
  for (size_t i = 0; i < world_.indexes.size(); ++i) {
    const IndexSpec& spec = world_.indexes[i];
    const txn::SecondaryIndex& index = cluster_.index(static_cast<size_t>(node_), i);
    const std::vector<Indexed> rows = RowsOf(committed, spec);
    txn::IndexCursor cursor(transaction, index);
    size_t n = 0;
    for (;; ++n) {
      coro::Async<Status> move = n == 0 ? cursor.First() : cursor.Next();
      const Status status = co_await move;
      if (!status.ok()) co_return status;
      if (!cursor.valid()) break;
      if (n >= rows.size() || StringOf(cursor.key()) != rows[n].key || TextOf(cursor.payload()) != *rows[n].payload)
        break;
    }
    if (n != rows.size() || cursor.valid()) {
      *difference = absl::StrCat(spec.options.name, " differs from its table at row ", n, " of ", rows.size());
      co_return absl::OkStatus();
    }
  }
  co_return absl::OkStatus();
}

}  // namespace gannet::model
