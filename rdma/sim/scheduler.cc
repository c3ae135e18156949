#include "rdma/sim/scheduler.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace gannet::rdma::sim {

using State = SimThread::State;

namespace {

// Threads that will never end. Their objects are still on their stacks; this list keeps them reachable for leak
// checkers.
std::vector<std::unique_ptr<SimThread>>& Abandoned() {
  static auto* threads = new std::vector<std::unique_ptr<SimThread>>;
  return *threads;
}

}  // namespace

Scheduler::Scheduler(const SimulationOptions& options)
    : cores_per_node_(options.cores_per_node),
      quantum_nanos_(options.quantum_nanos),
      lead_nanos_(options.lead_nanos),
      clock_(options.lead_nanos) {
  GANNET_CHECK(cores_per_node_ > 0, "a node has %d cores", cores_per_node_);
  for (Cpu& node : cpus_) node.free_cores = cores_per_node_;
  cpus_.back().free_cores = INT_MAX;
  auto observer = std::make_unique<SimThread>();
  observer->node = kNoNode;
  observer->name = "observer";
  observer->fiber.emplace();
  --cpus_.back().free_cores;
  running_ = observer.get();
  threads_.push_back(std::move(observer));
}

Scheduler::~Scheduler() {
  for (std::unique_ptr<SimThread>& thread : threads_) {
    if (thread->id == 0 || thread->state == State::kDone) continue;
    thread->fiber->Abandon();
    Abandoned().push_back(std::move(thread));
  }
}

SimThread* Scheduler::Start(NodeId node, std::string name, std::function<void()> body) {
  GANNET_CHECK(node < kMaxSimNodes || node == kNoNode, "a thread of node %d", node);
  auto owner = std::make_unique<SimThread>();
  SimThread* thread = owner.get();
  thread->id = static_cast<uint32_t>(threads_.size());
  thread->node = node;
  thread->name = std::move(name);
  thread->body = std::move(body);
  thread->fiber.emplace();
  thread->fiber->Prepare(&Entry, this);
  threads_.push_back(std::move(owner));
  ++statistics_.fibers;
  MakeRunnable(thread, clock_);
  return thread;
}

void Scheduler::Entry(void* scheduler) {
  auto* self = static_cast<Scheduler*>(scheduler);
  self->ReapFinished();
  self->RunThread(self->running_);
}

void Scheduler::RunThread(SimThread* thread) {
  thread->body();
  thread->body = nullptr;
  for (std::shared_ptr<void>& local : thread->locals) local.reset();
  thread->state = State::kDone;
  Unpark(thread, SIZE_MAX);
  ReleaseCore(thread);
  thread->fiber->Finish();
  finished_ = thread;
  RunOthers(thread);
  GANNET_CHECK(false, "thread %s ran after its end", thread->name);
  __builtin_unreachable();
}

void Scheduler::ReapFinished() {
  if (finished_ != nullptr) std::exchange(finished_, nullptr)->fiber.reset();
}

void Scheduler::RunOthers(SimThread* self) {
  for (;;) {
    if (queue_.empty()) NothingWillHappen();
    const Event event = queue_.Pop();
    clock_ = event.time;
    SimThread* next = Happen(event);
    if (next == nullptr) continue;
    if (next != self) return SwitchTo(next, self);
    slice_ends_ = self->slice_start + quantum_nanos_;
    return;
  }
}

void Scheduler::SwitchTo(SimThread* next, SimThread* self) {
  ++statistics_.switches;
  running_ = next;
  slice_ends_ = next->slice_start + quantum_nanos_;
  Fiber::Switch(&*self->fiber, &*next->fiber);
  ReapFinished();
}

SimThread* Scheduler::Happen(const Event& event) {
  ++statistics_.events;
  const auto tag = static_cast<Tag>(event.target & kTagMask);
  void* target = reinterpret_cast<void*>(event.target & ~kTagMask);
  if (tag == kHappening) {
    auto* what = static_cast<Happening*>(target);
    AddToDigest(event.time << 16 ^ what->label());
    in_event_ = true;
    what->Happen();
    in_event_ = false;
    return nullptr;
  }
  auto* thread = static_cast<SimThread*>(target);
  AddToDigest(event.time << 16 ^ (uint64_t{thread->id} << 2 | tag));
  if (tag == kResume) return Resume(thread, event.time);
  TimerFired(thread, event.time);
  return nullptr;
}

