// Driver: single operations, their expected results, and their effect on the model.
#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tests/model/driver.h"

namespace gannet::model {
namespace {

using absl::StatusCode;
using txn::GetRequest;
using txn::RecordHandle;

// Limit of the payload bytes that one transaction writes.
constexpr size_t kMostWritten = size_t{1} << 20;
constexpr char kGuard = '\x5a';
constexpr size_t kGuardBytes = 64;
constexpr size_t kBytesOfChange = 18;  // DatabaseOptions::log_large_buffer_bytes

// What to read of a payload, and the result if there is one. An offset of Caller::kWhole: the whole payload.
struct Piece {
  uint32_t offset = 0;
  size_t size = 0;
  StatusCode code = StatusCode::kOk;

  std::string_view Of(std::string_view payload) const {
    return payload.substr(offset == Caller::kWhole ? 0 : offset, size);
  }
  std::string ToString() const {
    return offset == Caller::kWhole ? absl::StrCat("of ", size, " bytes") : absl::StrCat("[", offset, ", +", size, ")");
  }
};

// A part of a payload of `size` bytes that lies in it; the rest may not.
Piece DrawPart(Random& random, size_t size, bool may_be_beyond) {
  switch (random.Below(may_be_beyond ? 5 : 3)) {
    case 0:
      return {.offset = 0, .size = size};
    case 1: {
      const auto offset = static_cast<uint32_t>(random.Below(size + 1));
      return {.offset = offset, .size = random.Below(size - offset + 1)};
    }
    case 2:
      return {.offset = static_cast<uint32_t>(size), .size = 0};
    case 3: {
      const auto offset = static_cast<uint32_t>(random.Below(size + 1));
      return {.offset = offset, .size = size - offset + 1 + random.Below(100), .code = StatusCode::kOutOfRange};
    }
    default:
      return {.offset = static_cast<uint32_t>(size + 1 + random.Below(100)),
              .size = random.Below(100),
              .code = StatusCode::kOutOfRange};
  }
}

// Any size but this one.
size_t DrawOther(Random& random, size_t size) {
  const size_t other = random.Below(size + 40);
  return other < size ? other : other + 1;
}

Piece DrawPiece(Random& random, size_t size) {
  if (random.OneIn(3)) return {.offset = Caller::kWhole, .size = size};
  if (random.OneIn(8)) {
    return {.offset = Caller::kWhole, .size = DrawOther(random, size), .code = StatusCode::kInvalidArgument};
  }
  return DrawPart(random, size, true);
}

// An output buffer followed by bytes that must not change.
class Output {
 public:
  explicit Output(size_t size) : size_(size), bytes_(size + kGuardBytes, kGuard) {}
  std::span<std::byte> span() { return std::as_writable_bytes(std::span(bytes_)).first(size_); }
  std::string_view text() const { return std::string_view(bytes_).substr(0, size_); }
  bool guarded() const {
    return std::all_of(bytes_.begin() + static_cast<ptrdiff_t>(size_), bytes_.end(),
                       [](char c) { return c == kGuard; });
  }

 private:
  size_t size_;
  std::string bytes_;
};

std::string Hex(std::string_view bytes) {
  return absl::BytesToHexString(std::string(bytes));
}

std::string Difference(std::string_view got, std::string_view expected) {
  if (got.size() != expected.size()) {
    return absl::StrCat("has ", got.size(), " bytes instead of ", expected.size());
  }
  size_t first = 0;
  while (first < got.size() && got[first] == expected[first]) ++first;
  size_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) wrong += got[i] != expected[i] ? 1 : 0;
  return absl::StrCat("is wrong from byte ", first, " on, ", wrong, " of ", got.size(),
                      " bytes: ", Hex(got.substr(first, 16)), " instead of ", Hex(expected.substr(first, 16)));
}

}  // namespace

Driver::Drawn Driver::Draw(const Op& op, Random* random) {
  Drawn drawn;
  drawn.table = op.places[0].table;
  const txn::TableOptions& table = world_.tables[drawn.table].options;
  drawn.key = world_.tables[drawn.table].keys[op.places[0].key];
  if (table.key_kind == index::KeyKind::kBytes && random->OneIn(40)) {
    drawn.too_long = true;
    const size_t most = random->OneIn(2) ? index::kShortKeyBytes : 2 * index::kMaxKeyBytes;
    const size_t beyond = most > table.max_key_bytes ? most - table.max_key_bytes : 1;
    drawn.key.resize(table.max_key_bytes + 1 + random->Below(beyond), 'x');
  }
  drawn.row = model_.Find(drawn.table, drawn.key);
  return drawn;
}

