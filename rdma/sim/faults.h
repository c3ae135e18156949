// Faults of a simulated rack, each with its probability or schedule. A probability or interval of 0 turns it off.
#pragma once

#include <cstdint>
#include <string>

namespace gannet {
class Random;
}

namespace gannet::rdma::sim {

// Probabilities are per event, times in nanoseconds of virtual time.
struct Faults {
  // --- memory: what the contract of fabric.h allows ---
  double scatter_lines = 0;  // of a READ or WRITE: its lines are accessed in random order within `scatter_nanos`
  uint64_t scatter_nanos = 2'000;
  double preempt = 0;  // at a PreemptionPoint: the thread loses its core for up to `preempt_nanos`
  uint64_t preempt_nanos = 5'000;

  // --- network ---
  double slow_completion = 0;  // of a verb or message: up to `slow_nanos` late
  uint64_t slow_nanos = 50'000;
  double stuck_completion = 0;  // of a verb or message: up to `stuck_nanos` late
  uint64_t stuck_nanos = 5'000'000;
  double lost_request = 0;   // of a CALL: it never arrives
  double lost_response = 0;  // of a CALL: it was served, but its response is lost
  // A verb breaks its queue pair: all verbs of that channel to that node which are in flight complete with Unavailable.
  // Each may have taken effect or not, but never in part: a WRITE that has begun ends. The next verb gets a new
  // connection.
  double disconnect = 0;

  // --- nodes (means of exponential intervals; 0: never) ---
  uint64_t pause_every = 0;  // all threads of one node stand still for up to `pause_nanos` (as in a paused VM)
  uint64_t pause_nanos = 2'000'000;
  uint64_t cut_every = 0;  // one direction of one link, for up to `cut_nanos`: verbs fail, messages are lost
  uint64_t cut_nanos = 3'000'000;
  // --- disks, of one node or all (log/file/simulated/faulty_file_system.h; the owner of the disks applies these to
  // them) ---
  double disk_write_error = 0;   // of a write
  double disk_short_write = 0;   // of a write: a part of it is written, and it fails
  double disk_sync_error = 0;    // of a sync of a file or directory: some of the unsynced writes are lost
  uint64_t disk_full_every = 0;  // mean of exponential intervals; 0: never. Lasts up to `disk_full_nanos`
  uint64_t disk_full_nanos = 3'000'000;

  // --- clocks ---
  // Each clock keeps the skew and drift that it got when the simulation began.
  int64_t clock_skew_nanos = 0;  // each node's clock is off by up to this, either way
  double clock_drift = 0;        // and runs faster or slower by up to this fraction

  bool Any() const;
  bool OfDisks() const;
  // Lists the faults that are on, for replay lines and traces: "scatter_lines=0.1 preempt=0.02 ...".
  std::string ToString() const;
  // Swarm testing: `random` draws for each fault whether it is on, and its strength.
  static Faults Draw(Random* random);
};

// Calls visit(name, pointer to the field) for every field.
template <class AnyFaults, class Visit>
void ForEachFault(AnyFaults* faults, Visit visit) {
  visit("scatter_lines", &faults->scatter_lines);
  visit("scatter_nanos", &faults->scatter_nanos);
  visit("preempt", &faults->preempt);
  visit("preempt_nanos", &faults->preempt_nanos);
  visit("slow_completion", &faults->slow_completion);
  visit("slow_nanos", &faults->slow_nanos);
  visit("stuck_completion", &faults->stuck_completion);
  visit("stuck_nanos", &faults->stuck_nanos);
  visit("lost_request", &faults->lost_request);
  visit("lost_response", &faults->lost_response);
  visit("disconnect", &faults->disconnect);
  visit("pause_every", &faults->pause_every);
  visit("pause_nanos", &faults->pause_nanos);
  visit("cut_every", &faults->cut_every);
  visit("cut_nanos", &faults->cut_nanos);
  visit("disk_write_error", &faults->disk_write_error);
  visit("disk_short_write", &faults->disk_short_write);
  visit("disk_sync_error", &faults->disk_sync_error);
  visit("disk_full_every", &faults->disk_full_every);
  visit("disk_full_nanos", &faults->disk_full_nanos);
  visit("clock_skew_nanos", &faults->clock_skew_nanos);
  visit("clock_drift", &faults->clock_drift);
}

}  // namespace gannet::rdma::sim
