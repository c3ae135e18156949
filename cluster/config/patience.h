// How long a process of a cluster waits for others, and where it reports its progress.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "absl/time/time.h"

namespace gannet::cluster {

struct Patience {
  absl::Duration at_most = absl::Minutes(5);
  // Advice for the user if other processes did not come in time, for that error's text. Programs name their flags here.
  std::string advice = "start it, or wait longer";
  // Set by another thread or a signal handler; waiting and serving then end soon. May be null; must outlive every
  // object that was given this Patience.
  const std::atomic<bool>* stop = nullptr;
  // Called with each news in one line, such as "waiting for server 1 (beta) to come", on the thread that waits or
  // serves. May be null.
  std::function<void(const std::string&)> note = nullptr;

  bool stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
  void Note(const std::string& what) const {
    if (note) note(what);
  }
};

}  // namespace gannet::cluster
