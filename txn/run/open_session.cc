#include "absl/strings/str_cat.h"
#include "txn/durable/durability.h"
#include "txn/record/record.h"
#include "txn/run/database_state.h"
#include "txn/run/run_sessions.h"
#include "txn/run/session.h"
#include "txn/session/session_state.h"

namespace gannet::txn {

StatusOr<std::unique_ptr<Session>> Session::Open(DatabaseState& database) {
  GANNET_RETURN_IF_ERROR(database.sessions.CheckHome());
  if (!database.started) return absl::FailedPreconditionError("call Database::Start before OpenSession");
  GANNET_RETURN_IF_ERROR(database.sessions.CheckOpen());
  StatusOr<std::unique_ptr<Session>> session = Make(database);
  while (absl::IsResourceExhausted(session.status()) && database.run_sessions->CloseIdle()) session = Make(database);
  return session;
}

StatusOr<std::unique_ptr<Session>> Session::Make(DatabaseState& database) {
  GANNET_RETURN_IF_ERROR(database.table_digests->Compare());
  StatusOr<std::unique_ptr<rdma::Channel>> channel = database.node->OpenChannel();
  if (absl::IsResourceExhausted(channel.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat(channel.status().message(), ": each session takes one; destroy those that are not needed"));
  }
  if (!channel.ok()) return channel.status();
  const size_t nodes = static_cast<size_t>(database.fabric->num_nodes());
  auto session = std::make_unique<SessionState>();
  session->database = database.database;
  session->local = database.local.get();
  session->precedence = database.precedence.get();
  session->incarnation = database.incarnation.get();
  session->peers = database.peers.get();
  session->durability = database.durability.get();
  session->registry = &database.sessions;
  session->collector = database.pending.get();
  session->channel = std::move(*channel);
  session->slab = std::make_unique<rdma::SlabCache>(database.slab.get());
  StatusOr<std::unique_ptr<rdma::EpochManager::Participant>> participant =
      rdma::EpochManager::Participant::Join(database.epochs.get());
  if (!participant.ok()) return participant.status();
  session->participant = *std::move(participant);
  session->context = {session->slab.get(), session->participant.get()};
  session->live_bytes = std::make_unique<LiveBytes>(database.tables.id_bound());
  session->self = database.node->id();
  session->owner_bits = OwnerBits(session->self, session->channel->index());
  session->home = database.sessions.home();
  session->memory = database.node->memory().data();
  StatusOr<std::unique_ptr<CommitLog>> log = database.durability->OpenCommitLog();
  if (!log.ok()) return log.status();
  session->log = *std::move(log);
  session->log->AddTo(&session->worker, /*alone=*/!database.local->calls());
  session->direct = database.fabric->capabilities().cpu_coherent_atomics;
  if (!database.local->calls()) {
    session->change_counter = database.change_counters.Of(session->channel->index());
    session->change_counters = &database.change_counters;
  }
  session->remote_indexes.resize(database.tables.id_bound() * nodes);
  session->paths.Resize(database.tables.id_bound(), nodes, database.options.read_path);
  session->epochs = database.epochs.get();
  if (database.local->calls()) {
    session->worker.AddPoller([c = session->channel.get()] { return c->Poll(); });
    // A waiting worker serves other nodes: on few cores that saves a switch to a server thread.
    session->worker.AddPoller([n = database.node.get()] { return n->ServePending(4); });
  }
  uint64_t number = 0;
  GANNET_RETURN_IF_ERROR(
      database.sessions.Add(session->owner_bits, &session->pending, {&session->paths, &session->meter}, &number));
  session->random = Random(0x9e3779b97f4a7c15ull * number + session->self + Mix64(database.options.seed));
  database.record_bytes.Open(session->live_bytes.get());
  std::unique_ptr<Session> result(new Session(std::move(session)));
  result->state_->session = result.get();
  result->shares_thread_ = database.local->calls();
  return result;
}

}  // namespace gannet::txn
