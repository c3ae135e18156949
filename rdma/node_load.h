// NodeLoad: how busy a node is, as it announces itself to all others (EpochManager::LoadOf). One word, so that it comes
// with the READ of the node's slots.
//
//   | number 10 | link speed 14 | link busy 10 | time of a verb 10 | engine busy 10 | servers busy 10 |   bits
//
// Shares are in thousandths, the speed in units of 100 MB/s, the time in eighths of a nanosecond.
// The number counts the announcements and is never 0, so 0 stands for none, and two announcements of the same load
// differ.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rdma/served_time.h"

namespace gannet::rdma {

struct NodeLoad {
  static constexpr uint32_t kWhole = 1000;

  uint32_t number = 0;  // of the announcement, 1 to 1023, then 1 again; 0: nothing was announced
  // Share of the last interval, in thousandths.
  uint32_t servers = 0;                    // that the node's threads for calls were busy
  uint32_t link = 0;                       // that its link was busy, in the busier direction
  uint32_t engine = 0;                     // that the engine of its NIC was busy which serves others' verbs
  uint32_t link_megabytes_per_second = 0;  // in each direction, in hundreds; 0: speed and share are not known
  uint32_t verb_picos = 0;                 // time of a small verb in that engine; 0: it and the share are not known

  bool known() const { return number != 0; }
  double server_share() const { return static_cast<double>(servers) / kWhole; }
  double link_share() const { return static_cast<double>(link) / kWhole; }
  double engine_share() const { return static_cast<double>(engine) / kWhole; }

  uint64_t Pack() const {
    const uint64_t speed = std::min(link_megabytes_per_second / kSpeedUnit, kMostSpeed);
    const uint64_t verb = std::min(verb_picos / kVerbUnit, kMostVerb);
    return uint64_t{number} << 54 | speed << 40 | uint64_t{std::min(link, kWhole)} << 30 | verb << 20 |
           uint64_t{std::min(engine, kWhole)} << 10 | std::min(servers, kWhole);
  }
  // `word` may come from any node: shares above the whole count as the whole.
  static NodeLoad Unpack(uint64_t word) {
    const auto share = [word](int shift) { return std::min(static_cast<uint32_t>(word >> shift & 0x3ff), kWhole); };
    return {.number = static_cast<uint32_t>(word >> 54),
            .servers = share(0),
            .link = share(30),
            .engine = share(10),
            .link_megabytes_per_second = static_cast<uint32_t>(word >> 40 & kMostSpeed) * kSpeedUnit,
            .verb_picos = static_cast<uint32_t>(word >> 20 & kMostVerb) * kVerbUnit};
  }

  // The announcement after the one with number `before`: the work between `from` and `to`, which are `nanos` apart.
  //
  // Server threads have all of that time for calls. Workers that serve between their coroutines add the time that they
  // spent on calls, and are busy in all of it: they have other work to do.
  static NodeLoad Between(const ServedTime& from, const ServedTime& to, uint64_t nanos, uint32_t before) {
    const uint64_t workers = to.worker_nanos - from.worker_nanos;
    const uint64_t busy = to.server_nanos - from.server_nanos + workers;
    const uint64_t link = std::max(to.link_out_nanos - from.link_out_nanos, to.link_in_nanos - from.link_in_nanos);
    NodeLoad load;
    load.number = before % kMostNumber + 1;
    load.servers = ShareOf(busy, to.server_threads * nanos + workers);
    if (to.link_bytes_per_second > 0) {
      load.link = ShareOf(link, nanos);
      const uint64_t units = std::clamp<uint64_t>(to.link_bytes_per_second / 1'000'000 / kSpeedUnit, 1, kMostSpeed);
      load.link_megabytes_per_second = static_cast<uint32_t>(units) * kSpeedUnit;
    }
    if (to.engine_picos_per_verb > 0) {
      load.engine = ShareOf(to.engine_nanos - from.engine_nanos, nanos);
      const uint64_t units = std::clamp<uint64_t>(to.engine_picos_per_verb / kVerbUnit, 1, kMostVerb);
      load.verb_picos = static_cast<uint32_t>(units) * kVerbUnit;
    }
    return load;
  }

 private:
  static constexpr uint32_t kMostNumber = 0x3ff;
  static constexpr uint32_t kSpeedUnit = 100;
  static constexpr uint32_t kMostSpeed = 0x3fff;
  static constexpr uint32_t kVerbUnit = 125;
  static constexpr uint32_t kMostVerb = 0x3ff;

  static uint32_t ShareOf(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0 : static_cast<uint32_t>(std::min<uint64_t>(part * kWhole / whole, kWhole));
  }
};

}  // namespace gannet::rdma