coro::Task<Status> Driver::ExecuteOp(Caller& caller, const Op& op) {
  ++statistics_.operations;
  const Random random(op.salt);
  coro::Task<Status> task;
  switch (op.kind) {
    case OpKind::kGet:
    case OpKind::kGetForUpdate:
      task = Get(caller, op, random);
      break;
    case OpKind::kGetMany:
      task = GetMany(caller, op, random);
      break;
    case OpKind::kUpdateByHandle:
      task = UpdateByHandle(caller, op, random);
      break;
    case OpKind::kUpdateByKey:
      task = UpdateByKey(caller, op, random);
      break;
    case OpKind::kInsert:
      co_return Insert(caller, op, random);
    case OpKind::kRemoveByHandle:
      co_return RemoveByHandle(caller, op, random);
    case OpKind::kRemoveByKey:
      task = RemoveByKey(caller, op, random);
      break;
    case OpKind::kScan:
      task = Scan(caller, op);
      break;
    case OpKind::kPages:
      task = ScanPages(caller, op);
      break;
    case OpKind::kGetView:
      task = GetView(caller, op, random);
      break;
    case OpKind::kExists:
      task = Exists(caller, op, random);
      break;
    case OpKind::kUpsert:
      task = Upsert(caller, op, random);
      break;
    case OpKind::kUpdateIf:
      task = UpdateIf(caller, op, random);
      break;
    case OpKind::kAdd:
      task = op.salt % 3 == 0   ? Add<uint64_t>(caller, op, random)
             : op.salt % 3 == 1 ? Add<int8_t>(caller, op, random)
                                : Add<double>(caller, op, random);
      break;
    case OpKind::kCursor:
      task = MoveCursor(caller, op, random);
      break;
    case OpKind::kGetBy:
      task = GetBy(caller, op, random);
      break;
    case OpKind::kIndexCursor:
      task = MoveIndexCursor(caller, op, random);
      break;
    case OpKind::kValidate: {
      Say("Validate");
      coro::Async<Status> validation = caller.Validate();
      const Status status = co_await validation;
      co_return Judge(status, {StatusCode::kOk});
    }
    case OpKind::kCommit:
      task = EndInBody(caller, op);
      break;
    case OpKind::kRollback:
      if (!by_hand_) {
        task = EndInBody(caller, op);
        break;
      }
      Say("Rollback");
      caller.Rollback();
      model_.Rollback();
      held_.clear();
      reads_.clear();
      blind_.clear();
      scans_.clear();
      read_by_index_.clear();
      reading_operations_ = 0;
      co_return absl::OkStatus();
    case OpKind::kInterlope:
      co_return Interlope(op, random);
    case OpKind::kDropped:
      task = UseDropped(caller, random);
      break;
  }
  Status status = co_await task;
  co_return status;
}

// A body of Run must not end its transaction. After it has tried, every later call is refused, and so is Run.
coro::Task<Status> Driver::EndInBody(Caller& caller, const Op& op) {
  ended_ = true;
  if (op.kind == OpKind::kRollback) {
    Say("Rollback in a body of Run");
    caller.Rollback();
  } else {
    Say("Commit in a body of Run");
    coro::Async<Status> commit = caller.Commit();
    const Status committed = co_await commit;
    if (!absl::IsFailedPrecondition(committed)) co_return Fail(absl::StrCat("it returned ", committed.ToString()));
  }
  const Op::Place& place = op.places[0];
  const index::Key key = KeyAt(place.table, world_.tables[place.table].keys[place.key]);
  coro::Async<Status> get = caller.Get(TableAt(place.table), key, std::span<std::byte>(), 0);
  const Status got = co_await get;
  coro::Async<Status> removal = caller.Remove(TableAt(place.table), key);
  const Status removed = co_await removal;
  coro::Async<Status> validation = caller.Validate();
  const Status valid = co_await validation;
  for (const Status& status : {got, removed, valid, caller.Insert(TableAt(place.table), key, {})}) {
    if (!absl::IsFailedPrecondition(status)) {
      co_return Fail(absl::StrCat("a call after it returned ", status.ToString()));
    }
  }
  co_return absl::OkStatus();
}

// `keys_only`: the transaction depends only on which rows there are. A scan for update reads them, also if it returns
// only keys.
void Driver::NoteScan(size_t table, const index::ScanRange& range, const txn::ScanRows& rows, bool keys_only) {
  if (range.limit == 0 || range.to < range.from) return;  // reads nothing
  Scanned scanned{.table = table, .from = StringOf(range.from), .to = StringOf(range.to), .keys_only = keys_only};
  if (rows.size() == range.limit) (range.reverse ? scanned.from : scanned.to) = StringOf(rows.key(rows.size() - 1));
  scans_.push_back(std::move(scanned));
}

