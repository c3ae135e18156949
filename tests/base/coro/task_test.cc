#include "base/coro/task.h"

#include <memory>
#include <string>
#include <utility>

#include "base/coro/async.h"
#include "base/coro/started.h"
#include "base/coro/worker.h"
#include "gtest/gtest.h"

namespace gannet::coro {
namespace task_test {

Task<int> Give(int value) {
  co_return value;
}

Task<void> SetTo(int* place, int value) {
  *place = value;
  co_return;
}

Task<std::string> Join(std::string a, std::string b) {
  const int zero = co_await Give(0);
  co_return zero == 0 ? a + b : std::string();
}

TEST(Task, StartsOnlyWhenAwaited) {
  int value = 0;
  Task<void> task = SetTo(&value, 1);
  EXPECT_EQ(value, 0);
  Worker().BlockOn(std::move(task));
  EXPECT_EQ(value, 1);
}

TEST(Task, ReturnsItsValue) {
  Worker worker;
  EXPECT_EQ(worker.BlockOn(Give(7)), 7);
  EXPECT_EQ(worker.BlockOn(Join("one", "two")), "onetwo");
}

Task<std::unique_ptr<int>> GiveOwned() {
  co_return std::make_unique<int>(3);
}

TEST(Task, CarriesWhatCanOnlyBeMoved) {
  EXPECT_EQ(*Worker().BlockOn(GiveOwned()), 3);
}

Task<int> CountDown(int n) {
  if (n == 0) co_return 0;
  const int below = co_await CountDown(n - 1);
  co_return below + 1;
}

TEST(Task, AwaitsATaskThatAwaitsATask) {
  EXPECT_EQ(Worker().BlockOn(CountDown(100)), 100);
}

Task<int> SumOf(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += co_await Give(1);
  co_return sum;
}

// If each await nested another call, a million awaits would overflow the stack.
TEST(Task, AwaitingInALoopDoesNotGrowTheStack) {
  EXPECT_EQ(Worker().BlockOn(SumOf(1'000'000)), 1'000'000);
}

Task<int> YieldThenGive(Worker* worker, int value) {
  co_await worker->Yield();
  co_return value;
}

Task<int> SumWithYields(Worker* worker, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += co_await YieldThenGive(worker, 1);
    sum += co_await Give(1);
  }
  co_return sum;
}

TEST(Task, ALoopOfTasksThatWaitDoesNotGrowTheStackEither) {
  Worker worker;
  EXPECT_EQ(worker.BlockOn(SumWithYields(&worker, 200'000)), 400'000);
}

struct Flag {
  bool* destroyed;
  explicit Flag(bool* place) : destroyed(place) {}
  Flag(Flag&& other) noexcept : destroyed(std::exchange(other.destroyed, nullptr)) {}
  ~Flag() {
    if (destroyed != nullptr) *destroyed = true;
  }
};

Task<void> Hold(Flag) {
  co_await std::suspend_always();
}

TEST(Task, ATaskThatIsDestroyedDestroysWhatItsFrameOwns) {
  bool never_started = false, suspended = false;
  { Task<void> task = Hold(Flag(&never_started)); }
  EXPECT_TRUE(never_started);
  {
    Task<void> task = Hold(Flag(&suspended));
    task.handle().resume();
    EXPECT_FALSE(suspended);
  }
  EXPECT_TRUE(suspended);
}

TEST(Task, MovingPassesTheFrameOn) {
  bool destroyed = false;
  Task<void> first = Hold(Flag(&destroyed));
  Task<void> second = std::move(first);
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): a moved-from task is empty
  EXPECT_TRUE(second.valid());
  EXPECT_FALSE(destroyed);
  second = Task<void>();
  EXPECT_TRUE(destroyed);
}

Async<int> Ready(int value) {
  return value;
}
Async<int> NotReady(int value) {
  return Give(value);
}

Task<int> AddUp(bool* all_ready) {
  Async<int> ready = Ready(1);
  Async<int> later = NotReady(10);
  *all_ready = ready.ready() && !later.ready();
  const int a = co_await ready;
  const int b = co_await later;
  const int c = co_await Ready(100);
  const int d = co_await NotReady(1000);
  co_return a + b + c + d;
}

TEST(Async, IsAwaitedTheSameWhetherReadyOrNot) {
  bool as_expected = false;
  EXPECT_EQ(Worker().BlockOn(AddUp(&as_expected)), 1111);
  EXPECT_TRUE(as_expected);
}

TEST(Async, AReadyValueNeedsNoFrame) {
  const size_t before = HeapFramesOfThisThread();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Ready(i).value(), i);
  EXPECT_EQ(HeapFramesOfThisThread(), before);
}

Task<int> Throw(Worker* worker, bool suspended, std::shared_ptr<int> held) {
  if (suspended) co_await worker->Yield();
  throw std::string("no " + std::to_string(*held));
}

Task<int> Catch(Worker* worker, bool suspended, std::shared_ptr<int> held) {
  try {
    co_return co_await Throw(worker, suspended, held);
  } catch (const std::string& thrown) {
    EXPECT_EQ(thrown, "no 7");
  }
  co_return co_await Throw(worker, suspended, held);
}

TEST(Task, AnExceptionGoesToWhoeverAwaits) {
  const auto held = std::make_shared<int>(7);
  for (const bool suspended : {false, true}) {
    Worker worker;
    EXPECT_THROW(worker.BlockOn(Catch(&worker, suspended, held)), std::string);
    EXPECT_EQ(held.use_count(), 1);  // all frames are gone
  }
}

TEST(Task, AnExceptionThatNobodyAwaitsEndsTheProcess) {
  const auto spawned = [](Worker* worker) -> Task<void> {
    co_await worker->Yield();
    throw std::string("for nobody");
  };
  EXPECT_DEATH(
      {
        Worker worker;
        worker.Spawn(spawned(&worker));
        worker.Run();
      },
      "terminate called");
}

TEST(FramePool, SteadyStateAsksTheHeapForNothing) {
  Worker worker;
  worker.BlockOn(SumOf(10));
  const size_t before = HeapFramesOfThisThread();
  worker.BlockOn(SumOf(10'000));
  EXPECT_EQ(HeapFramesOfThisThread(), before);
}

TEST(FramePool, FramesOfEverySizeAreUsable) {
  for (size_t bytes = 1; bytes < 10'000; bytes += 61) {
    auto* frame = static_cast<std::byte*>(AllocateFrame(bytes));
    std::fill(frame, frame + bytes, std::byte{1});
    FreeFrame(frame, bytes);
  }
}

Task<int> YieldThenGive(Worker* worker, int yields, int value, std::string* order) {
  order->push_back('b');
  for (int i = 0; i < yields; ++i) co_await worker->Yield();
  order->push_back('e');
  co_return value;
}

Task<int> SumOfStarted(Worker* worker, int first_yields, int second_yields, std::string* order) {
  Started<int> first(YieldThenGive(worker, first_yields, 1, order));
  Started<int> second(YieldThenGive(worker, second_yields, 2, order));
  const int one = co_await first;
  const int two = co_await second;
  co_return 10 * one + two;
}

TEST(Started, RunsBesideItsOwnerAndTheOthers) {
  for (const int first_yields : {0, 1, 3}) {
    for (const int second_yields : {0, 1, 3}) {
      std::string order;
      Worker worker;
      EXPECT_EQ(worker.BlockOn(SumOfStarted(&worker, first_yields, second_yields, &order)), 12);
      // The second begins before the first has ended, unless the first never suspends.
      EXPECT_EQ(order.substr(0, 2), first_yields == 0 ? "be" : "bb");
      EXPECT_EQ(order.size(), 4u);
    }
  }
}

}  // namespace task_test
}  // namespace gannet::coro
