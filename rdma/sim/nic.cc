#include "rdma/sim/nic.h"

#include "base/cache_line.h"
#include "base/random.h"

namespace gannet::rdma::sim {
namespace {

constexpr size_t kAtomicLocks = 4096;
constexpr size_t kLinePlaces = 16 * 1024;
constexpr uint64_t kPacketBytes = 4096;  // InfiniBand's largest MTU

uint64_t PicosPer(double per_second) {
  return per_second > 0 ? static_cast<uint64_t>(1e12 / per_second) : 0;
}

}  // namespace

Nic::Nic(const NicProfile& profile)
    : profile_(profile),
      per_verb_(PicosPer(profile.verbs_per_second)),
      per_inbound_(PicosPer(profile.inbound_per_second)),
      per_atomic_(PicosPer(profile.atomics_per_second)),
      per_kilobyte_(PicosPer(profile.bandwidth / 1024)),
      hot_line_(static_cast<uint64_t>(profile.hot_line_nanos * kPicosPerNano)),
      word_free_at_(kAtomicLocks),
      line_touched_at_(hot_line_ > 0 ? kLinePlaces : 0) {}

uint64_t Nic::OnWire(uint64_t bytes) {
  const uint64_t packets = bytes <= kPacketBytes ? 1 : (bytes + kPacketBytes - 1) / kPacketBytes;
  return (bytes + packets * profile_.header_bytes) * per_kilobyte_ / 1024;
}

uint64_t Nic::Send(uint64_t now, uint64_t bytes) {
  ++statistics_.verbs_sent;
  statistics_.bytes_out += bytes;
  return out_.Take(send_.Take(now + ToPicos(profile_.doorbell_nanos), per_verb_), OnWire(bytes));
}

uint64_t Nic::SendToSelf(uint64_t now) {
  ++statistics_.verbs_sent;
  return send_.Take(now + ToPicos(profile_.doorbell_nanos), per_verb_);
}

uint64_t Nic::Receive(uint64_t now, uint64_t bytes) {
  statistics_.bytes_in += bytes;
  // The packet's first bit came this much earlier, so an idle link adds no delay.
  const uint64_t takes = OnWire(bytes);
  return in_.Take(now - std::min(now, takes), takes);
}

uint64_t Nic::ServeFor(uint64_t now, uint64_t cost) {
  ++statistics_.verbs_served;
  return serve_.Take(now, cost) + ToPicos(profile_.memory_nanos);
}

uint64_t Nic::ServeAccess(uint64_t now, uint64_t offset) {
  if (hot_line_ == 0) return ServeFor(now, per_inbound_);
  uint64_t& touched_at = line_touched_at_[Mix64(offset / kLineBytes) % kLinePlaces];
  const bool hot = touched_at > 0 && now < touched_at + ToPicos(profile_.memory_nanos);
  touched_at = now;
  return ServeFor(now, per_inbound_ + (hot ? hot_line_ : 0));
}

uint64_t Nic::ServeAtomic(uint64_t now, uint64_t offset, uint64_t not_before) {
  ++statistics_.verbs_served;
  const uint64_t served = atomics_.Take(now, per_atomic_) + ToPicos(profile_.memory_nanos);
  uint64_t& word_free_at = word_free_at_[Mix64(offset) % kAtomicLocks];
  const uint64_t at = std::max({served, word_free_at, not_before});
  word_free_at = at + ToPicos(profile_.same_word_nanos);
  return at;
}

uint64_t Nic::Answer(uint64_t now, uint64_t bytes) {
  statistics_.bytes_out += bytes;
  return out_.Take(now, OnWire(bytes));
}

const NicStatistics& Nic::statistics() {
  statistics_.busy_send_nanos = send_.busy() / kPicosPerNano;
  statistics_.busy_serve_nanos = serve_.busy() / kPicosPerNano;
  statistics_.busy_atomic_nanos = atomics_.busy() / kPicosPerNano;
  statistics_.busy_out_nanos = out_.busy() / kPicosPerNano;
  statistics_.busy_in_nanos = in_.busy() / kPicosPerNano;
  return statistics_;
}

}  // namespace gannet::rdma::sim
