#include "ycsb/bench_worker.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "ycsb/value.h"

namespace gannet::ycsb {
namespace {

// No insert is due: before RunOptions::insert_for has begun, or after it.
constexpr uint64_t kNever = UINT64_MAX;
// A thread that may not insert now checks again after this time.
constexpr uint64_t kLookNanos = 50'000;
// Number of operations, over all threads, in the profile phase.
constexpr int kProfiledOperations = 4096;

Status WrongValue(const char* of, uint64_t key) {
  return absl::DataLossError(absl::StrCat("a ", of, " returned a value that is not that of key ", key));
}

index::ClientStatistics Difference(index::ClientStatistics later, const index::ClientStatistics& earlier) {
  later.lookups -= earlier.lookups;
  later.one_sided -= earlier.one_sided;
  later.fallbacks -= earlier.fallbacks;
  later.leaves_read -= earlier.leaves_read;
  return later;
}

std::vector<txn::TablePaths> PathsOf(const txn::OffloadChooser& chooser) {
  std::vector<txn::TablePaths> paths;
  for (const txn::AccessKind kind : {txn::AccessKind::kGet, txn::AccessKind::kScan, txn::AccessKind::kChange}) {
    const txn::PathStatistics statistics = chooser.statistics(0, kind);
    if (statistics.accesses() > 0) paths.push_back({"keys", kind, statistics});
  }
  return paths;
}

// Numbers of inserts that a thread gets at a time if clients are processes: one call for each block.
constexpr uint32_t kInsertBlock = 1024;

KeyChooser ChooserFor(const Cluster& cluster, const RunOptions& options, uint64_t number, uint64_t threads) {
  if (!cluster.has_servers()) return {&cluster.keys(), options.distribution, options.inserts};
  return {&cluster.keys(), options.distribution, cluster.inserts_end(), number, threads, options.inserts};
}

}  // namespace

BenchWorker::BenchWorker(Cluster* cluster, const RunOptions* options, int number, int threads, MovingPart* moving,
                         bench::RunControl* control)
    : Worker(control, kKinds),
      cluster_(cluster),
      options_(*options),
      number_(number),
      threads_(threads),
      moving_(moving),
      random_(Mix64(options->seed) ^ Mix64(static_cast<uint64_t>(number) + 1)),
      keys_(ChooserFor(*cluster, *options, static_cast<uint64_t>(number), static_cast<uint64_t>(threads))) {
  keys_.SetTheta(options_.theta);
  if (const std::optional<KeyPart> part = Part(); part.has_value()) keys_.Limit(*part);
}

BenchWorker::~BenchWorker() = default;

std::optional<KeyPart> BenchWorker::Part() const {
  if (!cluster_->options().partitioned) return std::nullopt;
  if (moving_ != nullptr && machine() >= moving_->giver()) return moving_->part();
  const int parts = cluster_->options().machines - (moving_ == nullptr ? 0 : 1);
  return KeyPart(&cluster_->keys(), machine(), parts);
}

Status BenchWorker::Prepare() {
  auto connection = Connection::Open(cluster_, machine(), options_.caches);
  if (!connection.ok()) return connection.status();
  connection_ = *std::move(connection);
  while (clients_.size() < static_cast<size_t>(options_.coroutines)) {
    clients_.push_back(std::make_unique<Client>(connection_.get(), options_.paths));
  }
  return FillCaches();
}

Status BenchWorker::Run() {
  if (control().phase() != bench::Phase::kDrain) {
    running_ = static_cast<int>(clients_.size());
    for (const auto& client : clients_) connection_->worker().Spawn(Loop(client.get(), client == clients_.front()));
    connection_->worker().Run();
  }
  if (moving_ != nullptr) moving_->End(machine(), number_in_machine());
  return connection_->HandBackIfLast(&cluster_->machine(machine()));
}

void BenchWorker::Close() {
  clients_.clear();
  connection_.reset();
}

coro::Task<void> BenchWorker::Loop(Client* client, bool first) {
  const bool alone = clients_.size() == 1;
  const bool at_once = connection_->channel().capabilities().completes_at_once;
  while (true) {
    ObservePhase();
    if (seen() == bench::Phase::kDrain) break;
    if (inserts_only()) {
      const uint64_t next = NextInsertNanos();
      co_await connection_->worker().SleepUntil(next == kNever ? NowNanos() + kLookNanos : next);
      ObservePhase();
      if (seen() == bench::Phase::kDrain) break;
      if (next == kNever) continue;
    }
    if (has_no_keys()) {
      co_await connection_->worker().SleepUntil(NowNanos() + kLookNanos);
      continue;
    }
    Outcome outcome;
    const rdma::VerbCounters verbs = alone ? connection_->channel().counters() : rdma::VerbCounters{};
    const uint64_t start = NowNanos();
    Status done = co_await RunOne(client, &outcome);
    const uint64_t nanos = NowNanos() - start;
    if (!done.ok()) {
      control().Fail(std::move(done));
      break;
    }
    KindStatistics& kind = StatisticsOf(outcome);
    ++kind.finished;
    CountLive(kOperations, 1);
    RecordOperation(static_cast<size_t>(outcome.kind), nanos, 0);
    if (seen() == bench::Phase::kMeasure) {
      ++kind.operations;
      kind.records += outcome.records;
      if (alone) Sample(outcome, verbs);
    }
    // If nothing ever suspends, other coroutines would never run.
    if (at_once && !alone) co_await connection_->worker().Yield();
  }
  --running_;
  if (first && !alone) co_await Profile(client);
}

// A thread that is late catches up at most one millisecond.
uint64_t BenchWorker::NextInsertNanos() {
  constexpr uint64_t kMostBehind = 1'000'000;
  if (options_.insert_for < absl::InfiniteDuration()) {
    const auto burst = static_cast<uint64_t>(absl::ToInt64Nanoseconds(options_.insert_for));
    if (seen() != bench::Phase::kMeasure || NowNanos() >= measure_nanos_ + burst) return kNever;
  }
  const uint64_t interval = 1'000'000'000 * static_cast<uint64_t>(options_.threads_per_machine) / options_.insert_rate;
  next_insert_nanos_ = std::max(next_insert_nanos_ + interval, NowNanos() - kMostBehind);
  return next_insert_nanos_;
}

coro::Task<void> BenchWorker::Profile(Client* client) {
  while (running_ > 0) co_await connection_->worker().Yield();
  const int operations = std::max(16, kProfiledOperations / threads_);
  for (int i = 0; i < operations && control().error().ok(); ++i) {
    if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) break;
    Outcome outcome;
    const rdma::VerbCounters verbs = connection_->channel().counters();
    Status done = co_await RunOne(client, &outcome);
    if (!done.ok()) {
      control().Fail(std::move(done));
      break;
    }
    ++StatisticsOf(outcome).finished;
    Sample(outcome, verbs);
  }
}