// True if the transaction depends on the row; with `existence`, also if it depends only on its presence or absence.
bool Driver::HasRead(size_t table, const std::string& key, bool existence) const {
  return reads_.contains({table, key}) || std::ranges::any_of(scans_, [&](const Scanned& scanned) {
           return scanned.table == table && scanned.from <= key && key <= scanned.to &&
                  (existence || !scanned.keys_only);
         });
}

// Runs a whole transaction of another session. Nothing is locked before a commit, so it must succeed.
Status Driver::Interlope(const Op& op, Random random) {
  if (interloped_) return absl::OkStatus();
  const auto node = static_cast<size_t>(random.Below(cluster_.nodes()));
  const size_t number = node == static_cast<size_t>(node_) ? 1 - session_ : random.Below(kSessionsPerNode);
  struct Change {
    size_t table;
    std::string key;
    std::optional<std::string> payload;  // nullopt: the row is removed
    bool present;
  };
  std::vector<Change> changes;
  std::string text = absl::StrCat("meanwhile, session ", number, " of node ", node, ":");
  for (const Op::Place& place : op.places) {
    const TableSpec& spec = world_.tables[place.table];
    const std::string& key = spec.keys[place.key];
    const auto known = [&](const Change& change) { return change.table == place.table && change.key == key; };
    if (spec.options.placement.replicated || std::ranges::any_of(changes, known)) continue;
    // The row was inserted and removed again: it cannot be seen whether the change came before or after.
    if (blind_.contains({place.table, key}) && model_.Find(place.table, key) == nullptr) continue;
    // The transaction may or may not have the row for update by now. If it has, its later reads return the old row.
    const auto reads_ahead = [&](const Scanned& ahead) {
      return ahead.table == place.table && ahead.from <= key && key <= ahead.to;
    };
    if (std::ranges::any_of(read_ahead_, reads_ahead)) continue;
    // The transaction may or may not have read the entries of the row by now.
    if (world_.HasIndex(place.table) && (model_.ChangesAnyOf(place.table) || read_by_index_.contains(place.table))) {
      continue;
    }
    Change change{.table = place.table, .key = key, .payload = {}, .present = false};
    change.present = model_.committed(place.table).contains(key);
    if (!change.present || random.OneIn(2)) change.payload = DrawPayload(random, DrawSize(random, spec.options));
    absl::StrAppend(&text,
                    !change.present  ? " insert "
                    : change.payload ? " update "
                                     : " remove ",
                    Describe(place.table, key),
                    change.payload ? absl::StrCat(" with ", change.payload->size(), " bytes") : "");
    changes.push_back(std::move(change));
  }
  size_t log_bytes = 0;
  for (const Change& change : changes) {
    log_bytes += kBytesOfChange + change.key.size() + (change.payload.has_value() ? change.payload->size() : 0);
  }
  if (changes.empty() || log_bytes > world_.most_change_bytes()) return absl::OkStatus();
  Model others = model_;
  others.Rollback();
  for (const Change& change : changes) {
    if (change.payload.has_value()) others.Put(change.table, change.key, *change.payload);
    if (!change.payload.has_value()) others.Remove(change.table, change.key);
  }
  if (Violates(others)) return absl::OkStatus();
  interloped_ = true;
  Say(std::move(text));
  const auto body = [&](txn::Transaction& transaction) -> coro::Task<Status> {
    for (const Change& change : changes) {
      const txn::Table& table = cluster_.table(node, change.table);
      const index::Key key = KeyAt(change.table, change.key);
      Status status;
      if (!change.payload.has_value()) {
        status = co_await transaction.Remove(table, key);
      } else if (change.present) {
        status = co_await transaction.Update(table, key, BytesOf(*change.payload));
      } else {
        status = transaction.Insert(table, key, BytesOf(*change.payload));
      }
      if (!status.ok()) co_return status;
    }
    co_return absl::OkStatus();
  };
  cluster_.bed().SetFaults(false);
  txn::Session& other = cluster_.session(node, number);
  Status status = other.RunBlocking(body);
  // A log that failed to READ the other nodes' epochs refuses commits until it tries again.
  for (int attempt = 1; IsTrouble(status) && !absl::IsUnknown(status) && attempt < kMostAttempts; ++attempt) {
    other.worker().BlockOn(other.worker().Sleep(NowNanos() + 1'000'000));
    status = other.RunBlocking(body);
  }
  cluster_.bed().SetFaults(true);
  if (!status.ok()) return Fail(absl::StrCat(said_.back(), ": ", status.ToString()));
  for (Change& change : changes) {
    const bool existence = !change.present || !change.payload.has_value();
    if (HasRead(change.table, change.key, existence)) {
      (reading_operations_ == 1 && !model_.ChangesAny() ? past_ : doomed_) = true;
    }
    // It was inserted without an earlier read.
    if (!doomed_ && model_.Changes(change.table, change.key)) clash_ = true;
    Model::Rows& rows = model_.committed(change.table);
    if (change.payload.has_value()) {
      rows[change.key] = *std::move(change.payload);
    } else {
      rows.erase(change.key);
    }
  }
  if (doomed_) clash_ = false;
  return absl::OkStatus();
}

