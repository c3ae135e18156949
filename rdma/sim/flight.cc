#include "rdma/sim/flight.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "rdma/sim/sim_channel.h"

namespace gannet::rdma::sim {
namespace {

// Unlike LoadWord and StoreWord these have no preemption point: a NIC is not preempted.
uint64_t Load(std::byte* word) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(word)).load(std::memory_order_acquire);
}
void Store(std::byte* word, uint64_t value) {
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(word)).store(value, std::memory_order_release);
}

uint64_t BytesThere(Verb verb, uint32_t size) {
  return verb == Verb::kWrite ? size : verb == Verb::kRead ? 0 : 2 * kWordBytes;
}
uint64_t BytesBack(Verb verb, uint32_t size) {
  return verb == Verb::kRead ? size : verb == Verb::kWrite ? 0 : kWordBytes;
}

}  // namespace

Status Batch::ToStatus() const {
  switch (failure) {
    case Failure::kNone:
      return absl::OkStatus();
    case Failure::kGone:
      return absl::UnavailableError(absl::StrCat(NameOf(failed_verb), ": node ", failed_node,
                                                 " died or left; the operation may or may not have taken effect"));
    case Failure::kDisconnected:
      return absl::UnavailableError(absl::StrCat(NameOf(failed_verb), ": the connection to node ", failed_node,
                                                 " broke; it may have been done or not"));
    case Failure::kCut:
      return absl::UnavailableError(
          absl::StrCat(NameOf(failed_verb), ": node ", failed_node, " did not answer; it may have been done or not"));
  }
  return absl::InternalError("unknown failure");
}

void Flight::Depart(SimChannel* channel, Operation* operation, Attachment* from, Attachment* to, Batch* batch) {
  channel_ = channel;
  from_ = from;
  to_ = to;
  batch_ = batch;
  operation_ = operation;
  verb_ = operation->verb;
  size_ = operation->size;
  offset_ = operation->remote.offset();
  failure_ = Failure::kNone;
  connection_ = channel->route(to->id).connection;
  late_ = core_->SpreadNanosOf(from->id, to->id, batch->luck);
  lines_.clear();
  next_line_ = 0;
  set_label(static_cast<uint32_t>(offset_ / kWordBytes) ^ static_cast<uint32_t>(from->id) << 26 ^
            static_cast<uint32_t>(verb_) << 24);
  Nic& nic = core_->nic(from->id);
  const uint64_t now = ToPicos(core_->now());
  const bool to_self = from->id == to->id;
  departed_ = ToNanos(to_self ? nic.SendToSelf(now) : nic.Send(now, BytesThere(verb_, size_)));
  core_->CountDeparture(from, departed_);
  if (core_->cut(from->id, to->id)) return Fail(Failure::kCut, departed_ + core_->options().detection_nanos);
  Post(departed_ + core_->WireNanos(from->id, to->id), Stage::kArrive);
}

void Flight::Post(uint64_t at, Stage stage) {
  stage_ = stage;
  core_->simulation().Post(at, this);
}

void Flight::Happen() {
  switch (stage_) {
    case Stage::kArrive:
      return Arrive();
    case Stage::kAccess:
      return Access();
    case Stage::kWriteBack:
      if (to_->there()) Store(At(), new_value_);
      return channel_ == nullptr ? Return() : SendAnswer();
    case Stage::kReturn:
      return Return();
  }
}

bool Flight::Connected() const {
  return channel_ == nullptr || channel_->route(to_->id).connection == connection_;
}

// True if the issuer is dead and the others know it, or another attachment has taken its place (fabric.h, 5).
bool Flight::IsFenced() const {
  return IssuerIsDead() && (from_->known_gone(core_->now()) || core_->current(from_->id) != from_);
}

bool Flight::BreaksHere() {
  // Half of the breaks hit requests, half hit responses.
  if (core_->simulation().Chance(core_->faults().disconnect / 2) && channel_ != nullptr) {
    ++channel_->route(to_->id).connection;
  }
  return !Connected();
}

void Flight::Arrive() {
  // The issuer died before its NIC had sent the verb, or the channel and its buffers are gone.
  if (channel_ == nullptr || (IssuerIsDead() && departed_ > from_->gone_at)) return Return();
  const uint64_t now = core_->now();
  if (IsFenced()) return Return();
  if (!to_->there()) return Fail(Failure::kGone, std::max(now, to_->known_at));
  if (!Connected()) return Fail(Failure::kDisconnected, now);
  Nic& nic = core_->nic(to_->id);
  const bool to_self = from_->id == to_->id;
  const uint64_t here = to_self ? ToPicos(now) : nic.Receive(ToPicos(now), BytesThere(verb_, size_));
  // Verbs that the channel posted before must have taken effect.
  SimChannel::Route& route = channel_->route(to_->id);
  if (verb_ == Verb::kCompareAndSwap || verb_ == Verb::kFetchAndAdd) {
    const uint64_t at = ToNanos(nic.ServeAtomic(here, offset_, ToPicos(route.atomics_after)));
    route.atomics_after = at;
    route.others_after = at + (core_->capabilities().cpu_coherent_atomics ? 0 : WriteBackNanos() + 1);
    return Post(at, Stage::kAccess);
  }
  const uint64_t at = std::max(ToNanos(nic.ServeAccess(here, offset_)), route.others_after);
  const bool many_lines = (offset_ % kLineBytes) + size_ > kLineBytes;
  if (many_lines && core_->simulation().Chance(core_->faults().scatter_lines)) Scatter(at);
  // Events with equal times run in the order in which they were posted. So verbs that follow a WRITE start after its
  // last line.
  if (verb_ == Verb::kWrite) route.others_after = route.atomics_after = lines_.empty() ? at : lines_.back().at + 1;
  Post(lines_.empty() ? at : lines_.front().at, Stage::kAccess);
}

