// ConnectXStore: a client that finds out with its first operation what keys the index has.
#include "absl/strings/str_cat.h"
#include "index/xstore/client/remote_of.h"
#include "rdma/message_buffer.h"

namespace gannet::index {
namespace xstore {
namespace {

class LazyRemote final : public RemoteIndex {
 public:
  LazyRemote(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const XCacheOptions& options)
      : channel_(channel), owner_(owner), id_(id), options_(options) {}

  coro::Async<StatusOr<FindResult>> Find(const Key& key) override {
    if (remote_ != nullptr) [[likely]]
      return remote_->Find(key);
    return FirstFind(OwnedKey(key));
  }
  coro::Task<Status> FindMany(std::span<const Key> keys, std::span<FindResult> results) override {
    if (remote_ != nullptr) return remote_->FindMany(keys, results);
    return FirstFindMany(keys, results);
  }
  coro::Task<Status> Scan(ScanRange range, ScanResult* result) override {
    if (remote_ != nullptr) return remote_->Scan(range, result);
    return FirstScan(range, result);
  }
  coro::Task<StatusOr<Change>> Insert(Key key, rdma::GlobalAddress record) override {
    if (remote_ != nullptr) return remote_->Insert(key, record);
    return FirstChange(key, record, true);
  }
  coro::Task<StatusOr<Change>> Remove(Key key, rdma::GlobalAddress record) override {
    if (remote_ != nullptr) return remote_->Remove(key, record);
    return FirstChange(key, record, false);
  }
  void Forget(const Key& key) override {
    if (remote_ != nullptr) remote_->Forget(key);
  }
  ClientStatistics statistics() const override {
    return remote_ == nullptr ? ClientStatistics{} : remote_->statistics();
  }

 private:
  coro::Task<StatusOr<FindResult>> FirstFind(OwnedKey key) {
    const Status described = co_await Describe();
    GANNET_CO_RETURN_IF_ERROR(described);
    coro::Async<StatusOr<FindResult>> find = remote_->Find(key.view());
    StatusOr<FindResult> found = co_await find;
    co_return found;
  }
  coro::Task<Status> FirstFindMany(std::span<const Key> keys, std::span<FindResult> results) {
    const Status described = co_await Describe();
    GANNET_CO_RETURN_IF_ERROR(described);
    Status found = co_await remote_->FindMany(keys, results);
    co_return found;
  }
  coro::Task<Status> FirstScan(ScanRange range, ScanResult* result) {
    const Status described = co_await Describe();
    GANNET_CO_RETURN_IF_ERROR(described);
    Status scanned = co_await remote_->Scan(range, result);
    co_return scanned;
  }
  coro::Task<StatusOr<Change>> FirstChange(Key key, rdma::GlobalAddress record, bool insert) {
    const Status described = co_await Describe();
    GANNET_CO_RETURN_IF_ERROR(described);
    coro::Task<StatusOr<Change>> change = insert ? remote_->Insert(key, record) : remote_->Remove(key, record);
    StatusOr<Change> changed = co_await change;
    co_return changed;
  }

  coro::Task<Status> Describe() {
    std::vector<std::byte> request(16);
    rdma::MessageBuffer response;
    rdma::WireWriter writer(request);
    writer.PutU16(id_);
    const StatusOr<size_t> bytes =
        co_await channel_->Call(owner_, kDescribe, writer.written(), response.room(), options_.call_timeout);
    if (!bytes.ok()) co_return bytes.status();
    if (remote_ != nullptr) co_return absl::OkStatus();  // another coroutine was faster
    rdma::WireReader reader(response.room().first(*bytes));
    co_return Connect(reader);
  }

  Status Connect(rdma::WireReader& reader) {
    const int words = reader.GetU8();
    const uint8_t kind = reader.GetU8();
    if (!reader.ok() || kind > static_cast<uint8_t>(KeyKind::kBytes)) {
      return absl::InvalidArgumentError("the owner sent a broken description of an index");
    }
    switch (words) {
      case 1:
        return ConnectAs<1>(reader, static_cast<KeyKind>(kind));
      case 3:
        return ConnectAs<3>(reader, static_cast<KeyKind>(kind));
      case 5:
        return ConnectAs<5>(reader, static_cast<KeyKind>(kind));
      case 9:
        return ConnectAs<9>(reader, static_cast<KeyKind>(kind));
      default:
        return absl::InvalidArgumentError(absl::StrCat("the owner has an index for keys of ", words, " words"));
    }
  }
  template <int W>
  Status ConnectAs(rdma::WireReader& reader, KeyKind kind) {
    auto remote = std::make_unique<RemoteOf<W>>(channel_, owner_, id_, kind, options_);
    if (!options_.by_call) GANNET_RETURN_IF_ERROR(remote->AcceptModel(reader));
    remote_ = std::move(remote);
    return absl::OkStatus();
  }

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  IndexId id_;
  XCacheOptions options_;
  std::unique_ptr<RemoteIndex> remote_;
};

}  // namespace
}  // namespace xstore

std::shared_ptr<xstore::CachedModel> MakeSharedCache(const XCacheOptions& options) {
  return std::make_shared<xstore::CachedModel>(options);
}

uint64_t BytesOf(const xstore::CachedModel& cache) {
  return cache.bytes();
}

void CopyCache(const xstore::CachedModel& from, xstore::CachedModel* to) {
  *to = from;
}

StatusOr<std::unique_ptr<RemoteIndex>> ConnectXStore(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                     const XCacheOptions& options) {
  return std::make_unique<xstore::LazyRemote>(channel, owner, id, options);
}

}  // namespace gannet::index