coro::Task<Status> Driver::Get(Caller& caller, const Op& op, Random random) {
  const Drawn d = Draw(op, &random);
  const Piece piece = DrawPiece(random, d.row != nullptr ? d.row->size() : random.Below(100));
  const bool for_update = op.kind == OpKind::kGetForUpdate;
  Say(absl::StrCat(for_update ? "GetForUpdate " : "Get ", Describe(d.table, d.key), " ", piece.ToString()));
  const StatusCode expected = d.too_long         ? StatusCode::kInvalidArgument
                              : d.row == nullptr ? StatusCode::kNotFound
                                                 : piece.code;
  Output out(piece.size);
  Status status;
  RecordHandle handle;
  if (for_update) {
    coro::Async<StatusOr<RecordHandle>> got =
        caller.GetForUpdate(TableAt(d.table), KeyAt(d.table, d.key), out.span(), piece.offset);
    const StatusOr<RecordHandle> result = co_await got;
    status = result.status();
    if (result.ok()) handle = *result;
  } else {
    coro::Async<Status> got = caller.Get(TableAt(d.table), KeyAt(d.table, d.key), out.span(), piece.offset);
    status = co_await got;
  }
  Status judged = Judge(status, {expected});
  if (!judged.ok()) co_return judged;
  if (!d.too_long) NoteRead(d.table, d.key);
  if (!out.guarded()) co_return Fail("it wrote behind the output");
  if (!status.ok()) co_return absl::OkStatus();
  const std::string_view wanted = piece.Of(*d.row);
  if (out.text() != wanted) co_return Fail(absl::StrCat("the payload ", Difference(out.text(), wanted)));
  if (for_update) held_.push_back({handle, d.table, d.key});
  co_return absl::OkStatus();
}

coro::Task<Status> Driver::GetMany(Caller& caller, const Op& op, Random random) {
  // The requests of an earlier call are reused: their results must not matter.
  if (!options_.reuse) requests_.clear();
  requests_.resize(std::max(requests_.size(), op.places.size()));
  std::vector<Output> outputs;
  std::vector<Piece> pieces;
  std::string text = "GetMany";
  for (size_t i = 0; i < op.places.size(); ++i) {
    const Op::Place& place = op.places[i];
    const std::string& key = world_.tables[place.table].keys[place.key];
    const std::string* row = model_.Find(place.table, key);
    pieces.push_back(DrawPiece(random, row != nullptr ? row->size() : random.Below(100)));
    outputs.emplace_back(pieces.back().size);
    absl::StrAppend(&text, i == 0 ? " " : ", ", Describe(place.table, key), " ", pieces[i].ToString(),
                    place.for_update ? " for update" : "");
  }
  Say(std::move(text));
  for (size_t i = 0; i < op.places.size(); ++i) {
    const Op::Place& place = op.places[i];
    GetRequest& request = requests_[i];
    request.table = &TableAt(place.table);
    request.key = KeyAt(place.table, world_.tables[place.table].keys[place.key]);
    request.out = outputs[i].span();
    request.offset = pieces[i].offset;
    request.for_update = place.for_update;
  }
  const std::span<GetRequest> requests = std::span(requests_).first(op.places.size());
  coro::Async<Status> got = caller.GetMany(requests);
  const Status status = co_await got;
  Status judged = Judge(status, {StatusCode::kOk});
  if (!judged.ok()) co_return judged;
  for (size_t i = 0; i < op.places.size(); ++i) {
    const Op::Place& place = op.places[i];
    const std::string& key = world_.tables[place.table].keys[place.key];
    const std::string* row = model_.Find(place.table, key);
    const StatusCode expected = row == nullptr ? StatusCode::kNotFound : pieces[i].code;
    const GetRequest& request = requests[i];
    const std::string which = absl::StrCat("request ", i, ", ", Describe(place.table, key), ": ");
    if (IsTrouble(request.status)) co_return request.status;
    if (request.status.code() != expected) {
      co_return Fail(absl::StrCat(which, request.status.ToString(), " instead of ", StatusCodeToString(expected)));
    }
    NoteRead(place.table, key);
    if (!outputs[i].guarded()) co_return Fail(absl::StrCat(which, "it wrote behind the output"));
    if (!request.status.ok()) continue;
    if (request.payload_bytes != row->size()) {
      co_return Fail(absl::StrCat(which, "payload_bytes is ", request.payload_bytes, " instead of ", row->size()));
    }
    const std::string_view wanted = pieces[i].Of(*row);
    if (outputs[i].text() != wanted) {
      co_return Fail(absl::StrCat(which, "the payload ", Difference(outputs[i].text(), wanted)));
    }
    if (place.for_update) held_.push_back({request.handle, place.table, key});
  }
  co_return absl::OkStatus();
}