SimThread* Scheduler::Resume(SimThread* thread, uint64_t time) {
  if (thread->over()) return nullptr;
  const uint64_t paused_until = cpu(thread->node).paused_until;
  if (paused_until > time) [[unlikely]] {
    queue_.Push(paused_until, Tagged(thread, kResume));
    return nullptr;
  }
  return thread;
}

void Scheduler::TimerFired(SimThread* thread, uint64_t time) {
  if (thread->timer_at != time) return;  // an earlier timer has replaced it
  thread->timer_at = UINT64_MAX;
  if (thread->state == State::kPolling && time >= thread->deadline) return EndSliceOfPoller(thread);
  const bool waits = thread->state == State::kParked || thread->state == State::kPolling ||
                     thread->state == State::kAsleep || thread->state == State::kIdle;
  if (!waits || thread->deadline == UINT64_MAX) return;
  if (thread->deadline <= time) return Wake(thread, time, true);
  ArmTimer(thread, thread->deadline);
}

void Scheduler::EndTurn() {
  SimThread* self = running_;
  if (clock_ >= slice_ends_ && EndSlice()) return;
  const uint64_t mine = clock_;
  while (queue_.next_time() <= mine) {
    const Event event = queue_.Pop();
    clock_ = event.time;
    SimThread* next = Happen(event);
    if (next == nullptr) continue;
    queue_.Push(mine, Tagged(self, kResume));
    return SwitchTo(next, self);
  }
  clock_ = mine;
  if (self->state == State::kDead || cpu(self->node).paused_until > mine) [[unlikely]] {
    queue_.Push(mine, Tagged(self, kResume));
    RunOthers(self);
  }
}

bool Scheduler::EndSlice() {
  if (YieldCore()) {
    ++statistics_.preemptions;
    return true;
  }
  running_->slice_start = clock_;
  slice_ends_ = clock_ + quantum_nanos_;
  return false;
}

void Scheduler::EndSliceOfPoller(SimThread* thread) {
  Cpu& node = cpu(thread->node);
  if (node.ready.empty()) {
    thread->slice_start = clock_;
    thread->deadline = clock_ + quantum_nanos_;
    return ArmTimer(thread, thread->deadline);
  }
  ++statistics_.preemptions;
  CountPolling(thread);
  Detach(thread);
  thread->state = State::kReady;
  ReleaseCore(thread);  // the first in the ready queue gets it
  node.ready.PushBack(thread);
}

bool Scheduler::YieldCore() {
  SimThread* self = running_;
  Cpu& node = cpu(self->node);
  if (node.ready.empty()) return false;
  self->state = State::kReady;
  self->was_at = clock_;
  ReleaseCore(self);  // the first in the ready queue gets it
  node.ready.PushBack(self);
  RunOthers(self);
  return true;
}

void Scheduler::MakeRunnable(SimThread* thread, uint64_t at) {
  if (at < thread->was_at) at = thread->was_at;  // it had run ahead
  Cpu& node = cpu(thread->node);
  if (node.free_cores == 0) {
    thread->state = State::kReady;
    node.ready.PushBack(thread);
    return;
  }
  --node.free_cores;
  thread->state = State::kRunnable;
  thread->slice_start = at;
  queue_.Push(at, Tagged(thread, kResume));
}

void Scheduler::ReleaseCore(SimThread* thread) {
  Cpu& node = cpu(thread->node);
  ++node.free_cores;
  if (!node.ready.empty()) MakeRunnable(node.ready.PopFront(), clock_);
}

bool Scheduler::Wait(State state, const void* key, uint64_t deadline) {
  GANNET_CHECK(!in_event_, "an event waits");
  SimThread* self = running_;
  self->state = state;
  self->key = key;
  self->deadline = deadline;
  self->was_at = clock_;
  if (state == State::kParked) parked_[key].PushBack(self);
  if (state == State::kIdle) cpu(self->node).idle.PushBack(self);
  if (deadline != UINT64_MAX) ArmTimer(self, deadline);
  ReleaseCore(self);
  RunOthers(self);
  return !self->timed_out;
}

void Scheduler::Poll(const void* key) {
  GANNET_CHECK(!in_event_, "an event polls");
  SimThread* self = running_;
  self->state = State::kPolling;
  self->key = key;
  self->deadline = slice_ends_;
  self->was_at = clock_;
  parked_[key].PushBack(self);
  ArmTimer(self, self->deadline);
  RunOthers(self);
}

