#include "rdma/verbs/lane.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/cache_line.h"
#include "base/check.h"

namespace gannet::rdma::verbs {
namespace {

// Longest part of an operation that needs no staging. Cards take at most 2 GiB.
constexpr uint32_t kMaxDirectBytes = 1u << 30;
// Tries of a READ whose first word keeps changing. After that the caller gets kLineBusy there.
constexpr int kMostTries = 16;

bool IsAtomic(Verb verb) {
  return verb == Verb::kCompareAndSwap || verb == Verb::kFetchAndAdd;
}

}  // namespace

void Lane::Open(std::shared_ptr<Link> link, uint64_t generation, const RegionInfo& region) {
  GANNET_CHECK(link_ == nullptr && in_flight_.empty(), "node %d: a second link", node_);
  link_ = std::move(link);
  generation_ = generation;
  region_ = region;
  posted_ = completed_ = 0;
}

std::shared_ptr<Link> Lane::Close() {
  generation_ = 0;
  broken_.clear();
  return std::exchange(link_, nullptr);
}

void Lane::FailAll(const Status& status) {
  expected_ = 0;
  // A coroutine resumed by this submits nothing before it is back in Poll, so these queues only shrink.
  for (RingQueue<Work>* works : {&in_flight_, &queue_}) {
    while (!works->empty()) {
      Work work = works->pop_front();
      if (work.batch != nullptr && work.batch->status.ok()) work.batch->status = status;
      Finish(&work, false);
    }
  }
}

void Lane::Add(Operation* operation, Batch* batch, uint32_t local_key) {
  const bool is_object = operation->remote.offset() % kLineBytes == 0 && operation->size > kWordBytes;
  if (line_consistent_ || !is_object || IsAtomic(operation->verb)) {
    AddBody(operation, batch, local_key, 0, operation->size);
  } else if (operation->verb == Verb::kRead) {
    AddGuarded(operation, batch, local_key, NewGuard());
  } else {
    AddBody(operation, batch, local_key, kWordBytes, operation->size);
    AddBody(operation, batch, local_key, 0, kWordBytes);
  }
}

void Lane::AddBody(Operation* operation, Batch* batch, uint32_t local_key, uint32_t from, uint32_t to) {
  const uint32_t most = local_key != 0 ? kMaxDirectBytes : Staging::kMaxBytes;
  do {
    const uint32_t size = std::min(most, to - from);
    Queue({.operation = operation, .batch = batch, .offset = from, .size = size, .local_key = local_key});
    from += size;
  } while (from < to);
}

void Lane::AddGuarded(Operation* operation, Batch* batch, uint32_t local_key, Guard* guard) {
  AddGuard(operation, batch, local_key, guard, Part::kBefore);
  AddBody(operation, batch, local_key, 0, operation->size);
  AddGuard(operation, batch, local_key, guard, Part::kAfter);
}

void Lane::AddGuard(Operation* operation, Batch* batch, uint32_t local_key, Guard* guard, Part part) {
  Queue({.part = part,
         .guard = guard,
         .operation = operation,
         .batch = batch,
         .size = kWordBytes,
         .local_key = local_key});
}

void Lane::Queue(const Work& work) {
  ++work.batch->unfinished;
  queue_.push_back(work);
}

Lane::Guard* Lane::NewGuard() {
  if (free_guards_.empty()) {
    guards_.push_back(std::make_unique<Guard>());
    free_guards_.push_back(guards_.back().get());
  }
  Guard* guard = free_guards_.back();
  free_guards_.pop_back();
  guard->tries = 0;
  return guard;
}

void Lane::Judge(const Work& last) {
  Guard* guard = last.guard;
  if (guard->before != guard->after && ++guard->tries < kMostTries) {
    return AddGuarded(last.operation, last.batch, last.local_key, guard);
  }
  // The READ may have met another first word than both looks, if that was busy each time.
  std::memcpy(last.operation->local, guard->before == guard->after ? &guard->before : &kLineBusy, kWordBytes);
  free_guards_.push_back(guard);
}

void Lane::Add(Outgoing* message) {
  uint32_t offset = 0;
  do {
    const uint32_t size = std::min(kPayloadBytes, message->header.total_bytes - offset);
    ++message->unposted;
    queue_.push_back({.message = message, .offset = offset, .size = size});
    offset += size;
  } while (offset < message->header.total_bytes);
}

Status Lane::Flush() {
  std::array<ibv_send_wr, kMostPerPost> requests;
  std::array<ibv_sge, kMostPerPost> locals;
  while (!queue_.empty()) {
    uint32_t count = 0;
    while (count < kMostPerPost && !queue_.empty() && posted_ - completed_ < kSendDepth) {
      if (!Prepare(&queue_.front(), &requests[count], &locals[count])) break;
      requests[count].wr_id = WorkId{.is_receive = false, .link = link_->number(), .item = posted_++}.Encode();
      requests[count].next = nullptr;
      if (count > 0) requests[count - 1].next = &requests[count];
      in_flight_.push_back(queue_.pop_front());
      ++count;
    }
    if (count == 0) return absl::OkStatus();
    requests[count - 1].send_flags |= IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(link_->qp(), requests.data(), &bad); error != 0) {
      return absl::ErrnoToStatus(error, "cannot post to the queue pair");
    }
  }
  return absl::OkStatus();
}