// True if the transaction may write the row (any number of times, except with DriverOptions::write_again off).
bool Driver::MayWrite(size_t table, const std::string& key) const {
  const txn::TableOptions& options = world_.tables[table].options;
  if (written_bytes_ + options.payload_bytes > 2 * kMostWritten) return false;
  return options_.write_again || !options.variable_length || !model_.Changes(table, key);
}

// A size that no row of the table has.
size_t Driver::UnfitSize(Random& random, const txn::TableOptions& table) {
  return table.variable_length || random.OneIn(2) ? table.payload_bytes + 1 + random.Below(100)
                                                  : random.Below(table.payload_bytes);
}

size_t Driver::AffordableSize(Random& random, const txn::TableOptions& table) {
  size_t size = DrawSize(random, table);
  if (table.variable_length && written_bytes_ + size > kMostWritten) size = std::min<size_t>(size, 64);
  return size;
}

// `old` with `data` at `offset`.
std::string Driver::WriteOf(const std::string& old, size_t offset, const std::string& data) {
  std::string result = old;
  result.replace(offset, data.size(), data);
  return result;
}

// Bytes of the log that the transaction's changes take, if this row becomes that payload, or is removed.
size_t Driver::LogBytesWith(size_t table, const std::string& key, const std::optional<std::string>& payload) const {
  size_t bytes = 0;
  const auto count = [&](size_t of_table, const std::string& of_key, const std::optional<std::string>& to) {
    if (!to.has_value() && !model_.committed(of_table).contains(of_key)) return;
    bytes += kBytesOfChange + of_key.size() + (to.has_value() ? to->size() : 0);
  };
  for (size_t i = 0; i < world_.tables.size(); ++i) {
    for (const auto& [changed, to] : model_.changes(i)) {
      if (i != table || changed != key) count(i, changed, to);
    }
  }
  count(table, key, payload);
  return bytes;
}

// Judges a write that has no other result than Ok, or that the log cannot take it, and notes it.
Status Driver::JudgeWrite(const Status& status, size_t table, const std::string& key,
                          std::optional<std::string> payload) {
  const bool is_too_large = LogBytesWith(table, key, payload) > world_.most_change_bytes();
  Status judged = Judge(status, {is_too_large ? StatusCode::kResourceExhausted : StatusCode::kOk});
  if (!judged.ok() || is_too_large) return judged;
  if (payload.has_value()) {
    NoteWrite(table, key, *std::move(payload));
  } else {
    model_.Remove(table, key);
  }
  return absl::OkStatus();
}

void Driver::NoteWrite(size_t table, const std::string& key, std::string payload) {
  written_bytes_ += payload.size() + 200;
  model_.Put(table, key, std::move(payload));
}

coro::Task<Status> Driver::UpdateByHandle(Caller& caller, const Op& op, Random random) {
  if (held_.empty()) {
    Op get = op;
    get.kind = OpKind::kGetForUpdate;
    coro::Task<Status> first = Get(caller, get, random);
    Status status = co_await first;
    if (!status.ok() || held_.empty()) co_return status;
  }
  const Held held = held_[held_.size() - 1 - random.Below(std::min<size_t>(held_.size(), 4))];
  const txn::TableOptions& table = world_.tables[held.table].options;
  if (!MayWrite(held.table, held.key)) co_return absl::OkStatus();
  const std::string* row = model_.Find(held.table, held.key);
  const size_t old_size = row != nullptr ? row->size() : 0;
  Piece piece;
  bool fits = true;
  const uint64_t way = random.Below(20);
  if (way < 8) {
    piece = {.offset = Caller::kWhole, .size = AffordableSize(random, table)};
  } else if (way == 8) {
    piece = DrawPart(random, old_size, true);
    piece.size = old_size + 1 - std::min<size_t>(piece.offset, old_size) + random.Below(10);
    fits = false;
  } else if (way == 9) {
    piece = {.offset = Caller::kWhole, .size = UnfitSize(random, table)};
    fits = false;
  } else {
    piece = DrawPart(random, old_size, false);
  }
  const std::string data = DrawPayload(random, piece.size);
  Say(absl::StrCat("Update by handle ", held.handle.index, " ", Describe(held.table, held.key), " ", piece.ToString()));
  const Status status = caller.Update(held.handle, BytesOf(data), piece.offset);
  if (table.placement.replicated || row == nullptr) {
    co_return Judge(status, fits ? Codes{StatusCode::kFailedPrecondition}
                                 : Codes{StatusCode::kFailedPrecondition, StatusCode::kInvalidArgument});
  }
  if (!IsTrouble(status)) NoteRead(held.table, held.key);
  if (!fits) co_return Judge(status, {StatusCode::kInvalidArgument});
  co_return JudgeWrite(status, held.table, held.key,
                       piece.offset == Caller::kWhole ? data : WriteOf(*row, piece.offset, data));
}

