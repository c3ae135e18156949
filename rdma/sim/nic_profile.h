// The parameters of a simulated NIC: the source of virtual time for verbs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gannet::rdma::sim {

// Times in nanoseconds, rates per second, bandwidth in bytes per second and direction; a rate of 0 is no limit.
// "Queued" below means that one is handled after the other. How the parameters act:
//
//   verb      The issuer's NIC takes it after doorbell_nanos (queued, 1 / verbs_per_second each) and sends it (queued,
//             (bytes + header_bytes) / bandwidth). The wire takes wire_nanos. The target's NIC serves it (queued,
//             1 / inbound_per_second each), accesses memory (memory_nanos), and answers (queued, by bandwidth; then
//             wire_nanos). The issuer's CPU sees the completion completion_nanos later.
//   hot line  A READ or WRITE takes the target's NIC hot_line_nanos longer if it begins at a line at which another one
//             began less than memory_nanos before.
//   atomics   the same, but 1 / atomics_per_second each, and same_word_nanos between two of the same word
//   messages  A CALL is a WRITE into the server's ring, found by a polling thread, and a WRITE back.
//
// So an unloaded 64-byte READ takes read_nanos() in all.
struct NicProfile {
  std::string_view name;
  std::string_view source;  // of the numbers
  uint64_t doorbell_nanos = 0;
  uint64_t completion_nanos = 0;  // from the answer's arrival until the issuer's CPU can see it
  uint64_t wire_nanos = 0;        // one way, including the switch
  uint64_t memory_nanos = 0;      // memory access of the target's NIC over PCIe
  uint64_t same_word_nanos = 0;
  double hot_line_nanos = 0;
  double verbs_per_second = 0;    // sent by a NIC
  double inbound_per_second = 0;  // served by a NIC, without CPU
  double atomics_per_second = 0;
  double bandwidth = 0;
  uint32_t header_bytes = 0;  // of each packet on the wire
  bool cpu_coherent_atomics = false;

  // Latency of an unloaded 64-byte READ.
  uint64_t read_nanos() const;
};

// cx4-100g, 2x-cx4-100g (a machine of XStore's testbed, its two NICs modelled as one), cx5-100g, cx6-100g, cx6-200g,
// and `ideal` (1 us, no limits) for tests. The rates of different cards are from different papers, and do not fit
// together: the oldest card is the fastest (docs/simulation.md). So a figure on one card says nothing about another.
const std::vector<NicProfile>& NicProfiles();
std::optional<NicProfile> FindNicProfile(std::string_view name);

}  // namespace gannet::rdma::sim
