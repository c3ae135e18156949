// Counts of the verbs of a channel. They are the same on every fabric and machine, so results are compared by them.
#pragma once

#include <cstdint>

namespace gannet::rdma {

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

}  // namespace gannet::rdma