coro::Task<Status> Driver::UpdateByKey(Caller& caller, const Op& op, Random random) {
  const Drawn d = Draw(op, &random);
  const txn::TableOptions& table = world_.tables[d.table].options;
  if (!MayWrite(d.table, d.key)) co_return absl::OkStatus();
  bool fits = true;
  Piece piece{.offset = Caller::kWhole, .size = AffordableSize(random, table)};
  if (random.OneIn(16)) {
    piece.size = UnfitSize(random, table);
    fits = false;
  } else if (random.OneIn(4)) {
    piece = DrawPart(random, d.row != nullptr ? d.row->size() : random.Below(100), random.OneIn(8));
    fits = piece.code == StatusCode::kOk;
  }
  const std::string data = DrawPayload(random, piece.size);
  Say(absl::StrCat("Update ", Describe(d.table, d.key), " ", piece.ToString()));
  coro::Async<Status> update = caller.Update(TableAt(d.table), KeyAt(d.table, d.key), BytesOf(data), piece.offset);
  const Status status = co_await update;
  if (d.too_long) co_return Judge(status, {StatusCode::kInvalidArgument});
  // The row is read before the size is judged.
  if (!IsTrouble(status) && (d.row != nullptr || !absl::IsInvalidArgument(status))) NoteRead(d.table, d.key);
  if (d.row == nullptr) {
    co_return Judge(status,
                    fits && !table.placement.replicated
                        ? Codes{StatusCode::kNotFound}
                        : Codes{StatusCode::kNotFound, StatusCode::kInvalidArgument, StatusCode::kFailedPrecondition});
  }
  if (table.placement.replicated) {
    co_return Judge(status, fits ? Codes{StatusCode::kFailedPrecondition}
                                 : Codes{StatusCode::kFailedPrecondition, StatusCode::kInvalidArgument});
  }
  if (!fits) co_return Judge(status, {StatusCode::kInvalidArgument});
  co_return JudgeWrite(status, d.table, d.key,
                       piece.offset == Caller::kWhole ? data : WriteOf(*d.row, piece.offset, data));
}

Status Driver::Insert(Caller& caller, const Op& op, Random random) {
  const Drawn d = Draw(op, &random);
  const txn::TableOptions& table = world_.tables[d.table].options;
  if (!MayWrite(d.table, d.key)) return absl::OkStatus();
  bool fits = true;
  size_t size = AffordableSize(random, table);
  if (random.OneIn(20)) {
    size = UnfitSize(random, table);
    fits = false;
  }
  const std::string payload = DrawPayload(random, size);
  Say(absl::StrCat("Insert ", Describe(d.table, d.key), " of ", size, " bytes"));
  const Status status = caller.Insert(TableAt(d.table), KeyAt(d.table, d.key), BytesOf(payload));
  if (d.too_long) return Judge(status, {StatusCode::kInvalidArgument});
  if (table.placement.replicated) {
    return Judge(status, fits ? Codes{StatusCode::kFailedPrecondition}
                              : Codes{StatusCode::kFailedPrecondition, StatusCode::kInvalidArgument});
  }
  if (!fits) {
    return Judge(status, d.row == nullptr ? Codes{StatusCode::kInvalidArgument}
                                          : Codes{StatusCode::kInvalidArgument, StatusCode::kAlreadyExists});
  }
  if (d.row != nullptr) {
    // A small log may have no room for another change.
    Status judged = world_.log_bytes == 0
                        ? Judge(status, {StatusCode::kOk, StatusCode::kAlreadyExists})
                        : Judge(status, {StatusCode::kOk, StatusCode::kAlreadyExists, StatusCode::kResourceExhausted});
    clash_ = judged.ok() && status.ok();
    return judged;
  }
  const bool is_blind = !HasRead(d.table, d.key, true);
  Status judged = JudgeWrite(status, d.table, d.key, payload);
  if (!judged.ok() || !status.ok()) return judged;
  if (is_blind) blind_.insert({d.table, d.key});
  // Handles from before the removal of this row may refer to it or not.
  std::erase_if(held_, [&](const Held& held) { return held.table == d.table && held.key == d.key; });
  return absl::OkStatus();
}

