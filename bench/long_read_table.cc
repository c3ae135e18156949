// What does a transaction that reads a whole table cost, its own program and others? A reader goes through all rows of
// an ordered table in one transaction, again and again, while writers update random rows of it. Prints, for tables of
// different sizes: how long a whole read took until it was valid, how many attempts that took, whether it got
// precedence (txn/peer/precedence.h), and how fast the writers were without and with the reader.
//
// The reader takes no lock, so it aborts no writer. Writers wait only while it has precedence.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "txn/bulk_loader.h"
#include "txn/database.h"
#include "txn/run/cursor.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace {

struct Flags {
  int writers = 1;
  double seconds = 3;
};

struct Read {
  double seconds = 0;
  uint32_t attempts = 0;
  bool precedence = false;
};

// Rows hold zero at first. Each update adds one to a row and takes one from another, so the sum of all stays zero.
class Accounts {
 public:
  explicit Accounts(uint64_t rows) : rows_(rows) {
    auto database = Database::OpenInMemory({.memory_bytes = uint64_t{4} << 30});
    GANNET_CHECK(database.ok(), "%s", database.status().ToString());
    database_ = *std::move(database);
    GANNET_CHECK(database_->Start().ok(), "start");
    table_ = *database_->CreateTable({.name = "rows", .index = IndexKind::kXStore, .payload_bytes = sizeof(int64_t)});
    auto session = database_->OpenSession();
    BulkLoader loader(session->get(), table_);
    for (uint64_t key = 0; key < rows; ++key) GANNET_CHECK(loader.Add(key, int64_t{0}).ok(), "load");
    GANNET_CHECK(loader.Finish().ok(), "load");
  }

  // Starts the writers, calls `work`, and returns the updates per second meanwhile.
  template <class Work>
  double WithWriters(int writers, const Work& work) {
    std::atomic<bool> stop{false};
    std::vector<uint64_t> updates(static_cast<size_t>(writers));
    std::vector<std::thread> threads;
    const uint64_t start = NowNanos();
    for (int i = 0; i < writers; ++i) {
      threads.emplace_back([&, i] {
        auto session = database_->OpenSession();
        Random random(static_cast<uint64_t>(i) + 1);
        while (!stop.load(std::memory_order_relaxed)) {
          const uint64_t from = random.Below(rows_);
          const uint64_t to = random.Below(rows_);
          const Status moved = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
            GANNET_CO_RETURN_IF_ERROR(co_await t.Add(*table_, from, int64_t{-1}));
            co_return co_await t.Add(*table_, to, int64_t{1});
          });
          GANNET_CHECK(moved.ok(), "%s", moved.ToString());
          ++updates[static_cast<size_t>(i)];
        }
      });
    }
    work();
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
    const double seconds = static_cast<double>(NowNanos() - start) * 1e-9;
    uint64_t all = 0;
    for (const uint64_t each : updates) all += each;
    return static_cast<double>(all) / seconds;
  }

  Read ReadAll(Session& session) {
    const uint64_t start = NowNanos();
    RunOutcome outcome;
    int64_t sum = 0;
    uint64_t rows = 0;
    const Status status = session.RunBlocking(
        [&](Transaction& t) -> coro::Task<Status> {
          sum = 0;
          rows = 0;
          Cursor cursor(t, *table_);
          Status moved = co_await cursor.First();
          for (; moved.ok() && cursor.valid(); moved = co_await cursor.Next(), ++rows) sum += cursor.As<int64_t>();
          co_return moved;
        },
        &outcome);
    GANNET_CHECK(status.ok() && sum == 0 && rows == rows_, "%s, sum %d, %d rows", status.ToString(), sum, rows);
    return {static_cast<double>(NowNanos() - start) * 1e-9, outcome.aborts + 1, outcome.asked_precedence};
  }

  Database& database() { return *database_; }

 private:
  uint64_t rows_;
  std::unique_ptr<Database> database_;
  const Table* table_ = nullptr;
};

void Pause(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void Measure(uint64_t rows, const Flags& flags) {
  Accounts table(rows);
  auto session = table.database().OpenSession();
  std::vector<double> alone;
  for (int i = 0; i < 5; ++i) alone.push_back(table.ReadAll(**session).seconds);
  const double before = table.WithWriters(flags.writers, [&] { Pause(flags.seconds); });
  std::vector<Read> reads;
  const double during = table.WithWriters(flags.writers, [&] {
    const uint64_t end = NowNanos() + static_cast<uint64_t>(flags.seconds * 1e9);
    while (NowNanos() < end) reads.push_back(table.ReadAll(**session));
  });
  const PrecedenceStatistics waits = table.database().precedence_statistics();
  std::vector<double> seconds;
  double longest = 0;
  uint64_t attempts = 0;
  size_t preferred = 0;
  for (const Read& read : reads) {
    seconds.push_back(read.seconds);
    longest = std::max(longest, read.seconds);
    attempts += read.attempts;
    preferred += read.precedence ? 1 : 0;
  }
  const double mean_wait =
      waits.held_up == 0 ? 0 : static_cast<double>(waits.held_up_nanos) / static_cast<double>(waits.held_up) * 1e-6;
  std::printf("| %lu | %.2f | %zu | %.2f | %.2f | %.1f | %zu | %.0f | %.0f | %.2f | %lu, %.2f |\n", rows,
              Median(alone) * 1e3, reads.size(), Median(seconds) * 1e3, longest * 1e3,
              static_cast<double>(attempts) / static_cast<double>(reads.size()), preferred, before, during,
              during / before, waits.held_up, mean_wait);
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 < argc && name == "--writers") {
      flags.writers = std::max(1, std::atoi(argv[i + 1]));
    } else if (i + 1 < argc && name == "--seconds") {
      flags.seconds = std::max(0.1, std::atof(argv[i + 1]));
    } else {
      std::fprintf(stderr, "usage: long_read_table [--writers N] [--seconds S]\n");
      return 2;
    }
  }
  std::printf("%d writers; reads of the whole table by one thread, for %.1f s or one read\n\n", flags.writers,
              flags.seconds);
  std::printf(
      "| rows | read alone, ms | reads beside writers | median ms | longest ms | attempts | with precedence | "
      "updates/s without reader | with it | ratio | commits that waited, mean ms |\n");
  std::printf("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const uint64_t rows : {uint64_t{1'000}, uint64_t{10'000}, uint64_t{100'000}, uint64_t{1'000'000}}) {
    Measure(rows, flags);
  }
  return 0;
}

}  // namespace
}  // namespace gannet::txn

int main(int argc, char** argv) {
  return gannet::txn::Main(argc, argv);
}
