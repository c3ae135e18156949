#include "rdma/verbs/verbs_channel.h"

#include <fcntl.h>
#include <poll.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "rdma/verb_check.h"

namespace gannet::rdma::verbs {
namespace {

constexpr int kPollBatch = 32;
constexpr uint64_t kDeadlineCheckNs = 100'000;
constexpr uint64_t kConnectAgainNs = 5'000'000;
constexpr int kLongestRestMs = 1;

// A link's number contains the node of its lane.
constexpr uint32_t kNodeBits = 10;
static_assert(kMaxVerbsNodes <= 1 << kNodeBits);

uint32_t NumberOf(uint32_t sequence, NodeId node) {
  return (sequence << kNodeBits | node) & 0x7fffffffu;
}
NodeId NodeOf(uint32_t number) {
  return static_cast<NodeId>(number & ((1u << kNodeBits) - 1));
}

Status Unavailable(NodeId node, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("node ", node, ": ", why, "; operations in flight may have been done or not"));
}

}  // namespace

StatusOr<std::unique_ptr<Channel>> VerbsChannel::Open(std::shared_ptr<NodeParts> parts, uint16_t index) {
  std::unique_ptr<VerbsChannel> channel(new VerbsChannel(std::move(parts), index));
  GANNET_RETURN_IF_ERROR(channel->staging_.Open(channel->parts_->core->pd()));
  GANNET_RETURN_IF_ERROR(channel->MakeQueue());
  return std::unique_ptr<Channel>(std::move(channel));
}

VerbsChannel::VerbsChannel(std::shared_ptr<NodeParts> parts, uint16_t index)
    : Channel(parts->core->id(), index, parts->core->memory().data(), parts->core->capabilities()),
      parts_(std::move(parts)),
      troubles_(static_cast<size_t>(parts_->core->num_nodes())),
      calls_(parts_->core->num_nodes(), &counters_, &finished_) {
  for (int i = 0; i < parts_->core->num_nodes(); ++i) {
    lanes_.emplace_back(static_cast<NodeId>(i), &staging_, capabilities().line_consistent,
                        static_cast<Lane::Listener*>(this));
  }
}

Status VerbsChannel::MakeQueue() {
  const NodeCore& core = *parts_->core;
  const int entries = core.num_nodes() * static_cast<int>(kSendDepth + kWindow);
  if (entries > core.limits().max_completions) {
    return absl::ResourceExhaustedError(absl::StrCat("a channel to ", core.num_nodes(), " nodes needs ", entries,
                                                     " completions; the card allows ", core.limits().max_completions));
  }
  if (core.options().worker_poll != absl::InfiniteDuration()) {
    events_.reset(ibv_create_comp_channel(core.context()));
    if (events_ == nullptr || fcntl(events_->fd, F_SETFL, fcntl(events_->fd, F_GETFL) | O_NONBLOCK) != 0) {
      return SystemError("cannot make a completion channel");
    }
  }
  cq_.reset(ibv_create_cq(core.context(), entries, nullptr, events_.get(), 0));
  return cq_ != nullptr ? absl::OkStatus() : SystemError("cannot make a completion queue");
}

VerbsChannel::~VerbsChannel() {
  for (Lane& each : lanes_) {
    if (each.link() != nullptr) parts_->connector->Release(each.Close());
  }
  parts_->numbers.Return(index());
}

bool VerbsChannel::Admits(const Operation& operation) const {
  return IsAllowed(operation, parts_->core->range(operation.remote.node())) && parts_->core->attached() &&
         agent().generation(operation.remote.node()) != 0;
}

// Called for a lane that has just been refreshed.
bool VerbsChannel::IsConnected(NodeId node, uint64_t connection) {
  const Lane& to = lane(node);
  return connection == 0 || connection == (to.link() != nullptr ? to.generation() : agent().generation(node));
}

bool VerbsChannel::Submit(std::span<Operation> operations, Completion* completion) {
  if (operations.empty()) return true;
  for (const Operation& operation : operations) {
    if (!Admits(operation)) [[unlikely]] {
      completion->status =
          ExplainRefusal(operation, parts_->core->range(operation.remote.node()), node(), parts_->core->attached());
      return true;
    }
    CountVerb(operation, &counters_);
  }
  ++counters_.round_trips;
  for (const Operation& operation : operations) {
    const NodeId node = operation.remote.node();
    Refresh(&lane(node));
    if (IsConnected(node, operation.connection)) continue;
    completion->status = ConnectionChanged(node);
    return true;
  }
  Batch* batch = NewBatch(completion);
  // The batch is held until all operations are added: a lane that breaks in between must not end the batch.
  batch->unfinished = 1;
  for (Operation& operation : operations) {
    const uint32_t key = operation.local == nullptr ? 0 : parts_->core->LocalKey(operation.local, operation.size);
    lane(operation.remote.node()).Expect(operation.connection);
    lane(operation.remote.node()).Add(&operation, batch, key);
  }
  const uint64_t now = NowNanos();
  for (const Operation& operation : operations) {
    Lane& to = lane(operation.remote.node());
    if (to.has_queue()) Tend(&to, now);
  }
  if (--batch->unfinished == 0) FinishBatch(batch);
  return false;
}