Status Driver::RemoveByHandle(Caller& caller, const Op& op, Random random) {
  if (held_.empty()) return absl::OkStatus();
  const Held held = held_[held_.size() - 1 - random.Below(std::min<size_t>(held_.size(), 4))];
  static_cast<void>(op);
  Say(absl::StrCat("Remove by handle ", held.handle.index, " ", Describe(held.table, held.key)));
  const bool present = model_.Find(held.table, held.key) != nullptr;
  const Status status = caller.Remove(held.handle);
  if (world_.tables[held.table].options.placement.replicated) {
    return Judge(status, {StatusCode::kFailedPrecondition});
  }
  if (!present) return Judge(status, {StatusCode::kNotFound});
  if (!IsTrouble(status)) NoteRead(held.table, held.key);
  return JudgeWrite(status, held.table, held.key, std::nullopt);
}

coro::Task<Status> Driver::RemoveByKey(Caller& caller, const Op& op, Random random) {
  const Drawn d = Draw(op, &random);
  Say(absl::StrCat("Remove ", Describe(d.table, d.key)));
  coro::Async<Status> removal = caller.Remove(TableAt(d.table), KeyAt(d.table, d.key));
  const Status status = co_await removal;
  if (d.too_long) co_return Judge(status, {StatusCode::kInvalidArgument});
  if (!IsTrouble(status)) NoteRead(d.table, d.key);
  if (world_.tables[d.table].options.placement.replicated) {
    co_return Judge(status, d.row == nullptr ? Codes{StatusCode::kNotFound, StatusCode::kFailedPrecondition}
                                             : Codes{StatusCode::kFailedPrecondition});
  }
  if (d.row == nullptr) co_return Judge(status, {StatusCode::kNotFound});
  co_return JudgeWrite(status, d.table, d.key, std::nullopt);
}

Status Driver::CompareRows(const txn::ScanRows& rows, const std::vector<Model::Row>& expected, const Op& op) {
  const size_t table = op.places[0].table;
  for (size_t i = 0; i < std::min(rows.size(), expected.size()); ++i) {
    const std::string key = StringOf(rows.key(i));
    if (key != expected[i].key) {
      return Fail(absl::StrCat("row ", i, " of ", rows.size(), " is ", Describe(table, key), " instead of ",
                               Describe(table, expected[i].key)));
    }
    if (!op.keys_only) {
      const std::span<const std::byte> payload = rows.payload(i);
      const std::string_view got(reinterpret_cast<const char*>(payload.data()), payload.size());
      if (got != expected[i].payload) {
        return Fail(absl::StrCat("row ", i, ", ", Describe(table, key), ", ", Difference(got, expected[i].payload)));
      }
    }
    if (op.for_update) held_.push_back({rows.handle(i), table, key});
  }
  if (rows.size() != expected.size()) {
    return Fail(absl::StrCat("it has ", rows.size(), " rows instead of ", expected.size()));
  }
  return absl::OkStatus();
}

coro::Task<Status> Driver::Scan(Caller& caller, const Op& op) {
  const size_t table = op.places[0].table;
  const std::string& from = world_.tables[table].keys[op.places[0].key];
  const std::string& to = world_.tables[table].keys[op.places[1].key];
  Say(absl::StrCat("Scan ", Describe(table, from), " to ", Describe(table, to), op.reverse ? " reverse" : "",
                   op.limit == SIZE_MAX ? "" : absl::StrCat(" limit ", op.limit), op.keys_only ? " keys only" : "",
                   op.for_update ? " for update" : ""));
  const index::ScanRange range{
      .from = KeyAt(table, from), .to = KeyAt(table, to), .reverse = op.reverse, .limit = op.limit};
  const txn::ScanOptions options{.keys_only = op.keys_only, .for_update = op.for_update};
  coro::Async<Status> scan = caller.Scan(TableAt(table), range, &rows_, options);
  const Status status = co_await scan;
  if (world_.tables[table].options.index == txn::IndexKind::kHash) {
    co_return Judge(status, {StatusCode::kFailedPrecondition});
  }
  Status judged = Judge(status, {StatusCode::kOk});
  if (!judged.ok()) co_return judged;
  NoteScan(table, range, rows_, op.keys_only && !op.for_update);
  co_return CompareRows(rows_, model_.Range(table, from, to, op.reverse, op.limit), op);
}

