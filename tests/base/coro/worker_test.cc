#include "base/coro/worker.h"

#include <string>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"

namespace gannet::coro {
namespace worker_test {

Task<void> Append(Worker* worker, std::string* out, char name, int times) {
  for (int i = 0; i < times; ++i) {
    out->push_back(name);
    co_await worker->Yield();
  }
}

TEST(Worker, YieldLetsTheOthersGoFirst) {
  Worker worker;
  std::string out;
  for (const char name : {'a', 'b', 'c'}) worker.Spawn(Append(&worker, &out, name, 3));
  EXPECT_EQ(worker.unfinished(), 3u);
  worker.Run();
  EXPECT_EQ(out, "abcabcabc");
  EXPECT_EQ(worker.unfinished(), 0u);
}

TEST(Worker, BlockOnRunsTheOthersBesideAndLeavesThemUnfinished) {
  Worker worker;
  std::string out;
  worker.Spawn(Append(&worker, &out, 'a', 10));
  worker.BlockOn(Append(&worker, &out, 'b', 2));
  EXPECT_EQ(out.substr(0, 4), "abab");
  EXPECT_EQ(worker.unfinished(), 1u);
  worker.Run();
  EXPECT_EQ(std::count(out.begin(), out.end(), 'a'), 10);
}

Task<void> SpawnMore(Worker* worker, int depth, int* ran) {
  ++*ran;
  if (depth > 0) {
    worker->Spawn(SpawnMore(worker, depth - 1, ran));
    worker->Spawn(SpawnMore(worker, depth - 1, ran));
  }
  co_return;
}

TEST(Worker, TasksSpawnTasks) {
  Worker worker;
  int ran = 0;
  worker.Spawn(SpawnMore(&worker, 8, &ran));
  worker.Run();
  EXPECT_EQ(ran, 511);
}

// Its waiters are resumed by a poller, as a channel resumes its completions.
struct Mailbox {
  std::vector<std::coroutine_handle<>> waiting;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) { waiting.push_back(handle); }
  void await_resume() const noexcept {}
};

Task<void> WaitFor(Mailbox* mailbox, int* arrived) {
  co_await *mailbox;
  ++*arrived;
}

TEST(Worker, PollersAreAskedEveryRoundUntilRemoved) {
  Worker worker;
  Mailbox mailbox;
  int arrived = 0, asked = 0;
  const int poller = worker.AddPoller([&] {
    if (++asked < 10) return size_t{0};
    const size_t count = mailbox.waiting.size();
    for (const auto handle : mailbox.waiting) worker.Resume(handle);
    mailbox.waiting.clear();
    return count;
  });
  for (int i = 0; i < 3; ++i) worker.Spawn(WaitFor(&mailbox, &arrived));
  worker.Run();
  EXPECT_EQ(arrived, 3);
  EXPECT_GE(asked, 10);
  worker.RemovePoller(poller);
  const int before = asked;
  std::string out;
  worker.BlockOn(Append(&worker, &out, 'a', 5));
  EXPECT_EQ(asked, before);
}

Task<void> SleepThenAppend(Worker* worker, uint64_t wake_ns, std::string* out, char name) {
  co_await worker->SleepUntil(wake_ns);
  EXPECT_GE(NowNanos(), wake_ns);
  out->push_back(name);
}

TEST(Worker, SleepersWakeInTheOrderOfTheirTimesAndNeverEarly) {
  Worker worker;
  std::string out;
  const uint64_t start = NowNanos();
  worker.Spawn(SleepThenAppend(&worker, start + 6'000'000, &out, 'c'));
  worker.Spawn(SleepThenAppend(&worker, start + 2'000'000, &out, 'a'));
  worker.Spawn(SleepThenAppend(&worker, start + 4'000'000, &out, 'b'));
  worker.Run();
  EXPECT_EQ(out, "abc");
}

Task<void> Own(std::vector<int> data, Mailbox* mailbox) {
  co_await *mailbox;
  data.clear();
}

TEST(Worker, DestroyingItDestroysWhatHasNotFinished) {
  Mailbox mailbox;
  Worker worker;
  worker.Spawn(Own(std::vector<int>(1000), &mailbox));  // LeakSanitizer would report it
  int arrived = 0;
  Mailbox other;
  worker.AddPoller([&] {
    for (const auto handle : other.waiting) worker.Resume(handle);
    return std::exchange(other.waiting, {}).size();
  });
  worker.BlockOn(WaitFor(&other, &arrived));
  EXPECT_EQ(worker.unfinished(), 1u);
}

}  // namespace worker_test
}  // namespace gannet::coro
