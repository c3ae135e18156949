// Started<T>: a Task<T> that has begun to run and is awaited later. Several of them run side by side:
//
//   Started<Status> first(Ask(a)), second(Ask(b));   // both questions are in progress
//   Status of_first = co_await first;
//   Status of_second = co_await second;
//
// It belongs to its awaiter's thread and is awaited once. Its owner must await it before it destroys what the task
// uses: a verb or call in flight still writes there.
#pragma once

#include <coroutine>
#include <utility>

#include "base/coro/task.h"

namespace gannet::coro {

template <class T>
class [[nodiscard]] Started {
 public:
  Started() = default;
  // Runs the task up to where it waits for something, or to its end.
  explicit Started(Task<T> task) : task_(std::move(task)) { task_.handle().resume(); }

  // False before a task is moved in.
  bool valid() const { return task_.valid(); }

  bool await_ready() const { return task_.done(); }
  void await_suspend(std::coroutine_handle<> awaiter) noexcept { task_.await_suspend(awaiter); }
  T await_resume() { return task_.Take(); }

 private:
  Task<T> task_;
};

}  // namespace gannet::coro
