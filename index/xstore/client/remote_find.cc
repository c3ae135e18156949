// XStore at a client: lookups.
#include <algorithm>
#include <array>

#include "index/xstore/client/remote_of.h"

namespace gannet::index::xstore {

template <int W>
RemoteOf<W>::Session::Session(rdma::Channel* channel, rdma::NodeId owner, CacheView* cache)
    : operations(kGroup * Lookup<W>::kMaxOperations), request(kMaxKeysPerFind * (sizeof(Words) + 16) + 64) {
  lookups.push_back(std::make_unique<Lookup<W>>(channel, owner, cache));
}

template <int W>
RemoteOf<W>::PooledSession::PooledSession(RemoteOf* remote) : remote_(remote) {
  if (remote->free_sessions_.empty()) {
    session_ = std::make_unique<Session>(remote->channel_, remote->owner_, &remote->cache_);
  } else {
    session_ = std::move(remote->free_sessions_.back());
    remote->free_sessions_.pop_back();
  }
}

template <int W>
RemoteOf<W>::PooledSession::~PooledSession() {
  remote_->free_sessions_.push_back(std::move(session_));
}

template <int W>
coro::Async<StatusOr<FindResult>> RemoteOf<W>::Find(const Key& key) {
  return FindOne(Encode<W>(key));
}

template <int W>
coro::Task<StatusOr<FindResult>> RemoteOf<W>::FindOne(Words key) {
  PooledSession session(this);
  FollowCache();
  if (ShouldRenewModel()) {
    const Status renewed = co_await RenewModel(*session);
    GANNET_CO_RETURN_IF_ERROR(renewed);
  }
  Lookup<W>& lookup = *session->lookups[0];
  lookup.Start(key);
  while (const size_t n = lookup.Ask(session->operations.data())) {
    const std::span<rdma::Operation> operations(session->operations.data(), n);
    const Status status = co_await channel_->Post(operations);
    GANNET_CO_RETURN_IF_ERROR(status);
    lookup.Look();
  }
  ++statistics_.lookups;
  statistics_.leaves_read += lookup.leaves_read();
  outdated_ |= lookup.outdated();
  FindResult result;
  if (lookup.found()) {
    ++statistics_.one_sided;
    result = ResultOf(lookup);
  } else {
    const std::span<const Words> keys(&key, 1);
    const std::span<FindResult> results(&result, 1);
    const Status status = co_await FindByCall(*session, keys, results);
    GANNET_CO_RETURN_IF_ERROR(status);
  }
  co_return result;
}

template <int W>
coro::Task<Status> RemoteOf<W>::FindMany(std::span<const Key> keys, std::span<FindResult> results) {
  GANNET_CHECK(results.size() == keys.size(), "%d results for %d keys", results.size(), keys.size());
  PooledSession session(this);
  FollowCache();
  if (ShouldRenewModel() && !keys.empty()) {
    const Status renewed = co_await RenewModel(*session);
    GANNET_CO_RETURN_IF_ERROR(renewed);
  }
  std::array<Words, kGroup> words;
  std::array<Words, kGroup> missed;
  std::array<size_t, kGroup> missed_at;
  std::array<FindResult, kGroup> called;
  for (size_t begin = 0; begin < keys.size(); begin += kGroup) {
    const size_t n = std::min(kGroup, keys.size() - begin);
    for (size_t i = 0; i < n; ++i) words[i] = Encode<W>(keys[begin + i]);
    const std::span<const Words> group(words.data(), n);
    const Status looked = co_await RunLookups(*session, group);
    GANNET_CO_RETURN_IF_ERROR(looked);
    size_t misses = 0;
    for (size_t i = 0; i < n; ++i) {
      const Lookup<W>& lookup = *session->lookups[i];
      if (lookup.found()) {
        results[begin + i] = ResultOf(lookup);
      } else {
        missed_at[misses] = begin + i;
        missed[misses++] = words[i];
      }
    }
    if (misses == 0) continue;
    const std::span<const Words> rest(missed.data(), misses);
    const std::span<FindResult> answers(called.data(), misses);
    const Status status = co_await FindByCall(*session, rest, answers);
    GANNET_CO_RETURN_IF_ERROR(status);
    for (size_t i = 0; i < misses; ++i) results[missed_at[i]] = called[i];
  }
  co_return absl::OkStatus();
}

// Runs rounds with one doorbell each, until every lookup is over.
template <int W>
coro::Task<Status> RemoteOf<W>::RunLookups(Session& session, std::span<const Words> keys) {
  while (session.lookups.size() < keys.size()) {
    session.lookups.push_back(std::make_unique<Lookup<W>>(channel_, owner_, &cache_));
  }
  for (size_t i = 0; i < keys.size(); ++i) session.lookups[i]->Start(keys[i]);
  std::array<bool, kGroup> asked;
  while (true) {
    size_t n = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      const size_t more = session.lookups[i]->Ask(session.operations.data() + n);
      asked[i] = more > 0;
      n += more;
    }
    if (n == 0) break;
    const std::span<rdma::Operation> operations(session.operations.data(), n);
    const Status status = co_await channel_->Post(operations);
    GANNET_CO_RETURN_IF_ERROR(status);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (asked[i]) session.lookups[i]->Look();
    }
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const Lookup<W>& lookup = *session.lookups[i];
    ++statistics_.lookups;
    statistics_.one_sided += lookup.found() ? 1 : 0;
    statistics_.leaves_read += lookup.leaves_read();
    outdated_ |= lookup.outdated();
  }
  co_return absl::OkStatus();
}

