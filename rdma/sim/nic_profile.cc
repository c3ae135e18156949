#include "rdma/sim/nic_profile.h"

namespace gannet::rdma::sim {
namespace {

constexpr double kMillion = 1e6;
// Bytes per second: the data rate of EDR, 4 lanes of 25.78125 Gb/s, after 64/66 coding (ConnectX-4 VPI user manual,
// table 4).
constexpr double k100Gigabit = 12.5e9;
// Local route, base transport, RDMA extended and acknowledge headers, and checksums: 42 bytes for a READ's request, 30
// for its response. This is the mean.
constexpr uint32_t kInfiniBandHeaderBytes = 36;

NicProfile ConnectX4() {
  return {
      .name = "cx4-100g",
      .source =
          "latency: about 2 us for a small READ (XStore, OSDI'20, Fig. 12b: two READs and 0.35 us of CPU). "
          "served: XStore, OSDI'20, section 7.2: 82 M GETs/s of two READs over two NICs, 82 M READs/s each. "
          "hot lines: the same section: GETs of Zipf keys are 18% slower than of uniform ones; twice the time of a "
          "READ "
          "gives that in the model. sent: an estimate, a little below what is served. atomics: an estimate, 2.5 M/s of "
          "one word.",
      .doorbell_nanos = 300,
      .completion_nanos = 400,
      .wire_nanos = 350,
      .memory_nanos = 500,
      .same_word_nanos = 400,
      .hot_line_nanos = 12,
      .verbs_per_second = 75 * kMillion,
      .inbound_per_second = 82 * kMillion,
      .atomics_per_second = 25 * kMillion,
      .bandwidth = k100Gigabit,
      .header_bytes = kInfiniBandHeaderBytes,
      .cpu_coherent_atomics = false,
  };
}

// A machine with two NICs, each serving half of the threads, modelled as one NIC that is twice as fast.
NicProfile TwoConnectX4() {
  NicProfile nic = ConnectX4();
  nic.name = "2x-cx4-100g";
  nic.source = "two of cx4-100g: every machine of XStore's testbed (OSDI'20, section 7.1) has two";
  nic.hot_line_nanos /= 2;
  nic.verbs_per_second *= 2;
  nic.inbound_per_second *= 2;
  nic.atomics_per_second *= 2;
  nic.bandwidth *= 2;
  return nic;
}

// The rates of another card with a small READ that is served `served` times per second: those of cx4-100g, in
// proportion.
void ScaleRates(double served, NicProfile* nic) {
  const double factor = served / nic->inbound_per_second;
  nic->hot_line_nanos /= factor;
  nic->verbs_per_second *= factor;
  nic->atomics_per_second *= factor;
  nic->inbound_per_second = served;
}

NicProfile ConnectX5() {
  NicProfile nic = ConnectX4();
  nic.name = "cx5-100g";
  nic.source =
      "served: Deft, EuroSys'25: 91 M READs/s of 128 bytes over two NICs, 45.5 M/s each. This conflicts with XStore's "
      "82 "
      "M/s of an older card; the papers do not say why. All other rates are estimates: those of cx4-100g in "
      "proportion. "
      "latency: an estimate, a small READ in about 1.7 us.";
  nic.doorbell_nanos = 250;
  nic.completion_nanos = 350;
  nic.wire_nanos = 300;
  nic.memory_nanos = 450;
  nic.same_word_nanos = 350;
  ScaleRates(45.5 * kMillion, &nic);
  return nic;
}

NicProfile ConnectX6() {
  NicProfile nic = ConnectX5();
  nic.name = "cx6-100g";
  nic.source =
      "served: DMTree, FAST'26: one server's NIC (RoCE) serves 49.7 to 53.1 M READs/s of one small entry; this is the "
      "middle. It conflicts with XStore's 82 M/s of an older card, and with the 215 M messages/s that NVIDIA's "
      "ConnectX-6 "
      "user manual names as the most. All other rates are estimates: those of cx4-100g in proportion. latency: an "
      "estimate, a small READ in about 1.6 us.";
  nic.doorbell_nanos = 230;
  nic.completion_nanos = 330;
  nic.wire_nanos = 290;
  nic.memory_nanos = 420;
  nic.same_word_nanos = 330;
  ScaleRates(51.4 * kMillion, &nic);
  return nic;
}

NicProfile ConnectX6Of200Gigabit() {
  NicProfile nic = ConnectX6();
  nic.name = "cx6-200g";
  nic.source = "cx6-100g with a link of 200 Gb/s (NVIDIA's ConnectX-6 user manual, introduction)";
  nic.bandwidth = 2 * k100Gigabit;
  return nic;
}

// All rates are 0: no limits.
NicProfile Ideal() {
  return {
      .name = "ideal",
      .source = "no machine: 1 us, no limits, for tests",
      .doorbell_nanos = 50,
      .completion_nanos = 50,
      .wire_nanos = 300,
      .memory_nanos = 300,
      .cpu_coherent_atomics = true,
  };
}

}  // namespace

uint64_t NicProfile::read_nanos() const {
  const auto one = [](double per_second) { return per_second > 0 ? 1e9 / per_second : 0; };
  const double bytes = 64 + 2.0 * header_bytes;
  const double served = one(verbs_per_second) + one(inbound_per_second) + (bandwidth > 0 ? bytes * 1e9 / bandwidth : 0);
  return doorbell_nanos + 2 * wire_nanos + memory_nanos + completion_nanos + static_cast<uint64_t>(served);
}

const std::vector<NicProfile>& NicProfiles() {
  static const std::vector<NicProfile> profiles{ConnectX4(), TwoConnectX4(),          ConnectX5(),
                                                ConnectX6(), ConnectX6Of200Gigabit(), Ideal()};
  return profiles;
}

std::optional<NicProfile> FindNicProfile(std::string_view name) {
  for (const NicProfile& profile : NicProfiles()) {
    if (profile.name == name) return profile;
  }
  return std::nullopt;
}

}  // namespace gannet::rdma::sim
