// CPU costs in picoseconds per unit. "Here" is the machine on which the project is developed: a virtual machine whose
// dependent cache miss takes 160-175 ns. "There" is the testbed of XStore (OSDI'20; 2 x 12-core Xeon E5-2650 v4). A
// cost without a source is an estimate. docs/references.md lists the papers.
#include "rdma/sim/simulation.h"

namespace gannet::rdma::sim {
namespace {

constexpr uint32_t kNano = 1000;

}  // namespace

CpuCosts CpuCosts::Default() {
  CpuCosts costs;
  const auto set = [&costs](Cost kind, uint32_t picoseconds) {
    costs.picoseconds_per_unit[static_cast<size_t>(kind)] = picoseconds;
  };
  // An empty ibv_poll_cq reads one line of the completion queue that is in the cache. A round of the worker's loop
  // takes about 15 ns here.
  set(Cost::kWorkerRound, 30 * kNano);
  // Estimates: a work request of 64-128 bytes with its share of a doorbell, and its completion.
  set(Cost::kPostVerb, 50 * kNano);
  set(Cost::kCompletion, 30 * kNano);
  // 24 threads there serve about 20-24 M GETs/s by RPC (XStore, sections 3 and 7.2), so 1.0-1.2 us each; the rest of
  // that time is seven to eight index steps (below). A lower bound: eRPC handles up to 10 M small RPCs/s on a core,
  // both ends together (its abstract, NSDI'19).
  set(Cost::kHandleCall, 400 * kNano);
  // "One CPU core can perform 43 million 64-byte random reads per second ... 1.8M reqs/s for traversing an 8-level
  // B+tree" (XStore, section 3): 70 ns a level, plus the search in the node.
  set(Cost::kIndexStep, 80 * kNano);
  // Two multiply-adds and a bound on cached data. XStore's whole client part of a lookup is 350 ns (Fig. 12b).
  set(Cost::kModelStep, 10 * kNano);
  // 8 us for a model of 200 keys (XStore, section 7.5).
  set(Cost::kTrainKey, 40 * kNano);
  // 64 bytes at about 10 GB/s from memory that is read in sequence.
  set(Cost::kRecordLine, 6 * kNano);
  // An empty transaction here (bench/txn_bench.cc).
  set(Cost::kTransaction, 150 * kNano);
  // crc32_iscsi and a copy: about 8 GB/s together here.
  set(Cost::kLogByte, 125);
  return costs;
}

// Two threads here that hand a word to each other, each on a core of its own (bench/sim_bench.cc): 95 to 120 ns a
// time.
void CpuCosts::AddContendedLines() {
  picoseconds_per_unit[static_cast<size_t>(Cost::kTakenLine)] = 100 * kNano;
}

}  // namespace gannet::rdma::sim
