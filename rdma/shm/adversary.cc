#include "rdma/shm/adversary.h"

#include <sched.h>

#include <algorithm>
#include <numeric>

#include "base/cache_line.h"

namespace gannet::rdma::shm {
namespace {

// Yields after one in kYieldOneIn lines and half lines, at random. On a busy machine a yield costs a time slice of some
// milliseconds. So an operation of more than kLinesToYieldAt lines yields no more often than one of that many.
constexpr size_t kYieldOneIn = 8;
constexpr size_t kLinesToYieldAt = 32;

// Begin and end in [0, bytes) of the `line`-th line that [at, at + bytes) touches.
struct Part {
  size_t begin;
  size_t end;
};
Part PartInLine(const std::byte* at, size_t bytes, uint32_t line) {
  const size_t skip = reinterpret_cast<uintptr_t>(at) % kLineBytes;
  const size_t line_begin = line * kLineBytes;
  return {line_begin <= skip ? 0 : line_begin - skip, std::min(line_begin + kLineBytes - skip, bytes)};
}

// True if operation `later` may take effect before `earlier`, which was posted first (fabric.h, 3).
bool MayOvertake(const Operation& later, const Operation& earlier) {
  return earlier.verb == Verb::kRead || later.remote.node() != earlier.remote.node();
}

}  // namespace

void Adversary::Read(const std::byte* at, std::byte* to, size_t bytes) {
  for (const uint32_t line : ShuffledLines(at, bytes)) {
    const Part part = PartInLine(at, bytes, line);
    ReadWithinLine(at + part.begin, to + part.begin, part.end - part.begin, [this] { MaybeYield(); });
    MaybeYield();
  }
}

void Adversary::Write(const LineWriter& writer, std::byte* at, const std::byte* from, size_t bytes) {
  for (const uint32_t line : ShuffledLines(at, bytes)) {
    const Part part = PartInLine(at, bytes, line);
    writer.WriteWithinLine(at + part.begin, from + part.begin, part.end - part.begin, [this] { MaybeYield(); });
    MaybeYield();
  }
}

std::span<const uint32_t> Adversary::Order(std::span<const Operation> operations) {
  order_.clear();
  remaining_.resize(operations.size());
  std::iota(remaining_.begin(), remaining_.end(), 0);
  while (!remaining_.empty()) {
    size_t pick = random_.Below(remaining_.size());
    // Operations that must not be overtaken go first.
    for (size_t i = 0; i < pick; ++i) {
      if (!MayOvertake(operations[remaining_[pick]], operations[remaining_[i]])) pick = i;
    }
    order_.push_back(remaining_[pick]);
    remaining_.erase(remaining_.begin() + static_cast<ptrdiff_t>(pick));
  }
  return order_;
}

std::span<const uint32_t> Adversary::ShuffledLines(const std::byte* at, size_t bytes) {
  const size_t skip = reinterpret_cast<uintptr_t>(at) % kLineBytes;
  lines_.resize((skip + bytes + kLineBytes - 1) / kLineBytes);
  std::iota(lines_.begin(), lines_.end(), 0);
  std::shuffle(lines_.begin(), lines_.end(), random_);
  yield_one_in_ = kYieldOneIn * std::max(lines_.size(), kLinesToYieldAt) / kLinesToYieldAt;
  return lines_;
}

void Adversary::MaybeYield() {
  if (random_.OneIn(yield_one_in_)) sched_yield();
}

}  // namespace gannet::rdma::shm