bool VerbsChannel::SubmitCall(const CallRequest& call, Completion* completion) {
  const int num_nodes = parts_->core->num_nodes();
  if (call.node >= num_nodes) {
    completion->status =
        absl::InvalidArgumentError(absl::StrCat("CALL to node ", call.node, ": the cluster has ", num_nodes, " nodes"));
  } else if (call.request.size() > kMaxMessageBytes) {
    completion->status = absl::InvalidArgumentError(absl::StrCat(
        "CALL with a request of ", call.request.size(), " bytes; at most ", kMaxMessageBytes, " fit in a message"));
  } else if (!parts_->core->attached()) {
    completion->status = absl::UnavailableError(absl::StrCat("CALL by node ", node(), ", which is dead"));
  } else if (agent().generation(call.node) == 0) {
    completion->status = absl::UnavailableError(absl::StrCat("CALL to node ", call.node, ", which is not there"));
  } else if (Refresh(&lane(call.node)); !IsConnected(call.node, call.connection)) {
    completion->status = ConnectionChanged(call.node);
  } else {
    lane(call.node).Expect(call.connection);
    calls_.Submit(call, completion);
    Tend(&lane(call.node), NowNanos());
    return false;
  }
  return true;
}

Batch* VerbsChannel::NewBatch(Completion* completion) {
  if (free_batches_.empty()) {
    batches_.push_back(std::make_unique<Batch>());
    free_batches_.push_back(batches_.back().get());
  }
  Batch* batch = free_batches_.back();
  free_batches_.pop_back();
  batch->completion = completion;
  batch->unfinished = 0;
  batch->status = absl::OkStatus();
  ++unfinished_batches_;
  return batch;
}

void VerbsChannel::FinishBatch(Batch* batch) {
  batch->completion->status = std::move(batch->status);
  finished_.push_back(batch->completion);
  free_batches_.push_back(batch);
  --unfinished_batches_;
}

void VerbsChannel::Refresh(Lane* to) {
  if (to->link() == nullptr) return;
  const bool in_use = !to->idle() || calls_.waits_for(to->node());
  if (to->generation() != agent().generation(to->node())) {
    Break(to, "it died or left");
  } else if (!in_use && (to->link()->state() == LinkState::kDown || !to->broken().empty())) {
    Break(to, "the connection broke");
  }
}

void VerbsChannel::Connect(Lane* to) {
  const NodeCore& core = *parts_->core;
  const StatusOr<control::Agent::Details> details = agent().details(to->node());
  if (!details.ok()) return Break(to, std::string(details.status().message()));
  if (!to->Accepts(details->generation)) return Break(to, "the connection broke");
  StatusOr<RegionInfo> region = RegionInfo::Decode(details->payload);
  const VerbRange range = core.range(to->node());
  if (region.ok() && (region->bytes != range.bytes_per_node || region->writable_offset != range.writable_offset)) {
    region = absl::InternalError("its memory has another size, or another part of it is read-only");
  }
  if (!region.ok()) return Break(to, std::string(region.status().message()));
  const auto link = std::make_shared<Link>(parts_->core, NumberOf(next_link_++, to->node()), to->node(), index());
  to->Open(link, details->generation, *region);
  parts_->connector->Connect(link, cq_.get(), region->listens_at);
}

void VerbsChannel::Tend(Lane* to, uint64_t now) {
  const bool wanted = !to->idle() || calls_.waits_for(to->node());
  if (!wanted) return;
  if (!parts_->core->attached()) return Break(to, absl::StrCat("node ", node(), " has left the fabric"));
  const uint64_t generation = agent().generation(to->node());
  if (to->link() != nullptr && to->generation() != generation) {
    // An operation posted before may have been done or may be lost with the node or the session.
    return Break(to, generation == 0 ? "it died or left" : "it has a new session");
  }
  if (to->link() == nullptr) Connect(to);
  if (to->link() == nullptr) return;
  const LinkState state = to->link()->state();
  if (state == LinkState::kUp && to->broken().empty()) {
    troubles_[to->node()] = {};
    calls_.Start(to);
    if (const Status posted = to->Flush(); !posted.ok()) Break(to, std::string(posted.message()));
    return;
  }
  if (state != LinkState::kConnecting) TendBroken(to, now);
}