bool Lane::Prepare(Work* work, ibv_send_wr* request, ibv_sge* local) {
  *request = {};
  *local = {};
  request->sg_list = local;
  request->num_sge = 1;
  if (work->message != nullptr) return PrepareMessage(work, request, local);
  const Operation& operation = *work->operation;
  auto* at = static_cast<std::byte*>(operation.local) + work->offset;
  const bool is_inline = operation.verb == Verb::kWrite && work->size <= link_->max_inline();
  local->length = work->size;
  if (work->size == 0) request->num_sge = 0;  // some NICs take a length of 0 as 2 GiB
  const bool is_direct = work->local_key != 0 && work->part == Part::kBody && !IsAtomic(operation.verb);
  if (is_inline || is_direct) {
    local->addr = reinterpret_cast<uint64_t>(at);
    local->lkey = work->local_key;
    if (is_inline) request->send_flags |= IBV_SEND_INLINE;
  } else {
    work->buffer = staging_->Take(work->size);
    if (!work->buffer) return false;
    if (operation.verb == Verb::kWrite) std::memcpy(work->buffer.at, at, work->size);
    local->addr = reinterpret_cast<uint64_t>(work->buffer.at);
    local->lkey = staging_->key();
  }
  const uint64_t remote = region_.base + operation.remote.offset() + work->offset;
  const uint32_t key = region_.KeyAt(operation.remote.offset());
  if (IsAtomic(operation.verb)) {
    const bool is_swap = operation.verb == Verb::kCompareAndSwap;
    request->opcode = is_swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    request->wr.atomic = {.remote_addr = remote,
                          .compare_add = is_swap ? operation.expected : operation.operand,
                          .swap = is_swap ? operation.operand : 0,
                          .rkey = key};
  } else {
    request->opcode = operation.verb == Verb::kRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    request->wr.rdma = {.remote_addr = remote, .rkey = key};
  }
  return true;
}

bool Lane::PrepareMessage(Work* work, ibv_send_wr* request, ibv_sge* local) {
  FragmentHeader header = work->message->header;
  header.offset = work->offset;
  work->buffer = staging_->Take(sizeof header + work->size);
  if (!work->buffer) return false;
  std::memcpy(work->buffer.at, &header, sizeof header);
  if (work->size > 0) std::memcpy(work->buffer.at + sizeof header, work->message->body + work->offset, work->size);
  --work->message->unposted;
  local->addr = reinterpret_cast<uint64_t>(work->buffer.at);
  local->length = sizeof header + work->size;
  local->lkey = staging_->key();
  if (local->length <= link_->max_inline()) request->send_flags |= IBV_SEND_INLINE;
  request->opcode = IBV_WR_SEND;
  return true;
}

void Lane::Complete(uint32_t sequence) {
  while (!in_flight_.empty() && static_cast<int32_t>(sequence - completed_) >= 0) {
    ++completed_;
    Work work = in_flight_.pop_front();
    Finish(&work, true);
  }
}

void Lane::Finish(Work* work, bool ok) {
  if (work->part != Part::kBody) {
    uint64_t* word = work->part == Part::kBefore ? &work->guard->before : &work->guard->after;
    if (ok) std::memcpy(word, work->buffer.at, kWordBytes);
    if (work->part == Part::kAfter && ok) Judge(*work);
    if (work->part == Part::kAfter && !ok) free_guards_.push_back(work->guard);
  } else if (ok && work->operation != nullptr) {
    Operation& operation = *work->operation;
    if (operation.verb == Verb::kRead && work->buffer) {
      std::memcpy(static_cast<std::byte*>(operation.local) + work->offset, work->buffer.at, work->size);
    } else if (IsAtomic(operation.verb)) {
      std::memcpy(&operation.result, work->buffer.at, kWordBytes);
    }
  }
  if (work->buffer) staging_->Give(work->buffer);
  if (work->batch == nullptr) return;
  // A batch that finishes early is resumed while a card may still write into its buffers.
  GANNET_CHECK(work->batch->unfinished > 0, "node %d: a batch has more completions than parts", node_);
  if (--work->batch->unfinished == 0) listener_->FinishBatch(work->batch);
}

}  // namespace gannet::rdma::verbs
