// Messages from the child of a crash test to its parent, through a pipe that survives the child.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace gannet::scenario::crash {

enum class MessageKind : uint32_t {
  kRecovered,     // number: records in memory; a: epoch; b: nanoseconds it took
  kCounter,       // worker; number: its last operation that is in the database
  kRow,           // worker; a: table, b: key, c: content
  kStateEnd,      // number: rows that the indexes count; the state is complete
  kRunning,       // operations begin
  kBegun,         // worker, number: of the operation
  kAcknowledged,  // worker, number; a: when (NowNanos of the child)
  kDurable,       // worker, number: the log says that this operation, and so every earlier one, is durable
  kObserved,      // worker, number: a transaction that only read saw this operation, and was acknowledged
  kClosed,        // the database closed without an error
  // append (append_workload.cc); one worker's messages about a transaction come before those about its next one.
  kAppendBegun,  // worker; number: of micro-operations, which follow
  kMicroOp,      // worker; number: 1 if it appends, 0 if it reads; a: list, b: appended value
  kList,         // worker; number: of values in the list that a micro-operation read; a, b, c: the first three
  kListMore,     // worker; a, b, c: the next three
  kAppendOver,   // worker; number: 1 if it committed, and a kList was sent for each read; 0 if the outcome is unknown
  // load (load_workload.cc).
  kTouches,    // worker, number: of an operation that begins; a: table, b: key, c: load that it changes
  kLoadBegun,  // number: of the load; a: table, b: node
  kLoadSaved,  // number: of the load; a: table, b: node: a checkpoint has been taken after it
};

// Content of a row that no operation writes.
inline constexpr uint64_t kBrokenContent = UINT64_MAX;

struct Message {
  MessageKind kind = MessageKind::kRecovered;
  uint32_t worker = 0;
  uint64_t number = 0;
  uint64_t a = 0;
  uint64_t b = 0;
  uint64_t c = 0;
};
static_assert(std::is_trivially_copyable_v<Message> && sizeof(Message) == 40);

// Thread-safe: the kernel does not mix writes as short as this. The process ends if the parent is gone.
class MessagePipe {
 public:
  explicit MessagePipe(int fd) : fd_(fd) {}
  void Send(const Message& message) const {
    if (write(fd_, &message, sizeof message) != static_cast<ssize_t>(sizeof message)) _exit(1);
  }
  // Sends as many messages at once as the kernel does not mix. Messages of one caller arrive in order.
  void SendAll(std::span<const Message> messages) const {
    constexpr size_t kAtOnce = PIPE_BUF / sizeof(Message);
    for (size_t at = 0; at < messages.size(); at += kAtOnce) {
      const std::span<const Message> some = messages.subspan(at, std::min(kAtOnce, messages.size() - at));
      if (write(fd_, some.data(), some.size_bytes()) != static_cast<ssize_t>(some.size_bytes())) _exit(1);
    }
  }

 private:
  int fd_;
};

}  // namespace gannet::scenario::crash
