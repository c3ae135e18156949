// CatfishClient: sessions, reading nodes, and calls.
#include "index/catfish/client/client.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "index/catfish/client/read_nodes.h"
#include "index/change_wire.h"
#include "index/key_wire.h"

namespace gannet::index {
namespace catfish {

CatfishClient::PooledSession::PooledSession(CatfishClient* client) : client_(client) {
  if (client_->free_sessions_.empty()) {
    session_ = std::make_unique<Session>();
    return;
  }
  session_ = std::move(client_->free_sessions_.back());
  client_->free_sessions_.pop_back();
}
CatfishClient::PooledSession::~PooledSession() {
  client_->free_sessions_.push_back(std::move(session_));
}

coro::Task<Status> CatfishClient::ReadWords(Session& session, std::span<const rdma::GlobalAddress> words) {
  session.words.resize(words.size());
  session.operations.resize(std::max(session.operations.size(), std::min(words.size(), kWordBatch)));
  for (size_t first = 0; first < words.size(); first += kWordBatch) {
    const size_t n = std::min(kWordBatch, words.size() - first);
    for (size_t i = 0; i < n; ++i) {
      session.operations[i] = rdma::Operation::Read(words[first + i], &session.words[first + i], kWordBytes);
    }
    const std::span<rdma::Operation> reads(session.operations.data(), n);
    const Status status = co_await channel_->Post(reads);
    GANNET_CO_RETURN_IF_ERROR(status);
  }
  co_return absl::OkStatus();
}

coro::Task<StatusOr<bool>> CatfishClient::ConfirmSeen(Session& session) {
  std::vector<rdma::GlobalAddress> words;
  words.reserve(session.seen.size());
  for (const Seen& seen : session.seen) words.emplace_back(owner_, seen.offset);
  const Status status = co_await ReadWords(session, words);
  if (!status.ok()) co_return status;
  for (size_t i = 0; i < words.size(); ++i) {
    if (session.words[i] != session.seen[i].state) co_return false;
  }
  co_return true;
}

coro::Task<Status> CatfishClient::Scan(ScanRange, ScanResult*) {
  co_return absl::UnimplementedError("a catfish index keeps no order of keys; search windows instead");
}

coro::Task<StatusOr<Change>> CatfishClient::Insert(Key key, rdma::GlobalAddress record) {
  return CallChange(kInsert, key, record);
}
coro::Task<StatusOr<Change>> CatfishClient::Remove(Key key, rdma::GlobalAddress record) {
  return CallChange(kRemove, key, record);
}

coro::Task<StatusOr<Change>> CatfishClient::CallChange(rdma::MethodId method, Key key, rdma::GlobalAddress record) {
  PooledSession pooled(this);
  std::array<std::byte, 128> request;
  rdma::WireWriter writer(request);
  writer.PutU16(id_);
  PutKey(writer, key);
  writer.PutAddress(record);
  const StatusOr<std::span<const std::byte>> response = co_await Call(*pooled, method, writer.written());
  if (!response.ok()) co_return response.status();
  rdma::WireReader reader(*response);
  Change change;
  const bool valid = GetChange(reader, &change) && reader.Finish().ok();
  const auto is_foreign = [this](const WordChange& word) { return word.word.node() != owner_; };
  if (!valid || std::ranges::any_of(change.words(), is_foreign)) {
    co_return absl::DataLossError("the owner of a catfish index sent a malformed change");
  }
  co_return std::move(change);
}

coro::Task<Status> CatfishClient::Describe(Session& session) {
  std::array<std::byte, 8> request;
  rdma::WireWriter writer(request);
  writer.PutU16(id_);
  const StatusOr<std::span<const std::byte>> response = co_await Call(session, kDescribe, writer.written());
  if (!response.ok()) co_return response.status();
  const StatusOr<Description> description = GetDescription(*response);
  if (!description.ok()) co_return description.status();
  tree_.emplace(*description, owner_);
  co_return absl::OkStatus();
}

coro::Task<StatusOr<std::span<const std::byte>>> CatfishClient::Call(Session& session, rdma::MethodId method,
                                                                     std::span<const std::byte> request) {
  const std::span<std::byte> room = session.response.room();
  const StatusOr<size_t> bytes = co_await channel_->Call(owner_, method, request, room, options_.call_timeout);
  if (!bytes.ok()) co_return bytes.status();
  if (*bytes > room.size()) co_return absl::InternalError("a response longer than its buffer");
  co_return std::span<const std::byte>(room.first(*bytes));
}

}  // namespace catfish

StatusOr<std::unique_ptr<RemoteIndex>> ConnectCatfish(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                      const CatfishClientOptions& options) {
  if (options.reads_at_once < 1 || options.reads_at_once > kMostCatfishReads) {
    return absl::InvalidArgumentError(
        absl::StrCat("reads_at_once is ", options.reads_at_once, ": choose a number from 1 to ", kMostCatfishReads));
  }
  return std::make_unique<catfish::CatfishClient>(channel, owner, id, options);
}

}  // namespace gannet::index
