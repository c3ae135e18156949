// Task<T>: a lazy coroutine. It starts when it is awaited. If it ends without being suspended, its awaiter continues as
// after a function call. Otherwise it resumes its awaiter by symmetric transfer when it ends.
//
// So a loop over a million tasks that never suspend does not grow the stack, even if the compiler makes no tail calls
// (g++ below -O2 and with sanitizers): the stack is as deep as tasks are nested.
//
// Ownership: the Task owns its frame; an awaited Task must live until its awaiter has taken the value. Destroying a
// suspended Task destroys its frame and what that frame owns. A task and its awaiters belong to one thread. An
// exception that leaves a task's body is thrown again where the task is awaited. (Gannet itself throws none; its users'
// code may.)
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

namespace gannet::coro {

// The allocator of coroutine frames: a free list per thread and size class, so that in steady state nothing is
// allocated from the heap. A frame may be freed on another thread than the one that allocated it; it then joins that
// thread's list. Never fails (if the heap is exhausted, the program stops). Thread-safe.
void* AllocateFrame(size_t bytes);
void FreeFrame(void* frame, size_t bytes) noexcept;

// Number of frames that this thread has allocated so far, and number of those that came from the heap. The latter is
// constant in steady state. For tests.
size_t FramesOfThisThread();
size_t HeapFramesOfThisThread();

template <class T>
class Task;

namespace internal {

struct PromiseBase {
  std::coroutine_handle<> awaiter = std::noop_coroutine();
  std::exception_ptr thrown;  // null: no exception left the body

  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> finished) const noexcept {
      return finished.promise().awaiter;
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { thrown = std::current_exception(); }
  void ThrowAgain() const {
    if (thrown != nullptr) [[unlikely]]
      std::rethrow_exception(thrown);
  }

  static void* operator new(size_t bytes) { return AllocateFrame(bytes); }
  static void operator delete(void* frame, size_t bytes) noexcept { FreeFrame(frame, bytes); }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;

  Task<T> get_return_object();
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T Take() {
    ThrowAgain();
    return std::move(*value);
  }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() const noexcept {}
  void Take() const { ThrowAgain(); }
};

}  // namespace internal

template <class T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = internal::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      Reset();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Task() { Reset(); }

  bool valid() const { return handle_ != nullptr; }
  bool done() const { return handle_.done(); }
  Handle handle() const { return handle_; }

  // Runs the task until it suspends or ends.
  bool await_ready() const {
    handle_.resume();
    return handle_.done();
  }
  void await_suspend(std::coroutine_handle<> awaiter) noexcept { handle_.promise().awaiter = awaiter; }
  T await_resume() { return handle_.promise().Take(); }
  // Returns its value or throws its exception; only if done().
  T Take() { return handle_.promise().Take(); }

 private:
  void Reset() {
    if (handle_) std::exchange(handle_, nullptr).destroy();
  }

  Handle handle_ = nullptr;
};

namespace internal {

template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}

}  // namespace internal
}  // namespace gannet::coro