void Flight::Scatter(uint64_t start) {
  Random& random = core_->simulation().random();
  for (uint32_t begin = 0; begin < size_;) {
    const auto room = static_cast<uint32_t>(kLineBytes - (offset_ + begin) % kLineBytes);
    const uint32_t end = std::min(size_, begin + room);
    lines_.push_back({begin, end, start + random.Below(core_->faults().scatter_nanos + 1)});
    begin = end;
  }
  // A stable sort, so that lines with equal times are in ascending order on every machine.
  std::stable_sort(lines_.begin(), lines_.end(), [](const LineAccess& a, const LineAccess& b) { return a.at < b.at; });
}

void Flight::Access() {
  if (channel_ == nullptr) return Return();
  if (!to_->there()) return Fail(Failure::kGone, std::max(core_->now(), to_->known_at));
  if (next_line_ == 0 && IsFenced()) return Return();
  // A WRITE that has begun ends: its packet has arrived.
  if (next_line_ == 0 && BreaksHere()) return Fail(Failure::kDisconnected, core_->now());
  if (verb_ == Verb::kCompareAndSwap || verb_ == Verb::kFetchAndAdd) return AccessAtomically();
  if (lines_.empty()) {
    AccessBytes(0, size_);
  } else {
    const LineAccess& line = lines_[next_line_++];
    AccessBytes(line.begin, line.end);
    if (next_line_ < lines_.size()) return Post(lines_[next_line_].at, Stage::kAccess);
  }
  if (core_->simulation().tracing()) TraceAccess();
  SendAnswer();
}

void Flight::AccessBytes(uint32_t begin, uint32_t end) {
  std::byte* remote = At() + begin;
  if (verb_ == Verb::kWrite) {
    const auto* local = static_cast<const std::byte*>(operation_->local) + begin;
    for (uint32_t i = 0; i < end - begin; i += kWordBytes) {
      uint64_t word;
      std::memcpy(&word, local + i, kWordBytes);
      Store(remote + i, word);
    }
    return;
  }
  if (IssuerIsDead()) return;
  auto* local = static_cast<std::byte*>(operation_->local) + begin;
  for (uint32_t i = 0; i < end - begin; i += kWordBytes) {
    const uint64_t word = Load(remote + i);
    std::memcpy(local + i, &word, kWordBytes);
  }
}

void Flight::AccessAtomically() {
  const uint64_t found = Load(At());
  const bool changes = verb_ == Verb::kFetchAndAdd || found == operation_->expected;
  new_value_ = verb_ == Verb::kFetchAndAdd ? found + operation_->operand : operation_->operand;
  if (!IssuerIsDead()) operation_->result = found;
  if (core_->simulation().tracing()) TraceAccess();
  if (!changes) return SendAnswer();
  if (!core_->capabilities().cpu_coherent_atomics && WriteBackNanos() > 0) {
    // The NIC has read the word over PCIe and writes it back later: a CPU's store in between is lost. Other atomics on
    // the word are not served in between. A NIC with same_word_nanos = 0 has no such window.
    return Post(core_->now() + WriteBackNanos(), Stage::kWriteBack);
  }
  Store(At(), new_value_);
  SendAnswer();
}

void Flight::SendAnswer() {
  const uint64_t now = core_->now();
  if (!to_->there()) return Fail(Failure::kGone, std::max(now, to_->known_at));
  if (core_->cut(to_->id, from_->id)) return Fail(Failure::kCut, now + core_->options().detection_nanos);
  const bool to_self = from_->id == to_->id;
  const uint64_t left = to_self ? now : ToNanos(core_->nic(to_->id).Answer(ToPicos(now), BytesBack(verb_, size_)));
  Post(left + core_->WireNanos(to_->id, from_->id) + late_ + core_->DrawDelay(), Stage::kReturn);
}

void Flight::Fail(Failure failure, uint64_t at) {
  failure_ = failure;
  Post(std::max(at, core_->now() + core_->WireNanos(to_->id, from_->id)), Stage::kReturn);
}

void Flight::Return() {
  if (channel_ != nullptr) {
    if (IssuerIsDead()) failure_ = Failure::kGone;
    if (failure_ == Failure::kNone && BreaksHere()) failure_ = Failure::kDisconnected;
    const uint64_t now = ToPicos(core_->now());
    const bool to_self = from_->id == to_->id;
    const uint64_t here = to_self ? now : core_->nic(from_->id).Receive(now, BytesBack(verb_, size_));
    channel_->Returned(this, ToNanos(here) + core_->options().nic.completion_nanos);
  }
  core_->flights.Return(this);
}

void Flight::TraceAccess() {
  core_->simulation().Trace(absl::StrCat(NameOf(verb_), " of ", size_, " bytes at ",
                                         GlobalAddress(to_->id, offset_).ToString(), " by node ", from_->id,
                                         " channel ", channel_->index()));
}

}  // namespace gannet::rdma::sim