// Scans into the same rows, from their last key on: that key lies in the rows' own memory.
coro::Task<Status> Driver::ScanPages(Caller& caller, const Op& op) {
  const size_t table = op.places[0].table;
  if (world_.tables[table].options.index == txn::IndexKind::kHash) co_return absl::OkStatus();
  std::string from = world_.tables[table].keys[op.places[0].key];
  std::string to = world_.tables[table].keys[op.places[1].key];
  if (to < from) std::swap(from, to);
  index::ScanRange range{.from = KeyAt(table, from), .to = KeyAt(table, to), .reverse = op.reverse, .limit = op.limit};
  const txn::ScanOptions options{.keys_only = op.keys_only, .for_update = op.for_update};
  for (;;) {
    Say(absl::StrCat("Scan a page of ", Describe(table, from), " to ", Describe(table, to),
                     op.reverse ? " reverse" : "", " limit ", op.limit, op.keys_only ? " keys only" : "",
                     op.for_update ? " for update" : ""));
    coro::Async<Status> scan = caller.Scan(TableAt(table), range, &rows_, options);
    const Status status = co_await scan;
    Status judged = Judge(status, {StatusCode::kOk});
    if (!judged.ok()) co_return judged;
    NoteScan(table, range, rows_, op.keys_only && !op.for_update);
    judged = CompareRows(rows_, model_.Range(table, from, to, op.reverse, op.limit), op);
    if (!judged.ok() || rows_.size() < op.limit) co_return judged;
    const index::Key last = rows_.key(rows_.size() - 1);
    (op.reverse ? to : from) = StringOf(last);
    (op.reverse ? range.to : range.from) = options_.own_pages ? last : KeyAt(table, op.reverse ? to : from);
  }
}

coro::Task<Status> Driver::Compare(txn::Transaction& transaction, const Model& model, std::string* difference) {
  difference->clear();
  for (size_t table = 0; table < world_.tables.size(); ++table) {
    const TableSpec& spec = world_.tables[table];
    std::vector<GetRequest> requests;
    std::vector<Output> outputs;
    outputs.reserve(spec.keys.size());
    for (const std::string& key : spec.keys) {
      const auto row = model.committed(table).find(key);
      outputs.emplace_back(row == model.committed(table).end() ? 0 : row->second.size());
      GetRequest& request = requests.emplace_back();
      request.table = &TableAt(table);
      request.key = KeyAt(table, key);
      request.out = outputs.back().span();
    }
    Status status = co_await transaction.GetMany(requests);
    if (!status.ok()) co_return status;
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto row = model.committed(table).find(spec.keys[i]);
      const bool present = row != model.committed(table).end();
      const GetRequest& request = requests[i];
      if (IsTrouble(request.status)) co_return request.status;
      if (present != request.status.ok() || (present && request.payload_bytes != row->second.size()) ||
          (!present && !absl::IsNotFound(request.status))) {
        *difference =
            absl::StrCat(Describe(table, spec.keys[i]), " is ", request.status.ToString(), ", ", request.payload_bytes,
                         " bytes, instead of ", present ? absl::StrCat("of ", row->second.size(), " bytes") : "absent");
        co_return absl::OkStatus();
      }
      if (present && outputs[i].text() != row->second) {
        *difference = absl::StrCat(Describe(table, spec.keys[i]), " ", Difference(outputs[i].text(), row->second));
        co_return absl::OkStatus();
      }
    }
    if (spec.options.index == txn::IndexKind::kHash) continue;
    // The range includes keys that were never inserted.
    const std::string lowest = spec.options.key_kind == index::KeyKind::kBytes ? "" : IntegerKey(0);
    const std::string highest = spec.options.key_kind == index::KeyKind::kBytes
                                    ? std::string(spec.options.max_key_bytes, '\xff')
                                    : IntegerKey(UINT64_MAX);
    txn::ScanRows rows;
    const index::ScanRange range{.from = KeyAt(table, lowest), .to = KeyAt(table, highest)};
    const txn::ScanOptions options{.keys_only = true};
    status = co_await transaction.Scan(TableAt(table), range, &rows, options);
    if (!status.ok()) co_return status;
    if (rows.size() != model.committed(table).size()) {
      *difference = absl::StrCat("a scan of ", spec.options.name, " has ", rows.size(), " rows instead of ",
                                 model.committed(table).size());
      co_return absl::OkStatus();
    }
  }
  coro::Task<Status> indexes = CompareIndexes(transaction, model, difference);
  co_return co_await indexes;
}

}  // namespace gannet::model
