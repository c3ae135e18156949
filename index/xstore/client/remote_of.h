// RemoteOf: a client of an XStore index with keys of W words.
//
// Several coroutines of the channel's worker may use it at once. Each has a Session with its buffers, and none keeps
// references into the cached generation across an await: another one may let the view follow the cache meanwhile.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "index/index.h"
#include "index/xstore/client/cached_model.h"
#include "index/xstore/client/lookup.h"
#include "index/xstore/rpc/messages.h"
#include "index/xstore/xstore.h"
#include "rdma/message_buffer.h"

namespace gannet::index::xstore {

template <int W>
class RemoteOf final : public RemoteIndex {
 public:
  using Words = KeyWords<W>;

  RemoteOf(rdma::Channel* channel, rdma::NodeId owner, IndexId id, KeyKind kind, const XCacheOptions& options)
      : channel_(channel),
        owner_(owner),
        id_(id),
        call_timeout_(options.call_timeout),
        kind_(kind),
        by_call_(options.by_call),
        cache_(options.shared != nullptr ? options.shared : std::make_shared<CachedModel>(options)),
        shares_cache_(options.shared != nullptr) {}

  coro::Async<StatusOr<FindResult>> Find(const Key& key) override;
  coro::Task<Status> FindMany(std::span<const Key> keys, std::span<FindResult> results) override;
  coro::Task<Status> Scan(ScanRange range, ScanResult* result) override;
  coro::Task<StatusOr<Change>> Insert(Key key, rdma::GlobalAddress record) override;
  coro::Task<StatusOr<Change>> Remove(Key key, rdma::GlobalAddress record) override;
  // Defined in estimate.cc.
  ReadEstimate Estimate(std::span<const Key> keys) const override;
  ReadEstimate Estimate(const ScanRange& range) const override;
  // There is no cache of records.
  void Forget(const Key&) override {}
  ClientStatistics statistics() const override;

 private:
  static constexpr size_t kGroup = 16;  // lookups that share a doorbell
  // Leaves of one batch of a scan. Each slot takes room for its key, too: 2.2 KiB of the longest ones.
  static constexpr size_t kScanBatch = W <= 9 ? 32 : 8;

  // Buffers of one call, reused.
  struct Session {
    Session(rdma::Channel* channel, rdma::NodeId owner, CacheView* cache);
    std::vector<std::unique_ptr<Lookup<W>>> lookups;  // at least one, at most kGroup
    std::vector<rdma::Operation> operations;
    std::vector<std::byte> images;    // of a scan
    std::vector<TableEntry> entries;  // of a scan: the leaves of a batch
    std::vector<uint64_t> table;      // of a scan
    std::vector<Words> keys;          // of a scan: read from records
    std::vector<uint64_t> records;    // of a scan: first lines
    alignas(kLineBytes) std::array<std::byte, kLineBytes> line;
    std::vector<std::byte> request;
    rdma::MessageBuffer response;
  };
  // Takes a session from the free ones, and returns it at the end.
  class PooledSession {
   public:
    explicit PooledSession(RemoteOf* remote);
    ~PooledSession();
    PooledSession(const PooledSession&) = delete;
    PooledSession& operator=(const PooledSession&) = delete;
    Session* operator->() const { return session_.get(); }
    Session& operator*() const { return *session_; }

   private:
    RemoteOf* remote_;
    std::unique_ptr<Session> session_;
  };

  // Called at the beginning of an operation. A generation that another client has installed is not asked for again.
  void FollowCache() const {
    if (cache_.Follow()) outdated_ = false;
  }

  // Defined in remote_find.cc.
  coro::Task<StatusOr<FindResult>> FindOne(Words key);
  coro::Task<Status> RunLookups(Session& session, std::span<const Words> keys);
  coro::Task<Status> FindByCall(Session& session, std::span<const Words> keys, std::span<FindResult> results);
  bool ShouldRenewModel() const { return outdated_ && !by_call_; }
  // Estimates the lookup of one key by READs.
  ReadEstimate EstimateLookup(const Words& key) const;
  coro::Task<Status> RenewModel(Session& session);
  // Takes the model from a response to kDescribe, after the shape (none is fine).
  // `asked`: the cache's changes when the owner was asked.
  Status AcceptModel(rdma::WireReader& reader, uint64_t asked);
  Status ReadRefresh(rdma::WireReader& reader, const Words& key);
  FindResult ResultOf(const Lookup<W>& lookup) const;
  PositionHint HintFor(const Words& key) const;

  // Defined in remote_change.cc.
  coro::Task<StatusOr<Change>> CallChange(rdma::MethodId method, Words key, rdma::GlobalAddress record);

  // Defined in remote_scan.cc.
  struct ScanState;
  coro::Task<Status> ScanByReads(Session& session, ScanState& state);
  coro::Task<Status> ScanByCalls(Session& session, ScanState& state);
  coro::Task<StatusOr<bool>> ReadBatch(Session& session, ScanState& state);
  void PlanFromTables(Session& session, const ScanState& state) const;
  coro::Task<Status> PlanByReads(Session& session, const ScanState& state);
  coro::Task<Status> ConfirmImages(Session& session, std::byte* images);
  static bool Continues(Leaf<W> leaf, const Words& next);
  bool Consume(Leaf<W> leaf, rdma::GlobalAddress address, std::span<const Words> keys, ScanState& state) const;
  // The functions below are for leaves that keep the keys in the records.
  size_t ChooseUseful(std::span<const Leaf<W>> leaves, const ScanState& state, std::array<Leaf<W>, kScanBatch>& useful,
                      std::array<size_t, kScanBatch>& keys_at) const;
  coro::Task<Status> ReadKeys(Session& session, std::span<const Leaf<W>> leaves);
  Status ReadScanResponse(rdma::WireReader& reader, ScanState& state);

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  IndexId id_;
  absl::Duration call_timeout_;
  KeyKind kind_;
  const bool by_call_;
  mutable CacheView cache_;
  const bool shares_cache_;
  // The owner may have another generation of the model than the cache.
  mutable bool outdated_ = cache_.number() == 0;
  ClientStatistics statistics_;
  std::vector<std::unique_ptr<Session>> free_sessions_;
};

}  // namespace gannet::index::xstore
