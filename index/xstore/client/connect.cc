// ConnectXStore, and the caches that clients share.
#include "index/xstore/client/remote_of.h"

namespace gannet::index {

std::shared_ptr<xstore::CachedModel> MakeSharedCache(const XCacheOptions& options) {
  return std::make_shared<xstore::CachedModel>(options);
}

uint64_t BytesOf(const xstore::CachedModel& cache) {
  return cache.bytes();
}

void CopyCache(const xstore::CachedModel& from, xstore::CachedModel* to) {
  to->CopyFrom(from);
}

StatusOr<std::unique_ptr<RemoteIndex>> ConnectXStore(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                     const XStoreOptions& index, const XCacheOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckMaxKeyBytes(index.max_key_bytes, kMaxKeyBytes));
  return xstore::WithWordsOf(index.key_kind, index.max_key_bytes, [&]<int W>() -> std::unique_ptr<RemoteIndex> {
    return std::make_unique<xstore::RemoteOf<W>>(channel, owner, id, index.key_kind, options);
  });
}

}  // namespace gannet::index
