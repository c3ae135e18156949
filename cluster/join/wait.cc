#include "cluster/join/wait.h"

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "cluster/join/hello.h"
#include "cluster/join/open_fabric.h"

namespace gannet::cluster {
namespace {

constexpr uint64_t kPollNanos = 5'000'000;
constexpr uint64_t kNoteNanos = 1'000'000'000;

// Waits until `missing` returns "". `missing` returns the names of those that are still missing, or an error that ends
// the wait.
Status WaitWhile(const Patience& patience, const char* what, const std::function<StatusOr<std::string>()>& missing) {
  const uint64_t deadline = NowNanos() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(patience.at_most));
  std::string told;
  for (;;) {
    const StatusOr<std::string> now = missing();
    if (!now.ok()) return now.status();
    if (now->empty()) return absl::OkStatus();
    if (patience.stopped()) {
      return absl::CancelledError(absl::StrCat("stopped while waiting for ", *now, what));
    }
    if (NowNanos() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("waited ", absl::FormatDuration(patience.at_most), " for ", *now, what, "; ", patience.advice));
    }
    if (*now != told) {
      told = *now;
      patience.Note(absl::StrCat("waiting for ", told, what));
    }
    SleepForNanos(kPollNanos);
  }
}

}  // namespace

std::string MissingServers(const rdma::Fabric& fabric, const Config& config) {
  std::string missing;
  for (int id = 0; id < config.num_servers(); ++id) {
    if (fabric.Alive(static_cast<rdma::NodeId>(id))) continue;
    absl::StrAppend(&missing, missing.empty() ? "" : ", ", config.NameOfNode(id));
  }
  return missing;
}

void RefusalNotes::Look(const rdma::VerbsFabric& fabric, const Patience& patience) {
  const rdma::VerbsStatistics now = fabric.statistics();
  if (now.refused == told_ || NowNanos() < next_ns_) return;
  patience.Note(absl::StrCat("refused ", now.refused - told_, " connections; the last because: ", now.last_refusal));
  told_ = now.refused;
  next_ns_ = NowNanos() + kNoteNanos;
}

Status WaitUntilAttached(const rdma::Fabric& fabric, const rdma::VerbsFabric* verbs, const Config& config,
                         const Patience& patience) {
  RefusalNotes notes;
  return WaitWhile(patience, " to come", [&]() -> StatusOr<std::string> {
    if (verbs != nullptr) {
      notes.Look(*verbs, patience);
      if (const Status standing = verbs->standing(); !standing.ok()) {
        return absl::FailedPreconditionError(standing.message());
      }
    }
    return MissingServers(fabric, config);
  });
}

Status WaitUntilAvailable(const std::string& who, const std::function<Status()>& attempt, const Patience& patience) {
  Status last;
  Status waited = WaitWhile(patience, " to come", [&]() -> StatusOr<std::string> {
    last = attempt();
    if (absl::IsUnavailable(last)) return who;
    if (!last.ok()) return last;
    return std::string();
  });
  if (!absl::IsDeadlineExceeded(waited)) return waited;
  return absl::DeadlineExceededError(absl::StrCat(absl::string_view(waited.message()), " (", last.message(), ")"));
}

Status WaitUntilReady(rdma::Channel& channel, coro::Worker& worker, const Config& config, const Patience& patience) {
  const uint64_t configuration = config.Hash();
  int next = 0;  // those before it are ready
  return WaitWhile(patience, " to load", [&]() -> StatusOr<std::string> {
    for (; next < config.num_servers(); ++next) {
      const auto id = static_cast<rdma::NodeId>(next);
      const StatusOr<ServerState> state = SayHello(channel, worker, id, configuration, CallTimeout(config));
      if (state.ok() && *state == ServerState::kReady) continue;
      if (state.ok() && *state == ServerState::kLeaving) {
        return absl::UnavailableError(absl::StrCat(config.NameOfNode(next), " is about to leave"));
      }
      if (!state.ok() && !absl::IsDeadlineExceeded(state.status())) {
        return absl::Status(state.status().code(),
                            absl::StrCat(config.NameOfNode(next), ": ", absl::string_view(state.status().message())));
      }
      return config.NameOfNode(next);
    }
    return std::string();
  });
}

}  // namespace gannet::cluster
