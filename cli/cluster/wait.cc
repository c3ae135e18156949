#include "cli/cluster/wait.h"

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "cli/cluster/hello.h"
#include "cli/cluster/open_fabric.h"

namespace gannet::cli {
namespace {

constexpr uint64_t kPollNanos = 5'000'000;
constexpr uint64_t kNoteNanos = 1'000'000'000;

std::string NameOf(const ClusterConfig& config, int server) {
  return absl::StrCat("server ", server, " (", config.servers[static_cast<size_t>(server)].name, ")");
}

// `missing` gives who is still waited for, "" for nobody, or an error that no waiting cures.
Status WaitWhile(const Patience& patience, const char* what, const std::function<StatusOr<std::string>()>& missing) {
  const uint64_t deadline = NowNanos() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(patience.at_most));
  std::string told;
  for (;;) {
    const StatusOr<std::string> now = missing();
    if (!now.ok()) return now.status();
    if (now->empty()) return absl::OkStatus();
    if (patience.stop->load(std::memory_order_relaxed)) {
      return absl::CancelledError(absl::StrCat("stopped while waiting for ", *now, what));
    }
    if (NowNanos() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat("waited ", absl::FormatDuration(patience.at_most), " for ", *now,
                                                      what, "; start it with `gannet serve`, or wait longer (--wait)"));
    }
    if (*now != told) {
      told = *now;
      patience.note(absl::StrCat("waiting for ", told, what));
    }
    SleepForNanos(kPollNanos);
  }
}

}  // namespace

std::string MissingServers(const rdma::Fabric& fabric, const ClusterConfig& config) {
  std::string missing;
  for (int id = 0; id < config.num_servers(); ++id) {
    if (fabric.Alive(static_cast<rdma::NodeId>(id))) continue;
    absl::StrAppend(&missing, missing.empty() ? "" : ", ", NameOf(config, id));
  }
  return missing;
}

void RefusalNotes::Look(const rdma::VerbsFabric& fabric, const Patience& patience) {
  const rdma::VerbsStatistics now = fabric.statistics();
  if (now.refused == told_ || NowNanos() < next_ns_) return;
  patience.note(absl::StrCat("refused ", now.refused - told_, " connections; the last because: ", now.last_refusal));
  told_ = now.refused;
  next_ns_ = NowNanos() + kNoteNanos;
}

Status WaitUntilAttached(const rdma::Fabric& fabric, const rdma::VerbsFabric* verbs, const ClusterConfig& config,
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
  const Status waited = WaitWhile(patience, " to come", [&]() -> StatusOr<std::string> {
    last = attempt();
    if (absl::IsUnavailable(last)) return who;
    if (!last.ok()) return last;
    return std::string();
  });
  if (!absl::IsDeadlineExceeded(waited)) return waited;
  return absl::DeadlineExceededError(absl::StrCat(absl::string_view(waited.message()), " (", last.message(), ")"));
}

Status WaitUntilReady(txn::Session& session, const ClusterConfig& config, const Patience& patience) {
  const uint64_t configuration = config.Hash();
  int next = 0;  // those before it are ready
  return WaitWhile(patience, " to load", [&]() -> StatusOr<std::string> {
    for (; next < config.num_servers(); ++next) {
      const auto id = static_cast<rdma::NodeId>(next);
      const StatusOr<ServerState> state = SayHello(session, id, configuration, CallTimeout(config));
      if (state.ok() && *state == ServerState::kReady) continue;
      if (state.ok() && *state == ServerState::kLeaving) {
        return absl::UnavailableError(absl::StrCat(NameOf(config, next), " is about to leave"));
      }
      if (!state.ok() && !absl::IsDeadlineExceeded(state.status())) {
        return absl::Status(state.status().code(),
                            absl::StrCat(NameOf(config, next), ": ", absl::string_view(state.status().message())));
      }
      return NameOf(config, next);
    }
    return std::string();
  });
}

}  // namespace gannet::cli
