// XStore: an ordered index after XStore (OSDI'20; docs/references.md).
//
//   owner    XTree    a B+tree: inner nodes in private memory, leaves in registered memory (leaf.h)
//            XModel   two levels of linear models, key -> logical leaf number, and the translation table (TT) from
//                     logical to actual leaves; trained in the background once a client has asked for it
//   client   XCache   a copy of the models, and of as much of the TT as it may keep: a lookup predicts the leaf and
//                     READs it, without the owner's CPU
//
// What makes a stale cache harmless: a leaf carries both its fences, blocks that were leaves stay leaves of the same
// tree for ever (block_pool.h), and a version is given once. So a consistent image of a leaf whose fences enclose a key
// is *the* leaf of that key at the time of the READ, however the reader came by its address. Models, translation tables
// and hints decide only how many READs it takes to get there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "base/status.h"
#include "index/index.h"
#include "index/service.h"
#include "rdma/fabric.h"

namespace gannet::index {

struct XStoreOptions {
  KeyKind key_kind = KeyKind::kInteger;
  size_t max_key_bytes = kIntegerKeyBytes;  // of byte keys; at most kMaxKeyBytes
  // The model is trained anew with twice (half) the sub-models when the average keys of a sub-model rise above this
  // (fall below a quarter of it): the paper's model expansion.
  uint32_t keys_per_sub_model = 200;
  // If not zero, the number of sub-models, whatever the number of keys. For measuring.
  uint32_t fixed_sub_models = 0;
};

// The owner's side. Thread-safe, as LocalIndex says.
class XStore : public LocalIndex {
 public:
  // `service` must outlive the index. InvalidArgument for options out of range.
  static StatusOr<std::unique_ptr<XStore>> Create(IndexService* service, IndexId id, const XStoreOptions& options);

  // What the model looks like now; all zero while no client has asked for one.
  struct ModelStatistics {
    uint64_t generation = 0;   // whole trainings so far
    uint64_t retrainings = 0;  // of single sub-models
    uint64_t sub_models = 0;
    uint64_t table_entries = 0;    // of all translation tables
    uint64_t model_bytes = 0;      // what a client keeps of the sub-models
    double leaves_per_lookup = 0;  // predicted, averaged over the leaves
    double mean_error = 0;         // of the predicted middle of a leaf, in leaves
    double mean_range = 0;         // from the least to the greatest error of a key, in positions (sub_model.h: Quality)
    bool caught_up = false;        // no retraining is waiting
  };
  virtual ModelStatistics model_statistics() = 0;
};

// Serves the clients of all XStore indexes of `service` (its node), and trains their models on a thread of its own once
// the first client has come. Before Node::Serve.
void RegisterXStoreMethods(IndexService* service);

// What a client keeps. More memory, fewer READs per lookup.
enum class XCacheMode : uint8_t {
  kWhole,      // models and translation tables: the leaf comes with the first batch
  kModelOnly,  // models: one READ for a few entries of a table, then the leaf
  kTopOnly,    // the top model: one READ for a sub-model, one for entries of its table, then the leaf
};

namespace xstore {
class CachedModel;
}

struct XCacheOptions {
  XCacheMode mode = XCacheMode::kWhole;
  // Of the cache. Translation tables, then sub-models, are given up for it. The top model stays (a few KiB; of byte
  // keys 25 KiB at most).
  size_t max_bytes = SIZE_MAX;
  // Nothing is kept and nothing READ: every lookup and scan is a call to the owner.
  bool by_call = false;
  absl::Duration call_timeout = rdma::Channel::kDefaultCallTimeout;
  // A cache of MakeSharedCache in place of one of the client's own.
  std::shared_ptr<xstore::CachedModel> shared{};
};

// A cache that several clients of one index use, made with `options`. Not thread-safe: for the clients of one thread,
// or of the threads of a simulated machine. A client's statistics do not count its bytes.
std::shared_ptr<xstore::CachedModel> MakeSharedCache(const XCacheOptions& options);
uint64_t BytesOf(const xstore::CachedModel& cache);
// *to becomes what `from` is. Both are of clients of the same index.
void CopyCache(const xstore::CachedModel& from, xstore::CachedModel* to);

// The client's side, for index `id` of node `owner`, on `channel` (which must outlive it). Makes no call yet: what the
// index looks like is asked for by the first operation, which is NotFound if there is no such index then.
StatusOr<std::unique_ptr<RemoteIndex>> ConnectXStore(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                     const XCacheOptions& options);

}  // namespace gannet::index
