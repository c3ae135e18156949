#include "tests/model/crowd.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "tests/model/caller.h"
#include "tests/model/cluster.h"
#include "tests/model/model.h"
#include "txn/node/row_checks.h"

namespace gannet::model {
namespace {

using txn::GetRequest;
using txn::RecordHandle;
using txn::ScanRows;

constexpr size_t kHeaderBytes = 32;  // checksum, version, amount, size
constexpr int64_t kAmount = 1000;
// A table and an index that are made and dropped all the time.
constexpr const char* kSide = "side";
constexpr const char* kExtra = "extra";
constexpr size_t kRunThreads = 3;       // per node: they use only Database::Run, often more than World::run_sessions
constexpr size_t kMostKeys = 24;        // per table: few, so that transactions conflict
constexpr uint32_t kMostAttempts = 60;  // after this a transaction that reads everything gives up

uint64_t HashOf(size_t table, const std::string& key) {
  uint64_t hash = Mix64(table + 1) + key.size();
  for (const char byte : key) hash = Mix64(hash ^ static_cast<uint8_t>(byte));
  return hash;
}

struct Header {
  uint64_t checksum = 0;
  uint64_t version = 0;
  int64_t amount = 0;
  uint64_t size = 0;  // when the row was written: what is behind was added when its table was widened
};
static_assert(sizeof(Header) == kHeaderBytes);

uint64_t ChecksumOf(uint64_t key, const Header& header) {
  return Mix64(Mix64(Mix64(key ^ header.version) + static_cast<uint64_t>(header.amount)) ^ header.size);
}

// True if a row that was written with `written` bytes may have `size` bytes.
bool MayHave(const txn::Table& table, size_t size, uint64_t written) {
  return written >= kHeaderBytes && (table.options().variable_length ? size == written : size >= written);
}

std::string MakeRow(uint64_t key, uint64_t version, int64_t amount, size_t size) {
  Header header{.version = version, .amount = amount, .size = size};
  header.checksum = ChecksumOf(key, header);
  std::string row(size, '\0');
  std::memcpy(row.data(), &header, sizeof header);
  uint64_t state = header.checksum;
  for (size_t at = kHeaderBytes; at < size; at += 8) {
    const uint64_t word = SplitMix64(state);
    std::memcpy(row.data() + at, &word, std::min<size_t>(8, size - at));
  }
  return row;
}

// Returns what is wrong, or an empty string.
std::string CheckRow(const txn::Table& table, uint64_t key, std::span<const std::byte> row, Header* header) {
  if (row.size() < kHeaderBytes) return absl::StrCat("has only ", row.size(), " bytes");
  std::memcpy(header, row.data(), sizeof *header);
  if (!MayHave(table, row.size(), header->size)) {
    return absl::StrCat("has ", row.size(), " bytes, and was written with ", header->size);
  }
  std::string expected = MakeRow(key, header->version, header->amount, header->size);
  expected.resize(row.size(), '\0');
  if (std::memcmp(expected.data(), row.data(), row.size()) == 0) return "";
  size_t first = 0;
  while (static_cast<std::byte>(expected[first]) == row[first]) ++first;
  return absl::StrCat("of version ", header->version, ", amount ", header->amount, ", ", row.size(),
                      " bytes, is not of a piece from byte ", first, " on");
}

struct Place {
  size_t table;
  const std::string* key;
};

// A row as a transaction read it.
struct Got {
  bool present = false;
  Header header;
  size_t size = 0;
  RecordHandle handle;
};

class Crowd {
 public:
  explicit Crowd(World world) : world_(std::move(world)), cluster_(&world_) {
    std::erase_if(world_.tables, [](const TableSpec& spec) { return spec.options.placement.replicated; });
    // Random rows would violate unique indexes often, and the sum of all amounts cannot tell which writes did.
    std::erase_if(world_.indexes, [](const IndexSpec& index) { return index.options.unique; });
    if (world_.tables.empty()) world_.tables.push_back({.options = {.name = "only"}, .keys = {IntegerKey(1)}});
    for (TableSpec& spec : world_.tables) {
      spec.options.payload_bytes = std::max<size_t>(spec.options.payload_bytes, kHeaderBytes);
      if (spec.keys.size() > kMostKeys) spec.keys.resize(kMostKeys);
    }
  }

