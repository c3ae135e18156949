// NodeLoad: how busy a node is, as it announces itself to all others (EpochManager::LoadOf). One word, so that it comes
// with the READ of the node's slots.
//
//   | number 12 | link speed in MB/s 20 | link busy 16 | servers busy 16 |     shares in thousandths
//
// The number counts the announcements and is never 0, so 0 stands for none, and two announcements of the same load
// differ.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rdma/served_time.h"

namespace gannet::rdma {

struct NodeLoad {
  static constexpr uint32_t kWhole = 1000;

  uint32_t number = 0;  // of the announcement, 1 to 4095, then 1 again; 0: nothing was announced
  // Share of the last interval, in thousandths.
  uint32_t servers = 0;                    // that the node's threads for calls were busy
  uint32_t link = 0;                       // that its link was busy, in the busier direction
  uint32_t link_megabytes_per_second = 0;  // in each direction; 0: speed and share are not known

  bool known() const { return number != 0; }
  double server_share() const { return static_cast<double>(servers) / kWhole; }
  double link_share() const { return static_cast<double>(link) / kWhole; }

  uint64_t Pack() const {
    return uint64_t{number} << 52 | uint64_t{std::min(link_megabytes_per_second, kMostMegabytes)} << 32 |
           uint64_t{std::min(link, kWhole)} << 16 | std::min(servers, kWhole);
  }
  // `word` may come from any node: shares above the whole count as the whole.
  static NodeLoad Unpack(uint64_t word) {
    return {.number = static_cast<uint32_t>(word >> 52),
            .servers = std::min(static_cast<uint32_t>(word & 0xffff), kWhole),
            .link = std::min(static_cast<uint32_t>(word >> 16 & 0xffff), kWhole),
            .link_megabytes_per_second = static_cast<uint32_t>(word >> 32 & kMostMegabytes)};
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
      load.link_megabytes_per_second =
          static_cast<uint32_t>(std::clamp<uint64_t>(to.link_bytes_per_second / 1'000'000, 1, kMostMegabytes));
    }
    return load;
  }

 private:
  static constexpr uint32_t kMostNumber = 0xfff;
  static constexpr uint32_t kMostMegabytes = 0xfffff;

  static uint32_t ShareOf(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0 : static_cast<uint32_t>(std::min<uint64_t>(part * kWhole / whole, kWhole));
  }
};

}  // namespace gannet::rdma