void VerbsChannel::TendBroken(Lane* to, uint64_t now) {
  Trouble& trouble = troubles_[to->node()];
  if (trouble.since_ns == 0) trouble = {.since_ns = now, .next_try_ns = now + kConnectAgainNs};
  // The node has probably died, and then the control session ends, too. After that a caller that gets Unavailable also
  // finds the node not alive.
  if (absl::Nanoseconds(now - trouble.since_ns) > parts_->core->options().silence_limit) {
    return Break(to, to->link()->state() == LinkState::kDown ? to->link()->why() : to->broken());
  }
  // A link that never came up has lost nothing: the peer may not have known yet that the session is up.
  if (to->has_posted() || now < trouble.next_try_ns) return;
  trouble.next_try_ns = now + kConnectAgainNs;
  parts_->connector->Release(to->Close());
  Connect(to);
}

void VerbsChannel::Break(Lane* to, const std::string& why) {
  const Status status = Unavailable(to->node(), why);
  if (to->link() != nullptr) parts_->connector->Release(to->Close());
  troubles_[to->node()] = {};
  to->FailAll(status);
  calls_.FailAll(to->node(), status);
}

size_t VerbsChannel::Poll() {
  if (!busy() && finished_.empty()) return 0;
  const size_t completed = TakeCompletions();
  const uint64_t now = NowNanos();
  for (Completion* completion : finished_) {
    completion->done_after = polled_ns_;
    completion->done_before = now;
  }
  polled_ns_ = now;
  if (events_ != nullptr && completed == 0 && finished_.empty()) {
    Rest(now);
  } else {
    idle_since_ns_ = 0;
  }
  if (!calls_.idle() && now >= next_deadline_check_ns_) {
    calls_.CheckDeadlines(now);
    next_deadline_check_ns_ = now + kDeadlineCheckNs;
  }
  for (Lane& each : lanes_) Tend(&each, now);
  if (finished_.empty()) return 0;
  // A resumed coroutine may submit again. No iteration over this object is in progress here.
  std::vector<Completion*> finished = std::move(finished_);
  for (Completion* completion : finished) Deliver(completion);
  const size_t resumed = finished.size();
  finished.clear();
  if (finished_.empty()) finished_ = std::move(finished);
  return resumed;
}

size_t VerbsChannel::TakeCompletions() {
  std::array<ibv_wc, kPollBatch> completions;
  const int count = ibv_poll_cq(cq_.get(), kPollBatch, completions.data());
  GANNET_CHECK(count >= 0, "node %d: cannot poll channel %d: %d", node(), index(), count);
  for (int i = 0; i < count; ++i) Take(completions[i]);
  return static_cast<size_t>(count);
}

void VerbsChannel::Rest(uint64_t now) {
  if (idle_since_ns_ == 0) idle_since_ns_ = now;
  if (absl::Nanoseconds(now - idle_since_ns_) < parts_->core->options().worker_poll) return;
  if (ibv_req_notify_cq(cq_.get(), 0) != 0) return;
  // Finds completions that arrived before the notification was requested.
  if (TakeCompletions() > 0) return;
  pollfd polled{.fd = events_->fd, .events = POLLIN, .revents = 0};
  poll(&polled, 1, kLongestRestMs);
  ibv_cq* which = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(events_.get(), &which, &context) == 0) ibv_ack_cq_events(which, 1);
}

void VerbsChannel::Take(const ibv_wc& completion) {
  const WorkId id = WorkId::Decode(completion.wr_id);
  Lane& of = lane(NodeOf(id.link));
  if (of.link() == nullptr || of.link()->number() != id.link) return;  // of a destroyed queue pair
  if (completion.status != IBV_WC_SUCCESS) {
    of.MarkBroken(ibv_wc_status_str(completion.status));
  } else if (!id.is_receive) {
    of.Complete(id.item);
  } else if (const Status taken = TakeReceived(&of, completion, id.item); !taken.ok()) {
    Break(&of, std::string(taken.message()));
  }
}

Status VerbsChannel::TakeReceived(Lane* from, const ibv_wc& completion, uint32_t buffer) {
  GANNET_RETURN_IF_ERROR(
      calls_.TakeFragment(from->node(), std::span(from->link()->buffer(buffer), completion.byte_len)));
  return from->link()->PostReceive(buffer);
}

}  // namespace gannet::rdma::verbs
