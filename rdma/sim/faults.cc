#include "rdma/sim/faults.h"

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace gannet::rdma::sim {
namespace {

// The faults with a probability or fraction: name, field, and the strongest value that Draw gives. One table, so that
// all users see every fault.
template <class Visit>
void ForEach(Faults* faults, Visit visit) {
  visit("scatter_lines", &faults->scatter_lines, 0.5);
  visit("preempt", &faults->preempt, 0.02);
  visit("slow_completion", &faults->slow_completion, 0.05);
  visit("stuck_completion", &faults->stuck_completion, 0.0005);
  visit("lost_request", &faults->lost_request, 0.002);
  visit("lost_response", &faults->lost_response, 0.002);
  visit("disconnect", &faults->disconnect, 0.0005);
  visit("clock_drift", &faults->clock_drift, 0.1);
}

// Visits the faults of disks, as above.
template <class Visit>
void ForEachOfDisks(Faults* faults, Visit visit) {
  visit("disk_write_error", &faults->disk_write_error, 0.05);
  visit("disk_short_write", &faults->disk_short_write, 0.05);
  visit("disk_sync_error", &faults->disk_sync_error, 0.05);
}

// Draws both numbers whether the fault is on or not, so that one fault does not shift the random numbers of the others.
void DrawProbability(Random* random, double* probability, double strongest) {
  const bool on = random->OneIn(2);
  const double strength = random->Unit() * random->Unit() * strongest;
  *probability = on ? strength : 0;
}

constexpr uint64_t kMillisecond = 1'000'000;

}  // namespace

bool Faults::Any() const {
  bool any = pause_every != 0 || cut_every != 0 || clock_skew_nanos != 0;
  Faults copy = *this;
  ForEach(&copy, [&any](const char*, const double* probability, double) { any = any || *probability > 0; });
  return any || OfDisks();
}

bool Faults::OfDisks() const {
  bool any = disk_full_every != 0;
  Faults copy = *this;
  ForEachOfDisks(&copy, [&any](const char*, const double* probability, double) { any = any || *probability > 0; });
  return any;
}

std::string Faults::ToString() const {
  std::string text;
  const auto add = [&text](const char* name, auto value) {
    if (value != 0) absl::StrAppend(&text, text.empty() ? "" : " ", name, "=", value);
  };
  Faults copy = *this;
  ForEach(&copy, [&add](const char* name, const double* probability, double) { add(name, *probability); });
  add("pause_every", pause_every);
  add("cut_every", cut_every);
  add("clock_skew_nanos", clock_skew_nanos);
  ForEachOfDisks(&copy, [&add](const char* name, const double* probability, double) { add(name, *probability); });
  add("disk_full_every", disk_full_every);
  return text.empty() ? "none" : text;
}

Faults Faults::Draw(Random* random) {
  Faults faults;
  ForEach(&faults, [random](const char*, double* probability, double strongest) {
    DrawProbability(random, probability, strongest);
  });
  const bool pauses = random->OneIn(3);
  const uint64_t pause_every = (5 + random->Below(50)) * kMillisecond;
  const bool cuts = random->OneIn(3);
  const uint64_t cut_every = (5 + random->Below(50)) * kMillisecond;
  const bool skew = random->OneIn(2);
  const auto skew_nanos = static_cast<int64_t>(random->Below(100 * kMillisecond));
  if (pauses) faults.pause_every = pause_every;
  if (cuts) faults.cut_every = cut_every;
  if (skew) faults.clock_skew_nanos = skew_nanos;
  const bool disks = random->OneIn(2);
  Faults of_disks;
  ForEachOfDisks(&of_disks, [random](const char*, double* probability, double strongest) {
    DrawProbability(random, probability, strongest);
  });
  const bool full = random->OneIn(3);
  const uint64_t full_every = (2 + random->Below(20)) * kMillisecond;
  if (disks) {
    faults.disk_write_error = of_disks.disk_write_error;
    faults.disk_short_write = of_disks.disk_short_write;
    faults.disk_sync_error = of_disks.disk_sync_error;
    if (full) faults.disk_full_every = full_every;
  }
  return faults;
}

}  // namespace gannet::rdma::sim
