// Async<T>: a value that is available already, or a Task<T> that will produce it.
//
// A local operation returns its value and costs neither a coroutine frame nor a suspension. The same function returns a
// Task if it must access another node. Await it once, in the expression that made it or by name:
//
//   Status status = co_await transaction.Get(table, key, out);
#pragma once

#include <coroutine>
#include <optional>
#include <utility>

#include "base/coro/task.h"

namespace gannet::coro {

template <class T>
class [[nodiscard]] Async {
 public:
  Async(T value) : value_(std::move(value)) {}     // NOLINT: implicit, so that `return value;` works
  Async(Task<T> task) : task_(std::move(task)) {}  // NOLINT: implicit, so that `return Coroutine();` works

  // True if awaiting will not suspend.
  bool ready() const { return !task_.valid(); }
  // The value; only if ready().
  T& value() { return *value_; }
  // The task; only if not ready().
  Task<T>& task() { return task_; }

  bool await_ready() const { return ready() || task_.await_ready(); }
  void await_suspend(std::coroutine_handle<> awaiter) noexcept { task_.await_suspend(awaiter); }
  T await_resume() { return ready() ? std::move(*value_) : task_.await_resume(); }

 private:
  std::optional<T> value_;
  Task<T> task_;
};

}  // namespace gannet::coro