void BenchWorker::Sample(const Outcome& outcome, const rdma::VerbCounters& before) {
  StatisticsOf(outcome).SampleVerbs(connection_->channel().counters() - before);
}

void BenchWorker::MeasurementBegins() {
  measure_nanos_ = NowNanos();
  lookups_at_start_ = connection_->statistics();
  paths_at_start_ = PathsOf(connection_->chooser());
}

void BenchWorker::MeasurementEnds() {
  statistics_.lookups = Difference(connection_->statistics(), lookups_at_start_);
  statistics_.paths = txn::PathsBetween(paths_at_start_, PathsOf(connection_->chooser()));
}

uint64_t BenchWorker::ExistingKey() {
  if (moving_ == nullptr) return keys_.Existing(&random_);
  const int moved = moving_->Begin(machine(), number_in_machine());
  uint64_t rank = keys_.LoadedRank(&random_);
  while (!moving_->Uses(machine(), moved, rank)) rank = keys_.LoadedRank(&random_);
  return cluster_->keys().LoadedKey(rank);
}

coro::Task<Status> BenchWorker::RunOne(Client* client, Outcome* outcome) {
  outcome->kind = inserts_only() ? Kind::kInsert : DrawKind(options_.mix, &random_);
  const uint64_t key = outcome->kind == Kind::kInsert ? 0 : ExistingKey();
  Status done;
  switch (outcome->kind) {
    case Kind::kRead:
      done = co_await Read(client, key);
      break;
    case Kind::kUpdate:
      done = co_await Update(client, key);
      break;
    case Kind::kInsert:
      done = co_await Insert(client);
      break;
    case Kind::kScan:
      done = co_await Scan(client, key, outcome);
      break;
    case Kind::kReadModifyWrite:
      done = co_await Read(client, key);
      if (done.ok()) done = co_await Update(client, key);
      break;
  }
  co_return done;
}

coro::Task<Status> BenchWorker::Read(Client* client, uint64_t key) {
  Status read = co_await client->Read(key);
  if (read.ok() && !IsValueOf(key, client->value())) read = WrongValue("read", key);
  co_return read;
}

coro::Task<Status> BenchWorker::Update(Client* client, uint64_t key) {
  std::array<std::byte, kMaxValueBytes> room;
  const std::span<std::byte> value = std::span(room).first(cluster_->options().value_bytes);
  MakeValue(key, NumberFor(cluster_->options().values_in_entries, static_cast<uint32_t>(random_())), value);
  Status updated = co_await client->Update(key, value);
  co_return updated;
}

coro::Task<Status> BenchWorker::Insert(Client* client) {
  std::array<std::byte, kMaxValueBytes> room;
  const std::span<std::byte> value = std::span(room).first(cluster_->options().value_bytes);
  if (keys_.needs_block()) {
    const StatusOr<uint64_t> first = co_await ReserveInserts(&connection_->channel(), kInsertBlock);
    if (!first.ok()) co_return first.status();
    keys_.Give(*first, kInsertBlock);
  }
  const std::optional<uint64_t> key = keys_.Fresh();
  if (!key.has_value()) {
    co_return absl::ResourceExhaustedError(
        absl::StrCat("no room is left between the ", cluster_->keys().loaded(),
                     " loaded keys for those that a thread inserts; give more --keys, or a shorter --duration"));
  }
  MakeValue(*key, NumberFor(cluster_->options().values_in_entries, static_cast<uint32_t>(random_())), value);
  Status inserted = co_await client->Insert(*key, value);
  if (inserted.ok()) keys_.Inserted(*key);
  co_return inserted;
}