template <int W>
FindResult RemoteOf<W>::ResultOf(const Lookup<W>& lookup) const {
  FindResult result;
  result.record = lookup.record();
  if (result.record.is_null() || Leaf<W>::kKeysInRecords) result.witness = {lookup.address(), lookup.leaf().state()};
  return result;
}

// The place of the key according to the cache.
template <int W>
PositionHint RemoteOf<W>::HintFor(const Words& key) const {
  if (cache_.number() == 0) return {};
  const TopModel::Place place = cache_->top().Locate(key);
  SubModel model;
  uint32_t block;
  if (!cache_->FindTable(place.sub_model, [&model](const CachedTable& table) { model = table.model(); }) &&
      !cache_->FindModel(place.sub_model, &model, &block)) {
    return {};
  }
  const SubModel::Range range = model.Predict(place.x);
  return {cache_.number(), place.sub_model, range.first + (range.last - range.first) / 2};
}

// Finds at most kMaxKeysPerFind keys. The response also brings current sub-models for them.
template <int W>
coro::Task<Status> RemoteOf<W>::FindByCall(Session& session, std::span<const Words> keys,
                                           std::span<FindResult> results) {
  statistics_.fallbacks += keys.size();
  rdma::WireWriter writer(session.request);
  writer.PutU16(id_);
  writer.PutU8(static_cast<uint8_t>(keys.size()));
  for (const Words& key : keys) {
    HintFor(key).Put(writer);
    PutKey(writer, key);
  }
  const StatusOr<size_t> bytes =
      co_await channel_->Call(owner_, kFind, writer.written(), session.response.room(), call_timeout_);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(session.response.room().first(*bytes));
  const uint64_t generation = reader.GetU64();
  outdated_ |= generation != cache_.number();
  for (size_t i = 0; i < keys.size(); ++i) {
    FindResult result;
    result.record = reader.GetAddress();
    if (result.record.is_null()) result.witness = GetWitness(reader);
    results[i] = result;
    const Status refreshed = ReadRefresh(reader, keys[i]);
    GANNET_CO_RETURN_IF_ERROR(refreshed);
  }
  co_return reader.Finish();
}

