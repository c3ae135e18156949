#include "rdma/control/agent.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "rdma/rpc.h"

namespace gannet::rdma::control {
namespace {

constexpr uint64_t kSelfGeneration = 1;

}  // namespace

std::vector<std::byte> Agent::About::Encode() const {
  std::vector<std::byte> bytes(2 * sizeof(uint32_t) + listens_at.size() + payload.size());
  WireWriter writer(bytes);
  writer.PutString(listens_at);
  writer.PutBytes(payload);
  return bytes;
}

StatusOr<Agent::About> Agent::About::Decode(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  About about;
  about.listens_at = std::string(reader.GetString());
  const std::span<const std::byte> payload = reader.GetBytes();
  GANNET_RETURN_IF_ERROR(reader.Finish());
  about.payload.assign(payload.begin(), payload.end());
  return about;
}

StatusOr<std::unique_ptr<Agent>> Agent::Start(AgentOptions options, Observer* observer) {
  if (options.self >= options.nodes.size() || options.nodes.size() != options.shape.num_nodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", options.self, " of ", options.nodes.size(), " addresses does not exist"));
  }
  const auto has_address = [](const Place& place) { return place.has_value(); };
  if (!options.nodes[0].has_value() || !std::is_partitioned(options.nodes.begin(), options.nodes.end(), has_address)) {
    return absl::InvalidArgumentError("the nodes without an address, which are guests, must be the last, and not all");
  }
  if (options.secret.empty()) return absl::InvalidArgumentError("the cluster has no secret: set one");
  Place at = options.nodes[options.self].has_value() ? options.nodes[options.self] : options.listen;
  if (!at.has_value()) return absl::InvalidArgumentError("a guest needs an address to listen at");
  const StatusOr<int> listener = Listen(&*at);
  if (!listener.ok()) return listener.status();
  options.listen = at;
  return std::unique_ptr<Agent>(new Agent(std::move(options), observer, *listener));
}

Agent::Agent(AgentOptions options, Observer* observer, int listener)
    : options_(std::move(options)),
      observer_(observer),
      listener_(listener),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      generations_(new std::atomic<uint64_t>[options_.nodes.size()]()),
      to_cut_(new std::atomic<uint64_t>[options_.nodes.size()]()),
      has_place_(!IsGuest(options_.self)),
      views_(options_.nodes.size()) {
  GANNET_CHECK(wake_ >= 0, "no eventfd: error %d", errno);
  for (NodeId peer = 0; peer < options_.self; ++peer) {
    outgoing_.emplace_back();
    outgoing_.back().peer = peer;
    outgoing_.back().at = options_.nodes[peer];
  }
  // A node is also its own peer: its queue pairs to itself need credentials.
  PeerView& self = views_[options_.self];
  FillRandom(self.key);
  self.about = {.listens_at = options_.listen->ToString(), .payload = options_.payload};
  self.session = sequence_++;
  generations_[options_.self].store(kSelfGeneration);
  thread_ = Thread("control", [this] { Run(); });
}

void Agent::RequestStop() {
  stop_.store(true);
  Wake();
}

void Agent::Wake() {
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);  // fails only if the thread is awake already
}

void Agent::Stop() {
  if (!thread_.joinable()) return;
  RequestStop();
  thread_.join();
}

Agent::~Agent() {
  Stop();
  close(wake_);
}

StatusOr<Agent::Details> Agent::details(NodeId peer) const {
  const std::lock_guard lock(mutex_);
  const uint64_t generation = generations_[peer].load();
  const PeerView& view = views_[peer];
  if (generation == 0) {
    return absl::UnavailableError(absl::StrCat("node ", peer, " is not there (", view.why_down, ")"));
  }
  return Details{.generation = generation, .payload = view.about.payload};
}

StatusOr<Credential> Agent::MakeCredentialFor(NodeId peer, uint16_t channel) {
  const std::lock_guard lock(mutex_);
  if (generations_[peer].load() == 0) return absl::UnavailableError(absl::StrCat("node ", peer, " is not there"));
  return MakeCredential(views_[peer].key, options_.self, channel, next_ticket_.fetch_add(1));
}

StatusOr<uint64_t> Agent::Admit(const Credential& credential) {
  const std::lock_guard lock(mutex_);
  if (credential.from >= views_.size() || views_[credential.from].session == 0) {
    return absl::PermissionDeniedError(absl::StrCat("node ", credential.from, " has no session"));
  }
  PeerView& view = views_[credential.from];
  GANNET_RETURN_IF_ERROR(view.book.Use(view.key, credential));
  return view.session;
}

bool Agent::CutOff(NodeId peer, uint64_t generation) {
  if (peer == options_.self) return false;
  if (this->generation(peer) != generation) return true;
  to_cut_[peer].store(generation);
  Wake();
  return false;
}

std::string Agent::WhyDown(NodeId peer) const {
  const std::lock_guard lock(mutex_);
  return views_[peer].why_down;
}

}  // namespace gannet::rdma::control
