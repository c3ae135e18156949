#include "bench/peers/measure.h"

#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <barrier>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "bench/harness/resident_memory.h"

namespace gannet::bench::peers {
namespace {

uint64_t ThreadCpuNanos() {
  struct timespec now {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// An operation is done in passes of this part of the table's rows, so that every engine has done the same after the
// first pass, whose answers are compared.
uint64_t RowsOfPass(const Operation& operation, uint64_t rows) {
  switch (operation.action) {
    case Action::kUpdate:
      // Durable operations take milliseconds each.
      return operation.durability == Durability::kSync
                 ? std::clamp<uint64_t>(rows / 100, 10, 100) * static_cast<uint64_t>(operation.threads)
                 : rows / 4;
    case Action::kTransfer:
      return rows / 8;
    case Action::kScanSome:
      return rows / 50;
    default:
      return rows;
  }
}

// The keys of one pass of one thread, side by side in memory: no engine waits for them.
class Keys {
 public:
  void Draw(const Data& data, Table table, uint64_t count, Random& random) {
    rows_.clear();
    bytes_.clear();
    for (uint64_t i = 0; i < count; ++i) {
      rows_.push_back(random.Below(data.size(table)));
      bytes_ += data.key(table, rows_.back()).bytes;
    }
    keys_.clear();
    size_t at = 0;
    for (const uint64_t row : rows_) {
      Key key = data.key(table, row);
      key.bytes = std::string_view(bytes_).substr(at, key.bytes.size());
      at += key.bytes.size();
      keys_.push_back(key);
    }
  }
  std::span<const Key> keys() const { return keys_; }
  const std::vector<uint64_t>& rows() const { return rows_; }

 private:
  std::vector<uint64_t> rows_;
  std::string bytes_;
  std::vector<Key> keys_;
};

// One thread's part of an operation.
class Worker {
 public:
  Worker(const Data* data, const Operation* operation, Client* client, uint64_t seed)
      : data_(data), operation_(operation), client_(client), random_(seed) {}

  void Prepare(uint64_t version) {
    version_ = version;
    const uint64_t rows = RowsOfPass(*operation_, data_->size(operation_->table));
    // A scan of all rows has no keys, and drawing them would push its rows out of the cache.
    if (operation_->action != Action::kScanAll) {
      keys_.Draw(*data_, operation_->table, std::max<uint64_t>(rows / static_cast<uint64_t>(operation_->threads), 2),
                 random_);
    }
    digest_ = {};
  }

  // Returns the number of units done (Unit()).
  StatusOr<uint64_t> Work() {
    uint64_t done = keys_.keys().size();
    const Status status = Do(&done);
    if (!status.ok()) return status;
    return done;
  }

  const Digest& digest() const { return digest_; }
  const Keys& keys() const { return keys_; }

 private:
  Status Do(uint64_t* done) {
    const Table table = operation_->table;
    const std::span<const Key> keys = keys_.keys();
    switch (operation_->action) {
      case Action::kLoad:
        return absl::InternalError("a load is no pass");
      case Action::kRead:
        for (const Key& key : keys) GANNET_RETURN_IF_ERROR(client_->Read(table, std::span(&key, 1), &digest_));
        return absl::OkStatus();
      case Action::kReadMany:
      case Action::kReadTogether:
        for (size_t at = 0; at < keys.size(); at += kReadBatch) {
          const auto some = keys.subspan(at, std::min<size_t>(kReadBatch, keys.size() - at));
          GANNET_RETURN_IF_ERROR(operation_->action == Action::kReadMany
                                     ? client_->Read(table, some, &digest_)
                                     : client_->ReadTogether(table, some, &digest_));
        }
        return absl::OkStatus();
      case Action::kScanAll:
        *done = 0;
        return client_->Scan(table, nullptr, UINT64_MAX, done, &digest_);
      case Action::kScanSome:
        *done = 0;
        for (const Key& key : keys) GANNET_RETURN_IF_ERROR(client_->Scan(table, &key, kScanRows, done, &digest_));
        return absl::OkStatus();
      case Action::kUpdate:
        for (const Key& key : keys) {
          GANNET_RETURN_IF_ERROR(client_->Update(table, key, Data::payload(table, key, version_).view()));
        }
        return absl::OkStatus();
      case Action::kTransfer:
        *done = 0;
        for (size_t i = 1; i < keys.size(); i += 2) {
          if (keys[i - 1].number == keys[i].number) continue;
          GANNET_RETURN_IF_ERROR(client_->Transfer(keys[i - 1], keys[i], static_cast<int64_t>(1 + i % 100)));
          ++*done;
        }
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  const Data* data_;
  const Operation* operation_;
  Client* client_;
  Random random_;
  Keys keys_;
  Digest digest_;
  uint64_t version_ = 0;
};

// The threads of an operation, which do a pass whenever they are told.
class Crew {
 public:
  Crew(std::span<const std::unique_ptr<Worker>> workers, ClockKind clock)
      : workers_(workers),
        clock_(clock),
        results_(workers.size()),
        barrier_(static_cast<std::ptrdiff_t>(workers.size()) + 1) {
    for (size_t i = 0; i < workers.size(); ++i) threads_.emplace_back([this, i] { RunThread(i); });
  }
  ~Crew() {
    ended_ = true;
    barrier_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Time of the pass: from the first start to the last end, or the processor time of the thread that took most. The
  // workers read the clock: while each processor has a worker, this thread can wake up long after they began.
  StatusOr<uint64_t> Pass(uint64_t version, uint64_t* units) {
    version_ = version;
    barrier_.arrive_and_wait();  // they draw their keys
    barrier_.arrive_and_wait();
    barrier_.arrive_and_wait();  // they work
    Result all = results_.front();
    *units = 0;
    for (const Result& result : results_) {
      GANNET_RETURN_IF_ERROR(result.status);
      *units += result.done;
      all.begin = std::min(all.begin, result.begin);
      all.end = std::max(all.end, result.end);
      all.cpu_nanos = std::max(all.cpu_nanos, result.cpu_nanos);
    }
    return clock_ == ClockKind::kWall ? all.end - all.begin : all.cpu_nanos;
  }

 private:
  void RunThread(size_t i) {
    while (true) {
      barrier_.arrive_and_wait();
      if (ended_) return;
      workers_[i]->Prepare(version_);
      barrier_.arrive_and_wait();
      const uint64_t cpu_begin = ThreadCpuNanos();
      const uint64_t begin = NowNanos();
      const StatusOr<uint64_t> done = workers_[i]->Work();
      const uint64_t end = NowNanos();
      results_[i] = {.status = done.status(),
                     .done = done.ok() ? *done : 0,
                     .begin = begin,
                     .end = end,
                     .cpu_nanos = ThreadCpuNanos() - cpu_begin};
      barrier_.arrive_and_wait();
    }
  }

  // What one worker did in a pass, and when (NowNanos()).
  struct Result {
    Status status;
    uint64_t done = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t cpu_nanos = 0;
  };

  std::span<const std::unique_ptr<Worker>> workers_;
  const ClockKind clock_;
  std::vector<Result> results_;
  uint64_t version_ = 0;  // written between two passes only
  bool ended_ = false;
  std::barrier<> barrier_;
  std::vector<std::thread> threads_;
};

// Bytes that the files below a directory take on the disk.
uint64_t FileBytes(const std::string& directory) {
  constexpr uint64_t kBlockBytes = 512;  // stat(2)
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    struct stat stat {};
    if (::stat(entry.path().c_str(), &stat) == 0 && S_ISREG(stat.st_mode)) {
      bytes += static_cast<uint64_t>(stat.st_blocks) * kBlockBytes;
    }
  }
  return bytes;
}

// The state of one engine's measurement with one durability.
class Session {
 public:
  Session(const EngineKind* kind, const Data* data, const MeasureOptions* options, std::vector<Figure>* figures)
      : kind_(kind), data_(data), options_(options), figures_(figures) {}

  Status Open(const std::string& directory, Durability durability) {
    directory_ = directory;
    durability_ = durability;
    auto engine = kind_->open(*data_, directory, durability);
    if (!engine.ok()) return engine.status();
    engine_ = *std::move(engine);
    return ClientOf(0).status();
  }

  // `place`: of the operation in the plan, so that no two draw the same keys.
  Status Do(const Operation& operation, uint64_t place) {
    if (operation.action == Action::kLoad) return Load(operation);
    if (operation.is_scan() && !kind_->ordered) return absl::OkStatus();
    return Run(operation, place);
  }

  Status SettleAfterLoads() {
    GANNET_RETURN_IF_ERROR(engine_->Settle());
    if (durability_ == Durability::kSync) {
      figures_->push_back(
          {.id = kFilesId,
           .value = static_cast<double>(FileBytes(directory_)) / static_cast<double>(std::max<uint64_t>(loaded_, 1))});
    }
    return absl::OkStatus();
  }

  Status Close() {
    clients_.clear();
    return engine_->Close();
  }

 private:
  StatusOr<Client*> ClientOf(size_t thread) {
    while (clients_.size() <= thread) {
      auto client = engine_->OpenClient();
      if (!client.ok()) return client.status();
      clients_.push_back(*std::move(client));
    }
    return clients_[thread].get();
  }

  Status Load(const Operation& operation) {
    const Table table = operation.table;
    const uint64_t rows = data_->size(table);
    std::vector<uint64_t> order(rows);
    std::iota(order.begin(), order.end(), uint64_t{0});
    // The code that this needs becomes resident now: it is no memory of the rows.
    if (durability_ == Durability::kMemory) GANNET_RETURN_IF_ERROR(engine_->Settle());
    const uint64_t resident = Resident();
    const bool cpu = options_->clock == ClockKind::kCpu;
    const uint64_t begin = cpu ? ThreadCpuNanos() : NowNanos();
    for (uint64_t at = 0; at < rows; at += kLoadBatch) {
      GANNET_RETURN_IF_ERROR(
          clients_[0]->Insert(table, std::span(order).subspan(at, std::min<uint64_t>(kLoadBatch, rows - at))));
    }
    const double seconds = static_cast<double>((cpu ? ThreadCpuNanos() : NowNanos()) - begin) * 1e-9;
    loaded_ += rows;
    figures_->push_back({.id = operation.id, .value = static_cast<double>(rows) / seconds});
    if (durability_ != Durability::kMemory) return absl::OkStatus();

    GANNET_RETURN_IF_ERROR(engine_->Settle());
    // Reads every row by its key, which brings everything into memory. Several times: an engine may keep more for rows
    // that are read again.
    constexpr int kReadings = 6;
    for (int reading = 0; reading < kReadings; ++reading) {
      const auto numbers = Numbers(table);  // not kept: its memory is not the engine's
      if (!numbers.ok()) return numbers.status();
    }
    const auto per_row = [rows](uint64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(rows); };
    const uint64_t grown = std::max(Resident(), resident) - resident;
    const std::string prefix = operation.id.substr(0, operation.id.find('.'));
    figures_->push_back({.id = absl::StrCat(prefix, kMemorySuffix), .value = per_row(grown)});
    const StatusOr<uint64_t> counted = engine_->CountedBytes(table);
    if (!counted.ok()) return counted.status();
    figures_->push_back({.id = absl::StrCat(prefix, kCountedSuffix), .value = per_row(*counted)});
    return absl::OkStatus();
  }

  Status Run(const Operation& operation, uint64_t place) {
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < operation.threads; ++i) {
      const StatusOr<Client*> client = ClientOf(static_cast<size_t>(i));
      if (!client.ok()) return client.status();
      const uint64_t seed = options_->seed + Mix64(place * 1000 + static_cast<uint64_t>(i));
      workers.push_back(std::make_unique<Worker>(data_, &operation, *client, seed));
    }
    std::vector<uint64_t> before;
    if (operation.writes()) {
      auto numbers = Numbers(operation.table);
      if (!numbers.ok()) return numbers.status();
      before = *std::move(numbers);
    }

    Crew crew(workers, durability_ == Durability::kSync ? ClockKind::kWall : options_->clock);
    Figure figure{.id = operation.id};
    uint64_t nanos = 0;
    uint64_t units = 0;
    // The first pass warms up, and its answers count.
    for (uint64_t pass = 0; pass < 2 || nanos < static_cast<uint64_t>(ToInt64Nanoseconds(options_->at_least)); ++pass) {
      uint64_t done = 0;
      const StatusOr<uint64_t> took = crew.Pass((place + 1) * 1'000'000 + pass, &done);
      if (!took.ok()) return took.status();
      if (pass == 0) {
        const StatusOr<uint64_t> digest = DigestOf(operation, workers, before);
        if (!digest.ok()) return digest.status();
        figure.digest = *digest;
      } else {
        nanos += *took;
        units += done;
      }
    }
    figure.value = static_cast<double>(units) / (static_cast<double>(nanos) * 1e-9);
    figures_->push_back(figure);
    return absl::OkStatus();
  }

  // The digest of what reads returned. For writes: the numbers of the rows that were updated, and by how much those of
  // all other rows grew; what engines did before this pass, each for as long as it took, does not matter then.
  StatusOr<uint64_t> DigestOf(const Operation& operation, std::span<const std::unique_ptr<Worker>> workers,
                              const std::vector<uint64_t>& before) {
    Digest digest;
    if (!operation.writes()) {
      for (const auto& worker : workers) digest.Add(worker->digest().value());
      return digest.value();
    }
    absl::flat_hash_set<uint64_t> updated;
    if (operation.action == Action::kUpdate) {
      for (const auto& worker : workers) updated.insert(worker->keys().rows().begin(), worker->keys().rows().end());
    }
    const StatusOr<std::vector<uint64_t>> after = Numbers(operation.table);
    if (!after.ok()) return after.status();
    for (uint64_t row = 0; row < after->size(); ++row) {
      digest.Add((*after)[row] - (updated.contains(row) ? 0 : before[row]));
    }
    return digest.value();
  }

  // The number of each row.
  StatusOr<std::vector<uint64_t>> Numbers(Table table) {
    std::vector<uint64_t> numbers;
    numbers.reserve(data_->size(table));
    for (uint64_t row = 0; row < data_->size(table); ++row) {
      Digest digest;
      const Key key = data_->key(table, row);
      GANNET_RETURN_IF_ERROR(clients_[0]->Read(table, std::span(&key, 1), &digest));
      numbers.push_back(digest.sum());
    }
    return numbers;
  }

  static uint64_t Resident() {
    malloc_trim(0);
    return ResidentBytes();
  }

  const EngineKind* kind_;
  const Data* data_;
  const MeasureOptions* options_;
  std::vector<Figure>* figures_;
  std::string directory_;
  Durability durability_ = Durability::kMemory;
  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<Client>> clients_;
  uint64_t loaded_ = 0;
};

Status At(const Operation& operation, const Status& status) {
  if (status.ok()) return status;
  return {status.code(), absl::StrCat(operation.id, ": ", status.message())};
}

}  // namespace

StatusOr<std::vector<Figure>> Measure(const EngineKind& kind, const Data& data, const std::string& directory,
                                      const std::vector<Operation>& operations, const MeasureOptions& options) {
  std::vector<Figure> figures;
  for (size_t i = 0; i < operations.size();) {
    const Durability durability = operations[i].durability;
    const std::string own = absl::StrCat(directory, "/", static_cast<int>(durability));
    std::filesystem::create_directory(own);
    Session session(&kind, &data, &options, &figures);
    GANNET_RETURN_IF_ERROR(At(operations[i], session.Open(own, durability)));
    bool settled = false;
    for (; i < operations.size() && operations[i].durability == durability; ++i) {
      if (!settled && operations[i].action != Action::kLoad) {
        GANNET_RETURN_IF_ERROR(At(operations[i], session.SettleAfterLoads()));
        settled = true;
      }
      GANNET_RETURN_IF_ERROR(At(operations[i], session.Do(operations[i], i)));
    }
    GANNET_RETURN_IF_ERROR(session.Close());
  }
  return figures;
}

}  // namespace gannet::bench::peers