template <int W>
Status RemoteOf<W>::ReadRefresh(rdma::WireReader& reader, const Words& key) {
  if (reader.GetU8() == 0) return absl::OkStatus();
  alignas(kWordBytes) std::array<std::byte, kLineBytes> image{};
  for (size_t i = 0; i < 5; ++i) StoreWord(image.data() + i * kWordBytes, reader.GetU64());
  const uint32_t size = reader.GetU32();
  if (!reader.ok() || size > kMaxRefreshEntries) return absl::InvalidArgumentError("the owner sent a broken sub-model");
  std::array<uint64_t, kMaxRefreshEntries> table;
  for (uint32_t i = 0; i < size; ++i) table[i] = reader.GetU64();
  SubModelLine line;
  if (!reader.ok() || !line.Load(image.data())) return absl::InvalidArgumentError("the owner sent a broken sub-model");
  // The line is useless if it belongs to a newer model or to another key. (A client without a model ignores it, too,
  // also the empty line that stands for a line that is being written.)
  if (cache_.number() == 0 || line.generation != cache_.number() || cache_->top().Locate(key).sub_model != line.index)
    return absl::OkStatus();
  if (line.model.size == 0 || line.model.size > kMaxTableEntries) {
    return absl::InvalidArgumentError("the owner sent a sub-model without a table");
  }
  cache_->PutModel(line.index, line.model, line.table);
  if (size == line.model.size) cache_->PutTable(line.index, line.model, std::span<const uint64_t>(table.data(), size));
  return absl::OkStatus();
}

template <int W>
coro::Task<Status> RemoteOf<W>::RenewModel(Session& session) {
  outdated_ = false;
  const uint64_t asked = cache_.change();
  rdma::WireWriter writer(session.request);
  writer.PutU16(id_);
  const StatusOr<size_t> bytes =
      co_await channel_->Call(owner_, kDescribe, writer.written(), session.response.room(), call_timeout_);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(session.response.room().first(*bytes));
  if (reader.GetU8() != W || reader.GetU8() != static_cast<uint8_t>(kind_)) {
    co_return absl::FailedPreconditionError("the index at the owner has other keys than this client was connected for");
  }
  co_return AcceptModel(reader, asked);
}

template <int W>
Status RemoteOf<W>::AcceptModel(rdma::WireReader& reader, uint64_t asked) {
  outdated_ = false;
  const uint64_t generation = reader.GetU64();
  if (generation == 0) return reader.Finish();
  StatusOr<TopModel> top = TopModel::Decode(reader, W);
  if (!top.ok()) return top.status();
  const uint32_t blocks = reader.GetU32();
  if (!reader.ok() || blocks != (top->sub_models() + kLinesPerBlock - 1) / kLinesPerBlock) {
    return absl::InvalidArgumentError("the owner sent a model without all of its sub-models");
  }
  std::vector<uint32_t> directory;
  for (uint32_t i = 0; i < blocks && reader.ok(); ++i) directory.push_back(reader.GetU32());
  GANNET_RETURN_IF_ERROR(reader.Finish());
  directory.shrink_to_fit();
  cache_.cache().Begin(generation, asked, *std::move(top), std::move(directory));
  cache_.Follow();
  return absl::OkStatus();
}

template <int W>
ClientStatistics RemoteOf<W>::statistics() const {
  ClientStatistics statistics = statistics_;
  statistics.cache_bytes = shares_cache_ ? 0 : cache_.cache().bytes();
  return statistics;
}

#define GANNET_INSTANTIATE(W)                                                                     \
  template RemoteOf<W>::PooledSession::PooledSession(RemoteOf*);                                  \
  template RemoteOf<W>::PooledSession::~PooledSession();                                          \
  template coro::Async<StatusOr<FindResult>> RemoteOf<W>::Find(const Key&);                       \
  template coro::Task<Status> RemoteOf<W>::FindMany(std::span<const Key>, std::span<FindResult>); \
  template coro::Task<Status> RemoteOf<W>::RenewModel(Session&);                                  \
  template Status RemoteOf<W>::AcceptModel(rdma::WireReader&, uint64_t);                          \
  template PositionHint RemoteOf<W>::HintFor(const Words&) const;                                 \
  template ClientStatistics RemoteOf<W>::statistics() const;
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