void Scheduler::CountPolling(SimThread* thread) {
  const uint64_t now = std::max(clock_, thread->was_at);  // it may have run ahead
  cpu(thread->node).busy_nanos += now - thread->was_at;
  thread->was_at = now;
}

void Scheduler::ArmTimer(SimThread* thread, uint64_t deadline) {
  if (thread->timer_at <= deadline) return;  // that timer will arm the next one
  thread->timer_at = deadline < clock_ ? clock_ : deadline;
  queue_.Push(thread->timer_at, Tagged(thread, kTimer));
}

void Scheduler::Detach(SimThread* thread) {
  if (thread->state == State::kIdle) return cpu(thread->node).idle.Remove(thread);
  if (thread->state == State::kReady) return cpu(thread->node).ready.Remove(thread);
  if (thread->state != State::kParked && thread->state != State::kPolling) return;
  const auto waiters = parked_.find(thread->key);
  waiters->second.Remove(thread);
  if (waiters->second.empty()) parked_.erase(waiters);
}

void Scheduler::Wake(SimThread* thread, uint64_t at, bool timed_out) {
  Detach(thread);
  thread->timed_out = timed_out;
  MakeRunnable(thread, at < clock_ ? clock_ : at);
}

void Scheduler::Unpark(const void* key, size_t most) {
  if (parked_.empty()) return;
  const auto waiters = parked_.find(key);
  if (waiters == parked_.end()) return;
  ThreadList& list = waiters->second;
  for (; most > 0 && !list.empty(); --most) {
    SimThread* thread = list.PopFront();
    thread->timed_out = false;
    if (thread->state != State::kPolling) {
      MakeRunnable(thread, clock_);
      continue;
    }
    CountPolling(thread);
    thread->state = State::kRunnable;
    queue_.Push(thread->was_at, Tagged(thread, kResume));
  }
  if (list.empty()) parked_.erase(waiters);
}

void Scheduler::Idle(uint64_t deadline) {
  SimThread* self = running_;
  const bool news = self->wake_at <= clock_ || self->seen_wakes != cpu(self->node).wakes;
  if (news || deadline <= clock_) return Advance(1);
  Wait(State::kIdle, nullptr, deadline < self->wake_at ? deadline : self->wake_at);
}

void Scheduler::WakeIdle(NodeId node) {
  Cpu& cpu_of_node = cpu(node);
  ++cpu_of_node.wakes;
  while (!cpu_of_node.idle.empty()) Wake(cpu_of_node.idle.front(), clock_, false);
}

void Scheduler::WakeIdle(SimThread* thread, uint64_t at) {
  if (thread->state == State::kIdle) return Wake(thread, at, false);
  if (at < thread->wake_at) thread->wake_at = at;
}

void Scheduler::Kill(NodeId node) {
  for (const std::unique_ptr<SimThread>& thread : threads_) {
    if (thread->node != node || thread->over()) continue;
    Detach(thread.get());
    thread->state = State::kDead;
    Unpark(thread.get(), SIZE_MAX);  // wakes the threads that join it
  }
  Cpu& dead = cpu(node);
  dead.free_cores = cores_per_node_;
  dead.paused_until = 0;
  if (running_->node == node && !in_event_) RunOthers(running_);
}

void Scheduler::Pause(NodeId node, uint64_t until) {
  Cpu& paused = cpu(node);
  if (until > paused.paused_until) paused.paused_until = until;
  if (running_->node != node || in_event_) return;
  queue_.Push(clock_, Tagged(running_, kResume));
  RunOthers(running_);
}

void Scheduler::Bind(NodeId node) {
  SimThread* self = running_;
  if (self->node != kNoNode || self->id == 0) return;
  GANNET_CHECK(node < kMaxSimNodes, "a thread of node %d", node);
  ReleaseCore(self);
  self->node = node;
  self->seen_wakes = 0;
  MakeRunnable(self, clock_);
  RunOthers(self);
}

void Scheduler::NothingWillHappen() {
  std::string waiting;
  for (const std::unique_ptr<SimThread>& thread : threads_) {
    if (!thread->over()) absl::StrAppend(&waiting, " ", thread->name, "(", thread->id, ")");
  }
  GANNET_CHECK(false, "deadlock: every thread waits for another:%s", waiting);
  __builtin_unreachable();
}

}  // namespace gannet::rdma::sim
