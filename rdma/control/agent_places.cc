// Decides which process may have which place: processes that return or take over a place, guests, and refusals.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "rdma/control/agent.h"
#include "rdma/rpc.h"

namespace gannet::rdma::control {
namespace {

constexpr uint64_t kLookAgainNs = 1'000'000;

}  // namespace

Status Agent::WaitForPlace(absl::Duration limit) const {
  for (const uint64_t deadline = NowNanos() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(limit));;) {
    {
      const std::lock_guard lock(mutex_);
      if (fellows_.has_value()) return absl::OkStatus();
      const Refusal& refusal = views_[0].refused_us;
      if (!refusal.reason.empty()) {
        const std::string what = absl::StrCat("node 0: ", refusal.reason);
        return refusal.kind == Refusal::kPlaceIsTaken ? absl::FailedPreconditionError(what)
                                                      : absl::PermissionDeniedError(what);
      }
    }
    if (NowNanos() >= deadline || stop_) {
      return absl::UnavailableError(absl::StrCat("node 0 is not there (", WhyDown(0), ")"));
    }
    SleepForNanos(kLookAgainNs);
  }
}

Status Agent::standing() const {
  const std::lock_guard lock(mutex_);
  if (!declined_.empty()) return absl::PermissionDeniedError(declined_);
  Status refused = absl::OkStatus();
  for (size_t peer = 0; peer < views_.size(); ++peer) {
    if (peer == options_.self || IsGuest(static_cast<NodeId>(peer))) continue;
    if (views_[peer].session != 0) return absl::OkStatus();
    const std::string& reason = views_[peer].refused_us.reason;
    if (!reason.empty()) refused = absl::PermissionDeniedError(absl::StrCat("node ", peer, ": ", reason));
  }
  return refused;
}

bool Agent::KnowsOfGuest(NodeId guest) const {
  if (generation(guest) != 0) return true;
  const std::lock_guard lock(mutex_);
  return fellows_.has_value() && std::count(fellows_->begin(), fellows_->end(), guest) > 0;
}

std::string Agent::last_refusal() const {
  const std::lock_guard lock(mutex_);
  return last_refusal_;
}

// Guests go to node 0 first: it alone assigns the places of guests.
bool Agent::MayTry(const Outgoing& to) const {
  return to.at.has_value() && (has_place_ || to.peer == 0);
}

std::string Agent::JudgeServer(NodeId server, uint64_t incarnation) const {
  const std::lock_guard lock(mutex_);
  const uint64_t seen = views_[server].incarnation;
  if (options_.may_return || IsGuest(server) || seen == 0 || seen == incarnation) return "";
  return absl::StrCat("node ", server, " was in this cluster before, as another process; its data went with that");
}

Refusal Agent::JudgeClient(const Introduction& client) const {
  const std::lock_guard lock(mutex_);
  const PeerView& view = views_[client.from];
  if (view.incarnation == 0 || view.incarnation == client.incarnation) return {};
  if (IsGuest(client.from)) {
    if (view.session == 0) return {};
    return {.kind = Refusal::kPlaceIsTaken, .reason = absl::StrCat("another process has place ", client.from)};
  }
  if (options_.may_return) return {};
  return {.reason = absl::StrCat("node ", client.from, " was in this cluster before, as another process; its data ",
                                 "went with that")};
}

// News for a guest: the addresses of the other guests. | number 2 | address, as a string |...
std::vector<std::byte> Agent::NewsFor(NodeId peer) const {
  if (!IsGuest(peer)) return {};
  std::vector<std::byte> news(kMaxNewsBytes);
  WireWriter writer(news);
  const std::lock_guard lock(mutex_);
  const auto nodes = static_cast<NodeId>(views_.size());
  for (NodeId guest = 0; guest < nodes; ++guest) {
    if (!IsGuest(guest) || guest == options_.self || guest == peer || views_[guest].session == 0) continue;
    const std::string& at = views_[guest].about.listens_at;
    if (writer.room() < sizeof(NodeId) + sizeof(uint32_t) + at.size()) break;
    writer.PutU16(guest);
    writer.PutString(at);
  }
  news.resize(writer.size());
  return news;
}

void Agent::TakeNews(NodeId from, std::span<const std::byte> news) {
  WireReader reader(news);
  std::vector<NodeId> guests;
  while (reader.remaining() > 0) {
    const NodeId guest = reader.GetU16();
    const std::string at(reader.GetString());
    if (!reader.ok() || guest >= views_.size() || !IsGuest(guest)) return;
    guests.push_back(guest);
    const StatusOr<Endpoint> endpoint = ParseNumericEndpoint(at);
    if (endpoint.ok() && guest < outgoing_.size()) outgoing_[guest].at = *endpoint;
  }
  if (from != 0) return;
  const std::lock_guard lock(mutex_);
  fellows_ = std::move(guests);
}

void Agent::RecordRefusal(const std::string& reason) {
  ++refusals_;
  const std::lock_guard lock(mutex_);
  last_refusal_ = reason;
}

}  // namespace gannet::rdma::control
