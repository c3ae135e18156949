// Nodes and channels count this. It is plain data for reports, for the choice of paths and for metrics.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gannet::rdma {

// Counts of the verbs of a channel. They are the same on every fabric and machine, so results are compared by them.
struct VerbCounters {
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t compare_and_swaps = 0;
  uint64_t fetch_and_adds = 0;
  uint64_t calls = 0;
  uint64_t bytes_out = 0;    // payload sent: WRITEs, CALL requests, operands of atomics (8 or 16 each)
  uint64_t bytes_in = 0;     // payload received: READs, CALL responses, results of atomics (8 each)
  uint64_t round_trips = 0;  // a batch posted with one doorbell is one, of any length; a CALL is one
  uint64_t retries = 0;      // operations repeated because they returned torn or locked data

  VerbCounters& operator+=(const VerbCounters& other) {
    reads += other.reads;
    writes += other.writes;
    compare_and_swaps += other.compare_and_swaps;
    fetch_and_adds += other.fetch_and_adds;
    calls += other.calls;
    bytes_out += other.bytes_out;
    bytes_in += other.bytes_in;
    round_trips += other.round_trips;
    retries += other.retries;
    return *this;
  }
  friend VerbCounters operator-(VerbCounters a, const VerbCounters& b) {
    a.reads -= b.reads;
    a.writes -= b.writes;
    a.compare_and_swaps -= b.compare_and_swaps;
    a.fetch_and_adds -= b.fetch_and_adds;
    a.calls -= b.calls;
    a.bytes_out -= b.bytes_out;
    a.bytes_in -= b.bytes_in;
    a.round_trips -= b.round_trips;
    a.retries -= b.retries;
    return a;
  }
};

// How long the threads of a node have served calls, and its link and its NIC were busy: a NodeLoad is made of this.
// Sums since the node was attached. Times are in nanoseconds of the node's clock, virtual in a simulation. The sums
// never decrease.
struct ServedTime {
  uint64_t server_threads = 0;  // their number now
  uint64_t server_nanos = 0;    // that server threads spent on calls
  uint64_t worker_nanos = 0;    // that workers spent on calls, in Node::ServePending
  // The node's link, where the fabric can tell: its speed in each direction, and how long each direction was busy.
  // A speed of 0: not known.
  uint64_t link_bytes_per_second = 0;
  uint64_t link_out_nanos = 0;
  uint64_t link_in_nanos = 0;
  // The engine of the NIC that serves READs, WRITEs and messages of others, where the fabric can tell: the time of one
  // small verb in picoseconds (0: not known), and how long it was busy.
  uint64_t engine_picos_per_verb = 0;
  uint64_t engine_nanos = 0;
};

// Memory of a node (slab.h).
struct SlabStatistics {
  uint64_t capacity_bytes = 0;  // of the heap, or its limit
  uint64_t carved_bytes = 0;    // ever taken from the heap
  uint64_t free_bytes = 0;      // carved and now free, in the allocator, joined or not, and in all caches
  uint64_t trimmed_bytes = 0;   // of these: given back to the system
  // The first two values for the part that other nodes may only READ.
  uint64_t read_only_capacity_bytes = 0;
  uint64_t read_only_carved_bytes = 0;
};

// NodeLoad: how busy a node is, as it announces itself to all others (EpochManager::LoadOf). One word, so that it comes
// with the READ of the node's slots.
//
//   | number 10 | link speed 14 | link busy 10 | time of a verb 10 | engine busy 10 | servers busy 10 |   bits
//
// Shares are in thousandths, the speed in units of 100 MB/s, the time in eighths of a nanosecond.
// The number counts the announcements and is never 0, so 0 stands for none, and two announcements of the same load
// differ.
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
