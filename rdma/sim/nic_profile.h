// What a NIC and a CPU are in the model: the numbers that virtual time is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gannet::rdma::sim {

// Times in nanoseconds, rates per second, bandwidth in bytes per second and direction; a rate of 0 is no limit. How
// they act:
//
//   verb      the issuer's NIC takes it from the doorbell (doorbell_nanos, then 1 / verbs_per_second each, in turn),
//   sends
//             it (bytes / bandwidth, in turn; header_bytes each), the wire takes wire_nanos, the target's NIC serves it
//             (1 / inbound_per_second each, in turn), accesses memory, answers (bytes / bandwidth, in turn;
//             wire_nanos).
//   atomics   as above, but 1 / atomics_per_second each in turn, and same_word_nanos between two of the same word.
//   messages  a CALL is a WRITE into the server's ring, found by a polling thread, and a WRITE back.
//
// An unloaded 64-byte READ so takes read_nanos() in all.
struct NicProfile {
  std::string_view name;
  std::string_view source;  // where the numbers are from
  uint64_t doorbell_nanos = 0;
  uint64_t completion_nanos = 0;  // until the issuer's CPU can see it
  uint64_t wire_nanos = 0;        // one way, with the switch
  uint64_t memory_nanos = 0;      // the target's NIC over PCIe
  uint64_t same_word_nanos = 0;
  double verbs_per_second = 0;    // that a NIC sends
  double inbound_per_second = 0;  // that a NIC serves, without CPU
  double atomics_per_second = 0;
  double bandwidth = 0;
  uint32_t header_bytes = 0;  // of each packet on the wire
  bool cpu_coherent_atomics = false;

  // What an unloaded 64-byte READ takes in all.
  uint64_t read_nanos() const;
};

// cx4-100g, 2x-cx4-100g (a machine of XStore's testbed, its NICs taken as one), cx5-100g, cx6-200g, and `ideal` (1 us,
// no limits) for tests.
const std::vector<NicProfile>& NicProfiles();
std::optional<NicProfile> FindNicProfile(std::string_view name);

}  // namespace gannet::rdma::sim