coro::Task<Status> BenchWorker::Scan(Client* client, uint64_t from, Outcome* outcome) {
  std::optional<uint64_t> last;
  if (cluster_->options().keeping != index::shared_leaf::Keeping::kNone) {
    // Other machines keep what follows.
    last = Part()->LastKeyAt(static_cast<int>(cluster_->keys().OwnerOf(from)));
  }
  Status scanned = co_await client->Scan(from, 1 + random_.Below(kMaxScan), last);
  GANNET_CO_RETURN_IF_ERROR(scanned);
  const std::span<const uint64_t> keys = client->scanned_keys();
  if (keys.empty() || keys.front() != from || !std::is_sorted(keys.begin(), keys.end(), std::less_equal<>())) {
    co_return absl::DataLossError(absl::StrCat("a scan from key ", from, " misses it, or is out of order"));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!IsValueOf(keys[i], client->ScannedValue(i))) co_return WrongValue("scan", keys[i]);
  }
  outcome->records = keys.size();
  co_return absl::OkStatus();
}

Status BenchWorker::FillCaches() {
  if (!options_.fill_caches || has_no_keys()) return absl::OkStatus();
  FillLocations();
  const index::IndexTraits& traits = index::EntryOf(cluster_->options().index).traits;
  if (options_.paths.reads == Path::kCall) return absl::OkStatus();
  for (int i = 0; i < cluster_->options().servers; ++i) {
    if (traits.learned) GANNET_RETURN_IF_ERROR(FillModels(i));
    if (traits.client_writes) GANNET_RETURN_IF_ERROR(FillNodes(i));
  }
  return absl::OkStatus();
}

// Fills the location cache from the servers, as a client would have filled it over a long time. If threads share a
// cache, the first thread does it. Servers in other processes do not tell all addresses: there the cache fills as keys
// are read.
void BenchWorker::FillLocations() {
  LocationCache* const locations = connection_->locations();
  if (locations == nullptr || !cluster_->has_servers() || (options_.caches.share_locations && number_ > 0)) return;
  for (int i = 0; i < cluster_->options().servers; ++i) cluster_->server(i).FillLocations(locations);
}

// An inner node above the leaves leads to at least 8 leaves of at least 8 keys, after a bulk load to more. The threads
// of a machine share the work if they share the cache. Of partitioned keys they look up those of the machine's part:
// others may keep their leaves already.
Status BenchWorker::FillNodes(int server) {
  constexpr uint64_t kStep = 64;
  const KeySpace& space = cluster_->keys();
  const bool shared = options_.caches.share;
  const auto part = shared ? static_cast<uint64_t>(number_ % options_.threads_per_machine) : 0;
  const auto parts = shared ? static_cast<uint64_t>(options_.threads_per_machine) : 1;
  const std::optional<KeyPart> own = Part();
  std::vector<index::Key> keys;
  for (uint64_t rank = space.FirstRankOf(server) + part * kStep; rank < space.FirstRankOf(server + 1);
       rank += parts * kStep) {
    if (own.has_value() && !own->Has(rank)) continue;
    keys.emplace_back(space.LoadedKey(rank));
  }
  return connection_->FindAll(static_cast<rdma::NodeId>(server), keys, options_.stop);
}

// Looks up keys that are close enough together to touch every sub-model. Threads that share a cache share the work;
// threads that leave it to others only connect.
Status BenchWorker::FillModels(int server) {
  const KeySpace& space = cluster_->keys();
  const uint64_t first = space.FirstRankOf(server);
  if (!fills_caches()) return connection_->FindOnce(space.LoadedKey(first));
  const StatusOr<index::XStore::ModelStatistics> model = connection_->ModelOf(static_cast<rdma::NodeId>(server));
  if (!model.ok()) return model.status();
  const uint64_t sub_models = std::max<uint64_t>(1, model->sub_models);
  const uint64_t end = space.FirstRankOf(server + 1);
  const uint64_t step = std::max<uint64_t>(1, (end - first) / sub_models / 2);
  const bool shared = options_.caches.share;
  const auto part = shared ? static_cast<uint64_t>(number_) : 0;
  const auto parts = shared ? static_cast<uint64_t>(options_.threads_per_machine) : 1;
  std::vector<index::Key> keys;
  for (uint64_t rank = first + part * step; rank < end; rank += parts * step) keys.emplace_back(space.LoadedKey(rank));
  return connection_->FindAll(static_cast<rdma::NodeId>(server), keys, options_.stop);
}

}  // namespace gannet::ycsb