  std::optional<std::string> Run(uint64_t transactions, CrowdStatistics* statistics) {
    if (Check(cluster_.Open()) && Fill() && !failed()) {
      cluster_.bed().SetFaults(true);
      Work(transactions);
      cluster_.bed().SetFaults(false);
      if (!failed()) EndCatalog();
      CheckEnd();
      if (!failed() && world_.directory && !IsSimulated(world_.fabric)) Reopen();
      if (!failed()) Check(cluster_.Close());
    }
    statistics->committed = committed_;
    statistics->refused = refused_;
    statistics->totals = totals_;
    statistics->unknown = unknown_;
    statistics->table_changes = table_changes_;
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  struct Worker {
    size_t node;
    uint64_t number;  // unique among the workers of the node
    Random random;
    std::vector<GetRequest> requests{};
    ScanRows rows{};
    bool stale = false;  // this attempt saw two versions of a row, so it must not commit
    bool ended = false;  // a body of Run called Commit or Rollback, so it must not commit either
    bool aside = false;  // it used the table that ChangeCatalog drops

    // Before each attempt; and before Run, which fails without one if it gets no session.
    void Forget() { stale = ended = aside = false; }
  };

  bool failed() const { return failed_.load(); }
  void Fail(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (!failure_.has_value()) failure_ = what;
    failed_ = true;
  }
  bool Check(const Status& status) {
    if (!status.ok()) Fail(status.ToString());
    return status.ok();
  }
  static Status Stop() { return absl::CancelledError("the test has failed"); }
  Status Wrong(const std::string& what) {
    Fail(what);
    return Stop();
  }

  index::Key KeyAt(const Place& place) const { return KeyOf(world_.tables[place.table].options.key_kind, *place.key); }
  const txn::Table& TableAt(const Worker& worker, size_t table) const { return cluster_.table(worker.node, table); }
  // A size that the table allows now. A table whose rows have one length keeps it until the end of a transaction that
  // has found the table usable.
  static size_t SizeFor(Random& random, const txn::Table& table) {
    txn::TableOptions now;
    now.payload_bytes = table.payload_bytes();
    now.variable_length = table.options().variable_length;
    return std::max(kHeaderBytes, DrawSize(random, now));
  }
  uint64_t NewVersion() { return next_version_.fetch_add(1); }
  std::string RowOf(Random& random, const txn::Table& table, const Place& place, int64_t amount) {
    return MakeRow(HashOf(place.table, *place.key), NewVersion(), amount, SizeFor(random, table));
  }
  std::string Describe(const Place& place) const {
    return absl::StrCat(world_.tables[place.table].options.name, "/", KeyAt(place).ToString());
  }
  Place DrawPlace(Random& random) const {
    const size_t table = random.Below(world_.tables.size());
    const auto& keys = world_.tables[table].keys;
    return {table, &keys[random.Below(keys.size())]};
  }

  bool Fill() {
    Random random(Mix64(world_.seed));
    txn::Session& session = cluster_.session(0, 0);
    for (size_t table = 0; table < world_.tables.size(); ++table) {
      for (const std::string& key : world_.tables[table].keys) {
        if (random.OneIn(2)) continue;
        const Place place{table, &key};
        const std::string row = RowOf(random, cluster_.table(0, table), place, kAmount);
        const Status status = session.RunBlocking([&](txn::Transaction& t) -> coro::Task<Status> {
          co_return t.Insert(cluster_.table(0, table), KeyAt(place), std::as_bytes(std::span(row)));
        });
        if (!Check(status)) return false;
        total_ += kAmount;
      }
    }
    return true;
  }

  auto BodyOf(Worker& worker) {
    return [this, &worker](txn::Transaction& transaction) -> coro::Task<Status> {
      Caller caller(&transaction);
      coro::Task<Status> task = Do(worker, caller);
      Status status = co_await task;
      co_return status;
    };
  }

  void Work(uint64_t transactions) {
    std::vector<Thread> threads;
    for (size_t node = 0; node < cluster_.nodes(); ++node) {
      for (size_t i = 0; i < kSessionsPerNode + kRunThreads; ++i) {
        threads.emplace_back("crowd", [this, node, i, transactions] { WorkAt(node, i, transactions); });
      }
    }
    std::atomic<bool> ended{false};
    Thread catalog("catalog", [this, &ended] { ChangeCatalog(ended); });
    for (Thread& thread : threads) thread.join();
    ended = true;
    catalog.join();
  }

  // Changes the tables and indexes of all nodes while the others work: renames tables to and fro, widens them, drops
  // and creates a table that the others also use, and an index by which they read. EndCatalog drops what is then there
  // and not in the world.
  void ChangeCatalog(const std::atomic<bool>& ended) {
    if (IsSimulated(world_.fabric)) return;  // its time is that of the workers
    Random random(Mix64(world_.seed) + 77);
    while (!ended && !failed()) {
      const size_t table = random.Below(world_.tables.size());
      Status changed;
      switch (random.Below(4)) {
        case 0:
          changed = RenameToAndFro(table);
          break;
        case 1:
          changed = Widen(table, random);
          break;
        case 2:
          changed = ChangeSide(random);
          break;
        default:
          changed = ChangeExtra(table, random);
      }
      // Rows that a node cannot tell others about in time.
      const bool lost = IsLossy(world_.fabric) &&
                        (absl::IsUnavailable(changed) || absl::IsDeadlineExceeded(changed) || absl::IsUnknown(changed));
      if (!lost && !Check(changed)) return;
      ++table_changes_;
      SleepForNanos(random.Below(5'000'000));
    }
  }

  Status RenameToAndFro(size_t table) {
    const std::string& name = world_.tables[table].options.name;
    const std::string other = name + " for now";
    GANNET_RETURN_IF_ERROR(cluster_.Rename(name, other));
    const size_t last = cluster_.nodes() - 1;
    if (cluster_.database(last).FindTable(other) != &cluster_.table(last, table)) Fail("no table by its new name");
    return cluster_.Rename(other, name);
  }

  Status Widen(size_t table, Random& random) {
    const size_t now = cluster_.table(0, table).payload_bytes();
    return cluster_.Widen(world_.tables[table].options.name, std::min(txn::kMaxPayloadBytes, now + random.Below(64)));
  }

  Status ChangeSide(Random& random) {
    if (cluster_.database(0).FindTable(kSide) != nullptr) return cluster_.Drop(kSide);
    constexpr std::array kKinds = {txn::IndexKind::kHash,  txn::IndexKind::kXStore, txn::IndexKind::kBlink,
                                   txn::IndexKind::kRolex, txn::IndexKind::kDex,    txn::IndexKind::kDolphin};
    return cluster_.Create({.name = kSide,
                            .index = kKinds[random.Below(kKinds.size())],
                            .payload_bytes = sizeof(int64_t),
                            .variable_length = random.OneIn(2),
                            .placement = txn::Placement::ByHash()});
  }

  // The index has the byte fields of the others, or is unique and has the versions, which all differ; or it is unique
  // and has a byte, so that rows may contradict it: then writes are refused while it is made, and often it is not.
  Status ChangeExtra(size_t table, Random& random) {
    // Nothing else may run then while an index is made.
    if (world_.directory && world_.durability == txn::DurabilityMode::kNone) return absl::OkStatus();
    const txn::SecondaryIndex* const index = cluster_.database(0).FindIndex(kExtra);
    if (index != nullptr) return cluster_.Drop(kExtra);
    const uint64_t kind = random.Below(3);
    std::optional<IndexSpec> drawn = DrawIndex(random, world_, table, kExtra, kind > 0);
    if (!drawn.has_value()) return absl::OkStatus();
    if (kind == 1) drawn->options.fields = {txn::IndexField::Unsigned(offsetof(Header, version), 8)};
    if (kind == 2) drawn->options.fields = {txn::IndexField::Unsigned(0, 1)};
    const Status made = cluster_.CreateIndex(drawn->options);
    return kind == 2 && absl::IsAlreadyExists(made) ? absl::OkStatus() : made;
  }

  void EndCatalog() {
    for (const char* name : {kExtra, kSide}) {
      if (cluster_.database(0).FindTable(name) != nullptr && !Check(cluster_.Drop(name))) return;
    }
    for (size_t table = 0; table < world_.tables.size(); ++table) {
      world_.tables[table].options.payload_bytes = cluster_.table(0, table).payload_bytes();
    }
  }

  void WorkAt(size_t node, size_t number, uint64_t transactions) {
    const uint64_t seed = Mix64(world_.seed) + node * (kSessionsPerNode + kRunThreads) + number;
    if (number == 0) {  // several coroutines at once
      constexpr uint64_t kCoroutines = 3;
      txn::Session& session = cluster_.session(node, number);
      for (uint64_t i = 0; i < kCoroutines; ++i) {
        Worker worker{.node = node, .number = 100 + i, .random = Random(Mix64(seed) + i)};
        session.worker().Spawn(Loop(session, std::move(worker), transactions / kCoroutines + 1));
      }
      session.worker().Run();
      return;
    }
    Worker worker{.node = node, .number = number, .random = Random(seed)};
    for (uint64_t i = 0; i < transactions && !failed(); ++i) {
      worker.Forget();
      try {
        if (number < kSessionsPerNode && worker.random.OneIn(2)) {
          Judge(worker, cluster_.session(node, number).RunBlocking(BodyOf(worker)));
        } else {
          Judge(worker, cluster_.database(node).Run([&](txn::BlockingTransaction& blocking) {
            BlockingCaller caller(&blocking);
            coro::Task<Status> task = Do(worker, caller);
            task.await_ready();
            return task.await_resume();
          }));
        }
      } catch (const Thrown& thrown) {
        JudgeThrown(worker, thrown);
      }
    }
  }

  coro::Task<void> Loop(txn::Session& session, Worker worker, uint64_t transactions) {
    for (uint64_t i = 0; i < transactions && !failed(); ++i) {
      worker.Forget();
      try {
        const Status status = co_await session.Run(BodyOf(worker));
        Judge(worker, status);
      } catch (const Thrown& thrown) {
        JudgeThrown(worker, thrown);
      }
    }
  }

  // Checks an exception from a body. The sum of all amounts shows that nothing of its transaction is left.
  void JudgeThrown(const Worker& worker, const Thrown& thrown) {
    ++refused_;
    if (thrown.by != worker.number) Fail("the exception of another thread's body came back");
    if (worker.stale) Fail("the exception of a body that saw two versions of a row was believed");
    if (worker.ended) Fail("a body ended its transaction, and its exception was believed");
  }

  // True if a transaction may end with this error, and then has no effect.
  bool IsRefusal(const Status& status) const {
    if (absl::IsCancelled(status)) return failed();
    if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return IsLossy(world_.fabric);
    return absl::IsAlreadyExists(status) || absl::IsNotFound(status) || absl::IsOutOfRange(status) ||
           absl::IsResourceExhausted(status);
  }

  void Judge(const Worker& worker, const Status& status) {
    if (worker.ended) {
      ++refused_;
      if (!absl::IsFailedPrecondition(status)) {
        Fail(absl::StrCat("a body ended its transaction, and Run returned ", status.ToString()));
      }
    } else if (status.ok()) {
      ++committed_;
      if (worker.stale) Fail("a transaction that saw two versions of a row has committed");
    } else if (absl::IsUnknown(status) && IsLossy(world_.fabric)) {
      ++unknown_;
    } else if (IsRefusal(status) || (worker.aside && absl::IsFailedPrecondition(status))) {
      ++refused_;
    } else {
      Fail(absl::StrCat("a transaction ended with ", status.ToString()));
    }
  }

  coro::Task<Status> Do(Worker& worker, Caller& caller) {
    worker.Forget();
    coro::Task<Status> task;
    const uint64_t kind = worker.random.Below(10);
    if (kind == 0) {
      task = Total(worker, caller);
    } else if (kind < 3) {
      task = ScanSome(worker, caller);
    } else if (kind == 3) {
      task = MoveAside(worker, caller);
    } else {
      task = Move(worker, caller);
    }
    Status status = co_await task;
    // A careless body: the error of the operation counts, not what the body returns.
    const bool failure = absl::IsAborted(status) || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
    if (failure && worker.random.OneIn(4)) {
      if (worker.random.OneIn(3)) throw Thrown{worker.number};
      co_return worker.random.OneIn(2) ? absl::OkStatus() : absl::NotFoundError("the body looked away");
    }
    if (!status.ok()) co_return status;
    if (worker.random.OneIn(16)) throw Thrown{worker.number};
    if (worker.random.OneIn(32)) {
      worker.ended = true;
      if (worker.random.OneIn(2)) {
        caller.Rollback();
      } else {
        coro::Async<Status> commit = caller.Commit();
        const Status committed = co_await commit;
        if (committed.ok()) co_return Wrong("a body has committed its transaction");
      }
    }
    co_return status;
  }

  // Reads both rows at once: header and size; then possibly all of each.
  coro::Task<Status> ReadBoth(Worker& worker, Caller& caller, const std::array<Place, 2>& places,
                              std::array<Got, 2>* got) {
    std::array<Header, 2> headers;
    worker.requests.resize(2);  // still with the results of earlier calls
    for (size_t i = 0; i < 2; ++i) {
      GetRequest& request = worker.requests[i];
      request.table = &TableAt(worker, places[i].table);
      request.key = KeyAt(places[i]);
      request.out = std::as_writable_bytes(std::span(&headers[i], 1));
      request.offset = 0;
      request.for_update = true;
    }
    coro::Async<Status> all = caller.GetMany(worker.requests);
    const Status read = co_await all;
    if (!read.ok()) co_return read;
    for (size_t i = 0; i < 2; ++i) {
      const GetRequest& request = worker.requests[i];
      if (absl::IsNotFound(request.status)) continue;
      if (!request.status.ok()) co_return request.status;
      (*got)[i] = {.present = true, .header = headers[i], .size = request.payload_bytes, .handle = request.handle};
      const uint64_t hash = HashOf(places[i].table, *places[i].key);
      if (headers[i].checksum != ChecksumOf(hash, headers[i]) ||
          !MayHave(*request.table, request.payload_bytes, headers[i].size)) {
        co_return Wrong(absl::StrCat(Describe(places[i]), " with ", request.payload_bytes, " bytes, version ",
                                     headers[i].version, " and amount ", headers[i].amount, " has a wrong checksum"));
      }
    }
    for (size_t i = 0; i < 2; ++i) {
      if (!(*got)[i].present || !worker.random.OneIn(3)) continue;
      std::string row((*got)[i].size, '\0');
      coro::Async<Status> whole =
          caller.Get(TableAt(worker, places[i].table), KeyAt(places[i]), std::as_writable_bytes(std::span(row)), 0);
      const Status status = co_await whole;
      if (!status.ok()) co_return status;
      Header header;
      std::memcpy(&header, row.data(), sizeof header);
      if (header.version != (*got)[i].header.version) {  // another transaction has written it since
        worker.stale = true;
        continue;
      }
      const std::string wrong = CheckRow(TableAt(worker, places[i].table), HashOf(places[i].table, *places[i].key),
                                         std::as_bytes(std::span(row)), &header);
      if (!wrong.empty()) co_return Wrong(absl::StrCat(Describe(places[i]), " ", wrong));
    }
    co_return absl::OkStatus();
  }

  // Replaces a row, possibly with intermediate sizes.
  Status Replace(Worker& worker, Caller& caller, const Place& place, RecordHandle handle, int64_t amount) {
    for (uint64_t times = 1 + worker.random.Below(3); times > 0; --times) {
      const std::string row = RowOf(worker.random, TableAt(worker, place.table), place, amount);
      Status status = caller.Update(handle, std::as_bytes(std::span(row)), Caller::kWhole);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Moves an amount between two rows of the table that ChangeCatalog drops and creates. A row that is not there has 0,
  // so the sum of its rows is always 0. Then moves amounts as others do.
  coro::Task<Status> MoveAside(Worker& worker, Caller& caller) {
    constexpr size_t kKeys = 6;
    const txn::Table* const side = cluster_.database(worker.node).FindTable(kSide);
    if (side == nullptr) co_return absl::OkStatus();
    worker.aside = true;
    std::array<int64_t, kKeys> amounts{};
    std::vector<GetRequest> requests;
    for (size_t i = 0; i < kKeys; ++i) requests.push_back(GetRequest::Of(*side, index::Key(i), &amounts[i]));
    coro::Async<Status> reading = caller.GetMany(requests);
    Status status = co_await reading;
    if (!status.ok()) co_return status;
    int64_t sum = 0;
    for (size_t i = 0; i < kKeys; ++i) {
      if (!requests[i].status.ok() && !absl::IsNotFound(requests[i].status)) co_return requests[i].status;
      sum += amounts[i];
    }
    coro::Async<Status> validation = caller.Validate();
    status = co_await validation;
    if (!status.ok()) co_return status;
    if (sum != 0) co_return Wrong(absl::StrCat("the rows of a table that was dropped and created have ", sum));
    const size_t from = worker.random.Below(kKeys);
    const size_t to = (from + 1 + worker.random.Below(kKeys - 1)) % kKeys;
    const int64_t moved = worker.random.Between(-20, 20);
    amounts[from] -= moved;
    amounts[to] += moved;
    for (const size_t i : {from, to}) {
      coro::Async<Status> writing = caller.Upsert(*side, index::Key(i), std::as_bytes(std::span(&amounts[i], 1)));
      status = co_await writing;
      if (!status.ok()) co_return status;
    }
    coro::Task<Status> moving = Move(worker, caller);
    co_return co_await moving;
  }

  // Reads a row by its version, if there is an index of versions now. `got`: as it was read before.
  coro::Task<Status> ReadByVersion(Worker& worker, Caller& caller, const Place& place, const Got& got) {
    const txn::SecondaryIndex* const index = cluster_.database(worker.node).FindIndex(kExtra);
    if (!got.present || index == nullptr || &index->table() != &TableAt(worker, place.table))
      co_return absl::OkStatus();
    if (!index->unique() || index->fields()[0].bytes < 8) co_return absl::OkStatus();
    const index::Key version(got.header.version);
    coro::Async<StatusOr<txn::RowBy>> getting = caller.GetBy(*index, version, worker.random.OneIn(2));
    const StatusOr<txn::RowBy> row = co_await getting;
    if (absl::IsFailedPrecondition(row.status())) co_return absl::OkStatus();  // it is not complete, or dropped
    if (absl::IsNotFound(row.status())) worker.stale = true;                   // the row has changed since
    if (absl::IsNotFound(row.status())) co_return absl::OkStatus();
    if (!row.ok()) co_return row.status();
    if (StringOf(row->key) != *place.key)
      co_return Wrong(absl::StrCat(Describe(place), " is another row by its version"));
    Header header;
    std::memcpy(&header, row->payload.data(), sizeof header);
    if (header.version != got.header.version) worker.stale = true;
    co_return absl::OkStatus();
  }

  coro::Task<Status> Move(Worker& worker, Caller& caller) {
    const std::array<Place, 2> places = {DrawPlace(worker.random), DrawPlace(worker.random)};
    if (places[0].table == places[1].table && places[0].key == places[1].key) co_return absl::OkStatus();
    std::array<Got, 2> got;
    coro::Task<Status> both = ReadBoth(worker, caller, places, &got);
    Status status = co_await both;
    if (!status.ok() || (!got[0].present && !got[1].present)) co_return status;
    coro::Task<Status> by_version = ReadByVersion(worker, caller, places[0], got[0]);
    status = co_await by_version;
    if (!status.ok()) co_return status;
    const std::array<int64_t, 2> amounts = {got[0].header.amount, got[1].header.amount};
    if (got[0].present && got[1].present && worker.random.OneIn(4)) {  // join
      status = caller.Remove(got[0].handle);
      if (status.ok()) status = Replace(worker, caller, places[1], got[1].handle, amounts[0] + amounts[1]);
      co_return status;
    }
    if (got[0].present && got[1].present) {
      const int64_t moved = worker.random.Between(-20, 20);
      status = Replace(worker, caller, places[0], got[0].handle, amounts[0] - moved);
      if (status.ok()) status = Replace(worker, caller, places[1], got[1].handle, amounts[1] + moved);
      co_return status;
    }
    const size_t from = got[0].present ? 0 : 1;
    const size_t to = 1 - from;
    const int64_t all = amounts[from];
    const int64_t moved = worker.random.OneIn(3) ? all : worker.random.Between(-20, 20);
    const std::string row = RowOf(worker.random, TableAt(worker, places[to].table), places[to], moved);
    status = caller.Insert(TableAt(worker, places[to].table), KeyAt(places[to]), std::as_bytes(std::span(row)));
    if (!status.ok()) co_return status;
    if (moved != all) co_return Replace(worker, caller, places[from], got[from].handle, all - moved);
    coro::Async<Status> removal = caller.Remove(TableAt(worker, places[from].table), KeyAt(places[from]));
    status = co_await removal;
    co_return status;
  }

  // Checks the rows of a scan: each whole, and in order.
  Status CheckRows(size_t table, const ScanRows& rows, const index::ScanRange& range, int64_t* sum) {
    if (rows.size() > range.limit) {
      return Wrong(absl::StrCat("a scan with a limit of ", range.limit, " has ", rows.size(), " rows"));
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string key = StringOf(rows.key(i));
      const Place place{table, &key};
      if (rows.key(i) < range.from || range.to < rows.key(i) ||
          (i > 0 && !(range.reverse ? rows.key(i) < rows.key(i - 1) : rows.key(i - 1) < rows.key(i)))) {
        return Wrong(absl::StrCat("a scan has ", Describe(place), " in the wrong place"));
      }
      Header header;
      const std::string wrong = CheckRow(cluster_.table(0, table), HashOf(table, key), rows.payload(i), &header);
      if (!wrong.empty()) return Wrong(absl::StrCat("a scan: ", Describe(place), " ", wrong));
      *sum += header.amount;
    }
    return absl::OkStatus();
  }

  coro::Task<Status> ScanSome(Worker& worker, Caller& caller) {
    Place from = DrawPlace(worker.random);
    if (world_.tables[from.table].options.index == txn::IndexKind::kHash) co_return absl::OkStatus();
    const auto& keys = world_.tables[from.table].keys;
    Place to{from.table, &keys[worker.random.Below(keys.size())]};
    if (*to.key < *from.key) std::swap(from, to);
    index::ScanRange range{.from = KeyAt(from), .to = KeyAt(to), .reverse = worker.random.OneIn(2)};
    if (!worker.random.OneIn(4)) range.limit = 1 + worker.random.Below(8);
    for (int page = 0; page < 20; ++page) {
      coro::Async<Status> scan = caller.Scan(TableAt(worker, from.table), range, &worker.rows, {});
      const Status status = co_await scan;
      if (!status.ok()) co_return status;
      int64_t sum = 0;
      Status checked = CheckRows(from.table, worker.rows, range, &sum);
      if (!checked.ok() || worker.rows.size() < range.limit || range.limit < 2) co_return checked;
      const std::string last = StringOf(worker.rows.key(worker.rows.size() - 1));
      const auto known = std::ranges::find(keys, last);
      if (known == keys.end()) co_return Wrong("a scan has a key that nobody inserts");
      (range.reverse ? range.to : range.from) = KeyAt({from.table, &*known});
    }
    co_return absl::OkStatus();
  }

  // The sum of the amounts of an index's rows: all rows of its table are in it.
  coro::Task<Status> SumByIndex(Caller& caller, const txn::SecondaryIndex& index, int64_t* sum) {
    txn::IndexCursor cursor = caller.OpenCursor(index, {});
    coro::Async<Status> first = caller.Done(cursor.First());
    Status status = co_await first;
    while (status.ok() && cursor.valid()) {
      *sum += txn::RowOf<Header>(cursor.payload().first(sizeof(Header))).amount;
      coro::Async<Status> next = caller.Done(cursor.Next());
      status = co_await next;
    }
    co_return status;
  }

  coro::Task<Status> Total(Worker& worker, Caller& caller) {
    int64_t sum = 0;
    std::vector<int64_t> sum_before;  // of all tables before this one
    for (size_t table = 0; table < world_.tables.size(); ++table) {
      sum_before.push_back(sum);
      const TableSpec& spec = world_.tables[table];
      if (index::EntryOf(spec.options.index).traits.ordered) {
        const auto [low, high] = std::ranges::minmax_element(spec.keys);
        const index::ScanRange range{.from = KeyAt({table, &*low}), .to = KeyAt({table, &*high})};
        coro::Async<Status> scan = caller.Scan(TableAt(worker, table), range, &worker.rows, {});
        const Status status = co_await scan;
        if (!status.ok()) co_return status;
        Status checked = CheckRows(table, worker.rows, range, &sum);
        if (!checked.ok()) co_return checked;
        continue;
      }
      std::vector<Header> headers(spec.keys.size());
      std::vector<GetRequest> requests;
      for (size_t i = 0; i < spec.keys.size(); ++i) {
        requests.push_back(GetRequest::Of(TableAt(worker, table), KeyAt({table, &spec.keys[i]}), &headers[i]));
        requests.back().offset = 0;
      }
      coro::Async<Status> all = caller.GetMany(requests);
      const Status status = co_await all;
      if (!status.ok()) co_return status;
      for (size_t i = 0; i < requests.size(); ++i) {
        if (absl::IsNotFound(requests[i].status)) continue;
        if (!requests[i].status.ok()) co_return requests[i].status;
        sum += headers[i].amount;
      }
    }
    sum_before.push_back(sum);
    std::string difference;
    std::vector<const txn::SecondaryIndex*> indexes;
    for (size_t i = 0; i < world_.indexes.size(); ++i) indexes.push_back(&cluster_.index(worker.node, i));
    const txn::SecondaryIndex* const extra = cluster_.database(worker.node).FindIndex(kExtra);
    if (extra != nullptr) indexes.push_back(extra);
    for (const txn::SecondaryIndex* index : indexes) {
      int64_t by_index = 0;
      coro::Task<Status> summing = SumByIndex(caller, *index, &by_index);
      const Status status = co_await summing;
      // The index is not complete, or was dropped meanwhile.
      if (index == extra && absl::IsFailedPrecondition(status)) continue;
      if (!status.ok()) co_return status;
      for (size_t table = 0; table < world_.tables.size(); ++table) {
        if (&TableAt(worker, table) != &index->table()) continue;
        const int64_t of_table = sum_before[table + 1] - sum_before[table];
        if (by_index != of_table) difference = absl::StrCat(index->name(), " has ", by_index, " instead of ", of_table);
      }
    }
    coro::Async<Status> validation = caller.Validate();
    const Status valid = co_await validation;
    if (!valid.ok()) {
      // Other transactions may conflict for a long time.
      if (absl::IsAborted(valid) && worker.random.OneIn(kMostAttempts)) {
        co_return absl::ResourceExhaustedError("given up");
      }
      co_return valid;
    }
    ++totals_;
    if (!difference.empty()) co_return Wrong(absl::StrCat("a valid transaction saw that ", difference));
    if (sum != total_) co_return Wrong(absl::StrCat("a valid transaction saw ", sum, " instead of ", total_));
    co_return absl::OkStatus();
  }

  void CheckEnd() {
    for (size_t node = 0; node < cluster_.nodes() && !failed(); ++node) {
      Worker worker{.node = node, .number = 0, .random = Random(1)};
      txn::Session& session = cluster_.session(node, 0);
      Status status;
      for (int tries = 0; tries < 200; ++tries) {
        const uint64_t before = totals_;
        status = session.RunBlocking([this, &worker](txn::Transaction& transaction) -> coro::Task<Status> {
          Caller caller(&transaction);
          coro::Task<Status> task = Total(worker, caller);
          Status result = co_await task;
          co_return result;
        });
        if (failed() || (status.ok() && totals_ > before)) break;
        Settle();
      }
      if (!status.ok()) Fail(absl::StrCat("cannot read all rows in the end: ", status.ToString()));
    }
  }

  // The databases settle their pending operations to other nodes.
  void Settle() { SleepForNanos(500'000 * kSessionsPerNode * cluster_.nodes()); }

  void Reopen() {
    if (world_.durability != txn::DurabilityMode::kNone && world_.seed % 2 == 0) {
      cluster_.AwaitDurable();
      cluster_.Crash();
    } else if (!Check(cluster_.Close())) {
      return;
    }
    if (Check(cluster_.Open())) CheckEnd();
  }

  World world_;
  Cluster cluster_;
  int64_t total_ = 0;
  std::atomic<uint64_t> next_version_{1};
  std::atomic<uint64_t> committed_{0};
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> totals_{0};
  std::atomic<uint64_t> unknown_{0};
  std::atomic<uint64_t> table_changes_{0};
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  std::optional<std::string> failure_;
};

}  // namespace

std::optional<std::string> RunCrowd(World world, uint64_t transactions, CrowdStatistics* statistics) {
  Crowd crowd(std::move(world));
  return crowd.Run(transactions, statistics);
}

}  // namespace gannet::model
