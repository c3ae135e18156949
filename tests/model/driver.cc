// Driver: steps, transactions, and their results.
#include "tests/model/driver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/thread.h"
#include "index/registry.h"
#include "txn/bulk_loader.h"
#include "txn/run/manual_transaction.h"

namespace gannet::model {
namespace {

const Status& OwnError() {
  static const Status error = absl::InvalidArgumentError("the body does not want to go on");
  return error;
}

const char* NameOfWay(Way way) {
  constexpr const char* kNames[] = {"by hand", "Session::Run", "Session::RunBlocking", "Database::Run",
                                    "Database::Begin"};
  return kNames[static_cast<size_t>(way)];
}
const char* NameOfEnding(Ending ending) {
  constexpr const char* kNames[] = {"Commit", "Rollback", "destroy", "return an error", "throw"};
  return kNames[static_cast<size_t>(ending)];
}

}  // namespace

Driver::Driver(World world, DriverOptions options)
    : world_(std::move(world)),
      options_(options),
      model_(world_.tables.size()),
      saved_(world_.tables.size()),
      first_tables_(world_.tables.size()),
      cluster_(&world_) {}

void Driver::Say(std::string text) {
  if (options_.trace) {
    absl::PrintF("    %s\n", text);
    std::fflush(stdout);
  }
  said_.push_back(std::move(text));
}

std::string Driver::Describe(size_t table, const std::string& key) const {
  const TableSpec& spec = world_.tables[table];
  if (spec.options.key_kind == index::KeyKind::kInteger && key.size() == sizeof(uint64_t)) {
    return absl::StrCat(spec.options.name, "/", KeyOf(index::KeyKind::kInteger, key).integer());
  }
  return absl::StrCat(spec.options.name, "/x", absl::BytesToHexString(key));
}

bool Driver::Break(std::string what) {
  if (!failed()) failure_ = Failure{.step = step_, .what = std::move(what), .operations = said_};
  return false;
}

Status Driver::Fail(std::string what) {
  Break(std::move(what));
  return absl::CancelledError("the test has failed");
}

bool Driver::IsTrouble(const Status& status) const {
  if (absl::IsAborted(status)) return true;
  return IsLossy(world_.fabric) &&
         (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsUnknown(status));
}

Status Driver::Judge(const Status& got, Codes expected) {
  if (IsTrouble(got)) return got;
  if (std::ranges::find(expected, got.code()) != expected.end()) {
    if (!got.ok() && !said_.empty()) absl::StrAppend(&said_.back(), " -> ", StatusCodeToString(got.code()));
    return absl::OkStatus();
  }
  std::string codes;
  for (const absl::StatusCode code : expected) {
    absl::StrAppend(&codes, codes.empty() ? "" : " or ", StatusCodeToString(code));
  }
  return Fail(absl::StrCat(said_.empty() ? "" : said_.back(), ": ", got.ToString(), " instead of ", codes));
}

bool Driver::Open() {
  dropped_tables_.clear();
  dropped_indexes_.clear();
  return Check(cluster_.Open()) && (!cluster_.fresh() || Load());
}

bool Driver::Load() {
  model_ = Model(world_.tables.size());
  bool any = false;
  for (size_t table = 0; table < world_.tables.size(); ++table) {
    const TableSpec& spec = world_.tables[table];
    if (!spec.loaded) continue;
    any = true;
    Random random(Mix64(world_.seed) + table);
    for (const std::string& key : spec.keys) {
      if (random.OneIn(2)) model_.committed(table)[key] = DrawPayload(random, DrawSize(random, spec.options));
    }
    for (size_t node = 0; node < cluster_.nodes(); ++node) {
      const txn::Table& there = cluster_.table(node, table);
      const auto self = static_cast<rdma::NodeId>(node);
      if (!spec.options.placement.replicated && !cluster_.database(node).owns_rows()) continue;
      txn::BulkLoader loader(&cluster_.session(node, 0), &there);
      Status status;
      for (const auto& [key, payload] : model_.committed(table)) {
        const index::Key at = KeyAt(table, key);
        if (there.OwnerOf(at, self) == self) status.Update(loader.Add(at, std::as_bytes(std::span(payload))));
      }
      status.Update(loader.Finish());
      if (!Check(status)) return false;
    }
  }
  if (any && world_.directory && !Check(cluster_.Checkpoint())) return false;
  saved_ = model_;
  return true;
}

bool Driver::Close() {
  requests_.clear();
  saved_ = model_;
  return Check(cluster_.Close());
}

void Driver::Happen(const Step& step) {
  const Event event = step.event;
  if (event == Event::kChangeTable) return ChangeTable(Random(step.event_salt));
  if (event == Event::kCheckpoint) {
    if (!world_.directory) return;
    Say("Checkpoint");
    Check(cluster_.Checkpoint());
    saved_ = model_;
    return;
  }
  if (IsSimulated(world_.fabric) || (event == Event::kCrash && !world_.directory)) return;
  ++statistics_.reopened;
  if (event == Event::kReopen) {
    Say("Close and open");
    if (!Close()) return;
  } else {
    Say("Crash and open");
    if (world_.durability == txn::DurabilityMode::kAsync) cluster_.AwaitDurable();
    requests_.clear();
    cluster_.Crash();
    if (world_.durability == txn::DurabilityMode::kNone) model_ = saved_;
  }
  if (!Open()) return;
  node_ = static_cast<int>(step_ % static_cast<uint64_t>(world_.nodes));
  Say("all rows");
  Matches(model_, cluster_.session(static_cast<size_t>(node_), 0), true);
}

// Changes of tables and indexes are durable at once, with any durability: saved_ changes with model_. The sessions of
// all nodes stay open.
void Driver::ChangeTable(Random random) {
  if (IsSimulated(world_.fabric)) return;
  ++statistics_.table_changes;
  requests_.clear();
  const size_t table = random.Below(world_.tables.size());
  switch (random.Below(7)) {
    case 0:
      Rename(table, random);
      break;
    case 1:
      DropAndCreate(table, random);
      break;
    case 2:
      Say(absl::StrCat("drop and build the indexes of ", world_.tables[table].options.name));
      for (size_t i = 0; i < world_.indexes.size(); ++i) {
        if (world_.indexes[i].table != table) continue;
        std::vector<const txn::SecondaryIndex*>& dropped = dropped_indexes_.emplace_back();
        for (size_t node = 0; node < cluster_.nodes(); ++node) dropped.push_back(&cluster_.index(node, i));
      }
      Check(cluster_.RecreateIndexes(table));
      SaveByBuild(table);
      break;
    case 3:
      Widen(table, random);
      break;
    case 4:
      CreateLike(table, random);
      break;
    case 5:
      Arrange(table);
      break;
    default:
      AddIndex(table, random);
  }
  for (size_t node = 0; node < cluster_.nodes() && !failed(); ++node) {
    node_ = static_cast<int>(node);
    Say(absl::StrCat("all rows, seen from node ", node));
    Matches(model_, cluster_.session(node, 0), true);
  }
}

// A table or, if it has some, an index of it.
void Driver::Rename(size_t table, Random& random) {
  std::string* name = &world_.tables[table].options.name;
  for (IndexSpec& index : world_.indexes) {
    if (index.table == table && random.OneIn(3)) name = &index.options.name;
  }
  const std::string from = *name;
  const std::string to = from.ends_with('\'') ? from.substr(0, from.size() - 1) : from + "'";
  Say(absl::StrCat("RenameTable ", from, " to ", to));
  if (!Check(cluster_.Rename(from, to))) return;
  for (size_t node = 0; node < cluster_.nodes(); ++node) {
    if (cluster_.database(node).FindTable(from) != nullptr) Break("it is still found by its old name");
  }
  *name = to;
  for (IndexSpec& index : world_.indexes) {
    if (index.table == table) index.options.table = world_.tables[table].options.name;
  }
  const txn::Table* const before = &cluster_.table(0, table);
  if (Check(cluster_.Adopt()) && &cluster_.table(0, table) != before) Break("a renamed table is another object");
}

// A table that CreateLike made as the last one may be dropped for good. Nobody can use what was dropped.
void Driver::DropAndCreate(size_t table, Random& random) {
  const std::string name = world_.tables[table].options.name;
  std::vector<const txn::Table*> old;
  for (size_t node = 0; node < cluster_.nodes(); ++node) old.push_back(&cluster_.table(node, table));
  const TableSpec spec = world_.tables[table];
  const std::string key = world_.tables[table].keys[0];
  const index::KeyKind kind = world_.tables[table].options.key_kind;
  if (world_.HasIndex(table)) ExpectRefused(cluster_.Drop(name), absl::StatusCode::kFailedPrecondition);
  const bool for_good =
      table + 1 == world_.tables.size() && table >= first_tables_ && !world_.HasIndex(table) && random.OneIn(2);
  Say(absl::StrCat("DropTable ", name, for_good ? "" : " and CreateTable"));
  if (for_good) {
    if (!Check(cluster_.Drop(name))) return;
    world_.tables.pop_back();
    for (Model* model : {&model_, &saved_}) model->RemoveLastTable();
    if (!Check(cluster_.Adopt())) return;
  } else {
    if (!Check(cluster_.Recreate(table))) return;
    for (Model* model : {&model_, &saved_}) model->committed(table).clear();
    SaveByBuild(table);
  }
  dropped_tables_.push_back({spec, old});
  for (size_t node = 0; node < cluster_.nodes(); ++node) {
    txn::Session& session = cluster_.session(node, 0);
    txn::Transaction transaction = session.Begin();
    ExpectRefused(Block(session, transaction.Exists(*old[node], KeyOf(kind, key))).status(),
                  absl::StatusCode::kFailedPrecondition);
  }
}

void Driver::Arrange(size_t table) {
  const txn::TableOptions& options = world_.tables[table].options;
  Say(absl::StrCat("ArrangeTable ", options.name));
  const Status arranged = cluster_.Arrange(options.name);
  if (world_.nodes > 1) return ExpectRefused(arranged, absl::StatusCode::kUnimplemented);
  if (index::EntryOf(options.index).traits.ordered) {
    Check(arranged);
  } else {
    ExpectRefused(arranged, absl::StatusCode::kFailedPrecondition);
  }
}

void Driver::Widen(size_t table, Random& random) {
  txn::TableOptions& options = world_.tables[table].options;
  const size_t more = std::min(txn::kMaxPayloadBytes, options.payload_bytes + random.Below(100));
  Say(absl::StrCat("WidenTable ", options.name, " to ", more));
  ExpectRefused(cluster_.Widen(options.name, options.payload_bytes - 1), absl::StatusCode::kInvalidArgument);
  for (const IndexSpec& index : world_.indexes) {
    if (index.table != table) continue;
    ExpectRefused(cluster_.Widen(index.options.name, txn::kMaxPayloadBytes), absl::StatusCode::kFailedPrecondition);
  }
  if (!Check(cluster_.Widen(options.name, more))) return;
  options.payload_bytes = more;
  if (options.variable_length) return;
  for (Model* model : {&model_, &saved_}) {
    for (auto& [key, payload] : model->committed(table)) payload.resize(more, '\0');
  }
}

// Creates a table like another one, without rows and indexes.
void Driver::CreateLike(size_t table, Random& random) {
  constexpr size_t kMostMore = 3;
  if (world_.tables.size() == first_tables_ + kMostMore) return;
  TableSpec spec = world_.tables[table];
  spec.options.name = absl::StrCat("more", world_.tables.size());
  spec.loaded = false;
  Say(absl::StrCat("CreateTable ", spec.options.name));
  const std::string taken = world_.tables[random.Below(world_.tables.size())].options.name;
  if (!Check(cluster_.Create(spec.options))) return;
  ExpectRefused(cluster_.Create(spec.options), absl::StatusCode::kAlreadyExists);
  ExpectRefused(cluster_.Rename(spec.options.name, taken), absl::StatusCode::kAlreadyExists);
  world_.tables.push_back(std::move(spec));
  for (Model* model : {&model_, &saved_}) model->AddTable();
  Check(cluster_.Adopt());
}

// Makes one more index of a table, over its rows. If two of them have one key of a unique index, it is not made.
void Driver::AddIndex(size_t table, Random& random) {
  constexpr size_t kMostIndexes = 6;
  if (world_.indexes.size() >= kMostIndexes || world_.log_bytes != 0) return;
  std::optional<IndexSpec> drawn =
      DrawIndex(random, world_, table, absl::StrCat("index", world_.indexes.size()), random.OneIn(2));
  if (!drawn.has_value()) return;
  const txn::SecondaryIndexOptions options = drawn->options;
  world_.indexes.push_back(*std::move(drawn));
  Say(absl::StrCat("CreateIndex ", options.name, options.unique ? ", unique," : "", " of ", options.table));
  if (Violates(model_)) {
    world_.indexes.pop_back();
    ExpectRefused(cluster_.CreateIndex(options), absl::StatusCode::kAlreadyExists);
    for (size_t node = 0; node < cluster_.nodes(); ++node) {
      const txn::SecondaryIndex* const index = cluster_.database(node).FindIndex(options.name);
      if (index == nullptr || index->is_complete()) Break("an index that two rows contradict is not incomplete");
    }
    Check(cluster_.Drop(options.name));
    return;
  }
  if (!Check(cluster_.CreateIndex(options)) || !Check(cluster_.Adopt())) return;
  ExpectRefused(cluster_.CreateIndex(options), absl::StatusCode::kAlreadyExists);
  world_.tables[table].loaded = false;
  SaveByBuild(table);
}

// Without a log, the build of an index ends with a checkpoint (Database::CreateIndex).
void Driver::SaveByBuild(size_t table) {
  if (!world_.directory || world_.durability != txn::DurabilityMode::kNone) return;
  if (world_.HasIndex(table)) saved_ = model_;
}

void Driver::ExpectRefused(const Status& status, absl::StatusCode code) {
  if (status.code() != code) Break(absl::StrCat(status.ToString(), " instead of ", StatusCodeToString(code)));
}

std::optional<Failure> Driver::Run(uint64_t steps, const std::set<uint64_t>& skip) {
  said_ = {"Open"};
  if (!Open()) return failure_;
  for (step_ = 0; step_ < steps && !failed(); ++step_) {
    if (skip.contains(step_)) continue;
    if (options_.progress != nullptr) options_.progress->store(step_);
    const Step step = DrawStep(world_, step_);
    said_.clear();
    if (step.event != Event::kNothing) Happen(step);
    // The event may have changed the tables.
    if (!failed()) RunTransaction(DrawStep(world_, step_).transaction);
  }
  step_ = steps;
  said_ = {"Close"};
  if (!failed()) Close();
  return failure_;
}

void Driver::RunTransaction(const TransactionSpec& spec) {
  ++statistics_.transactions;
  node_ = spec.node;
  session_ = spec.session;
  by_hand_ = IsByHand(spec.way);
  interloped_ = false;
  attempts_ = 0;
  txn::Session& session = cluster_.session(static_cast<size_t>(spec.node), spec.session);
  cluster_.bed().SetFaults(true);
  for (int attempt = 1;; ++attempt) {
    if (Attempt(spec, session) || failed()) break;
    ++statistics_.repeated;
    Settle();
    if (attempt == kMostAttempts) Break("it does not go through, though nothing else runs");
  }
  if (attempts_ > 1 && !interloped_ && !IsLossy(world_.fabric)) {
    Break(absl::StrCat("its body ran ", attempts_, " times, though nothing else runs"));
  }
  cluster_.bed().SetFaults(false);
  if (failed()) return;
  // In a simulation every access takes computing time, so only some steps compare.
  if (IsSimulated(world_.fabric) && step_ % 4 != 0) return;
  Random random(Mix64(world_.seed) + step_);
  node_ = static_cast<int>(random.Below(static_cast<uint64_t>(world_.nodes)));
  said_.push_back(absl::StrCat("all rows, seen from node ", node_));
  Matches(model_, cluster_.session(static_cast<size_t>(node_), random.Below(kSessionsPerNode)), true);
}

// The databases settle their pending operations to other nodes.
void Driver::Settle() {
  SleepForNanos(200'000 * kSessionsPerNode * cluster_.nodes());
}

// True if the transaction is over: it ended as it had to, or the test failed. False: it met trouble, and nothing of it
// happened.
bool Driver::Attempt(const TransactionSpec& spec, txn::Session& session) {
  Status status;
  bool thrown = false;
  try {
    status = RunOnce(spec, session);
  } catch (const Thrown& what) {
    thrown = true;
    if (what.by != step_) Break(absl::StrCat("the exception of step ", what.by));
  }
  if (failed()) return true;
  return thrown ? ConcludeThrown(spec) : Conclude(spec, status);
}

Status Driver::RunOnce(const TransactionSpec& spec, txn::Session& session) {
  switch (spec.way) {
    case Way::kByHand:
      return ByHand(spec, session);
    case Way::kRun:
    case Way::kRunBlocking: {
      const auto coroutine = [this, &spec](txn::Transaction& transaction) -> coro::Task<Status> {
        Caller caller(&transaction);
        coro::Task<Status> task = Execute(caller, spec);
        Status status = co_await task;
        if (status.ok() && spec.ending != Ending::kCommit && !clash_) status = OwnError();
        co_return status;
      };
      const auto body = [this, &spec, &coroutine](txn::Transaction& transaction) -> coro::Task<Status> {
        if (!spec.plain) return coroutine(transaction);
        Caller caller(&transaction);
        ExecutePlain(caller, spec);
      };
      if (spec.way == Way::kRunBlocking) return session.RunBlocking(body);
      txn::RunOutcome outcome;
      const Status status = session.worker().BlockOn(session.Run(body, &outcome, txn::Until::kVisible));
      return Block(session, session.WhenDurable(outcome.durable_at, status));
    }
    case Way::kDatabaseRun:
      return cluster_.database(static_cast<size_t>(spec.node)).Run([&](txn::BlockingTransaction& blocking) {
        Status status = ExecuteBlocking(blocking, spec);
        if (status.ok() && spec.ending != Ending::kCommit && !clash_) status = OwnError();
        return status;
      });
    case Way::kManual:
      return Manually(spec);
  }
  return absl::InternalError("no such way");
}

Status Driver::ExecuteBlocking(txn::BlockingTransaction& transaction, const TransactionSpec& spec) {
  BlockingCaller caller(&transaction);
  coro::Task<Status> task = Execute(caller, spec);
  task.await_ready();  // nothing in it suspends
  return task.await_resume();
}

Status Driver::ByHand(const TransactionSpec& spec, txn::Session& session) {
  txn::Transaction transaction = session.Begin();
  Caller caller(&transaction);
  Status status = session.worker().BlockOn(Execute(caller, spec));
  if (!status.ok()) return status;
  switch (clash_ ? Ending::kCommit : spec.ending) {
    case Ending::kCommit:
      if (doomed_ && step_ % 2 == 0) {
        status = Block(session, transaction.Validate());
        if (status.ok()) return Fail("what it has read was changed meanwhile, and it is valid");
      }
      status = Block(session, transaction.Commit());
      if (step_ % 4 == 0) UseWhatIsOver(spec, transaction, session);
      return status;
    case Ending::kRollback:
    case Ending::kError:
      transaction.Rollback();
      return OwnError();
    case Ending::kDestroy:
      return OwnError();
    case Ending::kThrow:
      break;  // it has thrown already
  }
  return absl::InternalError("no such ending");
}

Status Driver::Manually(const TransactionSpec& spec) {
  StatusOr<txn::ManualTransaction> begun = cluster_.database(static_cast<size_t>(spec.node)).Begin();
  if (!begun.ok()) return begun.status();
  txn::ManualTransaction& transaction = *begun;
  Status status = ExecuteBlocking(*transaction, spec);
  if (!status.ok()) return status;
  switch (clash_ ? Ending::kCommit : spec.ending) {
    case Ending::kCommit:
      if (doomed_ && step_ % 2 == 0 && transaction->Validate().ok()) {
        return Fail("what it has read was changed meanwhile, and it is valid");
      }
      status = transaction.Commit();
      if (step_ % 4 == 0 && !absl::IsFailedPrecondition(transaction.Commit())) {
        Break("a second Commit did not return FailedPrecondition");
      }
      return status;
    case Ending::kRollback:
    case Ending::kError:
      transaction.Rollback();
      return OwnError();
    case Ending::kDestroy:
    case Ending::kThrow:
      return OwnError();
  }
  return absl::InternalError("no such ending");
}

void Driver::UseWhatIsOver(const TransactionSpec& spec, txn::Transaction& transaction, txn::Session& session) {
  const Op::Place& place = spec.ops[0].places[0];
  const index::Key key = KeyAt(place.table, world_.tables[place.table].keys[place.key]);
  txn::GetRequest request{.table = &TableAt(place.table), .key = key, .out = {}, .offset = 0};
  const Status results[] = {
      Block(session, transaction.Get(TableAt(place.table), key, std::span<std::byte>(), 0)),
      Block(session, transaction.GetMany(std::span(&request, 1))),
      Block(session, transaction.Commit()),
      transaction.Insert(TableAt(place.table), key, std::string()),
  };
  for (const Status& result : results) {
    if (!absl::IsFailedPrecondition(result)) {
      Break(absl::StrCat("a call after Commit returned ", result.ToString()));
    }
  }
}

// May be called more than once for a transaction.
void Driver::BeginAttempt(const TransactionSpec& spec) {
  said_ = {absl::StrCat("transaction ", NameOfWay(spec.way), " at node ", spec.node, ", session ", spec.session, ", ",
                        NameOfEnding(spec.ending))};
  if (options_.trace) absl::PrintF("  step %u: %s\n", step_, said_[0]);
  ++attempts_;
  model_.Rollback();
  held_.clear();
  clash_ = false;
  ignored_ = false;
  ended_ = false;
  doomed_ = false;
  past_ = false;
  reading_operations_ = 0;
  reads_.clear();
  blind_.clear();
  scans_.clear();
  read_ahead_.clear();
  read_by_index_.clear();
  written_bytes_ = 0;
}

coro::Task<Status> Driver::Execute(Caller& caller, const TransactionSpec& spec) {
  BeginAttempt(spec);
  for (const Op& op : spec.ops) {
    const size_t read_before = reads_.size() + scans_.size();
    coro::Task<Status> task = ExecuteOp(caller, op);
    Status status = co_await task;
    if (reads_.size() + scans_.size() > read_before) ++reading_operations_;
    if (IsTrouble(status) && op.salt % 2 == 0) {  // a careless body, which ignores errors
      ignored_ = true;
      break;
    }
    if (!status.ok()) co_return status;
    if (clash_ || doomed_ || past_ || ended_) break;
  }
  if (spec.ending == Ending::kThrow) throw Thrown{step_};
  co_return absl::OkStatus();
}

void Driver::ExecutePlain(Caller& caller, const TransactionSpec& spec) {
  BeginAttempt(spec);
  for (const Op& op : spec.ops) {
    if (op.kind != OpKind::kInsert || clash_ || failed()) continue;
    ++statistics_.operations;
    if (IsTrouble(Insert(caller, op, Random(op.salt)))) ignored_ = true;
  }
  throw Thrown{step_};
}

// Checks an exception. It is passed on like an error of the body: not if an operation failed, nor if the reads are
// invalid.
bool Driver::ConcludeThrown(const TransactionSpec& spec) {
  Say("result: the exception");
  model_.Rollback();
  if (spec.ending != Ending::kThrow) return Break("the body threw nothing");
  if (IsByHand(spec.way)) return !ignored_;  // repeated like others that met trouble
  if (ended_) return Break("the body ended its transaction, and its exception was believed");
  if (ignored_) return Break("an operation failed, and the exception was believed");
  if (doomed_) return Break("what it has read was changed meanwhile, and the exception was believed");
  return true;
}

bool Driver::Conclude(const TransactionSpec& spec, const Status& status) {
  Say(absl::StrCat("result: ", status.ToString()));
  if (ended_) {
    model_.Rollback();
    if (!absl::IsFailedPrecondition(status)) {
      Break(absl::StrCat("the body ended its transaction, and Run returned ", status.ToString()));
    }
    return true;
  }
  if (absl::IsUnknown(status) && IsTrouble(status)) {
    ++statistics_.unknown;
    Resolve();
    return true;
  }
  if (IsTrouble(status)) {
    model_.Rollback();
    return false;
  }
  if (doomed_) {
    model_.Rollback();
    if (IsByHand(spec.way) && status == OwnError()) return true;
    if (status.ok() || status == OwnError()) {
      return !Break(absl::StrCat("what it has read was changed meanwhile, and it ended with ", status.ToString()));
    }
    return false;
  }
  if (ignored_) {
    // A transaction by hand that is not to be committed is repeated like others that met trouble.
    model_.Rollback();
    if (IsByHand(spec.way) && status == OwnError()) return false;
    return !Break(absl::StrCat("an operation failed, and the end was ", status.ToString()));
  }
  if (past_) {
    model_.Rollback();
    return status.ok() || status == OwnError();
  }
  if (spec.ending == Ending::kThrow)
    return Break(absl::StrCat("the body threw, and it ended with ", status.ToString()));
  if (clash_) {
    model_.Rollback();
    return !IsTrouble(Judge(status, {absl::StatusCode::kAlreadyExists}));
  }
  if (spec.ending != Ending::kCommit) {
    model_.Rollback();
    if (status != OwnError()) Break(absl::StrCat("the body's error came back as ", status.ToString()));
    return true;
  }
  if (Violates(model_)) {
    model_.Rollback();
    return !IsTrouble(Judge(status, {absl::StatusCode::kAlreadyExists}));
  }
  if (!Judge(status, {absl::StatusCode::kOk}).ok()) return true;
  ++statistics_.committed;
  model_.Commit();
  return true;
}

// The outcome is unknown: all of it was committed, or nothing.
void Driver::Resolve() {
  cluster_.bed().SetFaults(false);
  Settle();
  Model changed = model_;
  changed.Commit();
  model_.Rollback();
  txn::Session& session = cluster_.session(static_cast<size_t>(node_), 0);
  if (Matches(changed, session, false)) {
    model_ = std::move(changed);
  } else {
    Matches(model_, session, true);
  }
}

bool Driver::Matches(const Model& model, txn::Session& session, bool fail) {
  std::string difference;
  Status status;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    {
      txn::Transaction transaction = session.Begin();
      status = session.worker().BlockOn(Compare(transaction, model, &difference));
      if (status.ok() && !difference.empty()) {
        // A body may read an inconsistent state: the difference counts only if the reads are valid.
        status = Block(session, transaction.Validate());
      } else if (status.ok()) {
        status = Block(session, transaction.Commit());
      }
    }
    if (!IsTrouble(status)) break;
    Settle();
  }
  if (!status.ok()) {
    return Break(absl::StrCat("cannot read all rows: ", status.ToString()));
  }
  if (!difference.empty() && fail) Break(difference);
  return difference.empty();
}

}  // namespace gannet::model
