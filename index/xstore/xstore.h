// XStore: an ordered index, designed after XStore (OSDI'20; docs/references.md).
//
//   owner    XTree    a B+tree: inner nodes in private memory, leaves in registered memory (leaf.h)
//            XModel   two levels of linear models, key -> logical leaf number, and the translation table (TT) from
//                     logical to actual leaves; trained in the background once a client has asked for it
//   client   XCache   a copy of the models, and of as much of the TT as fits: a lookup predicts the leaf and READs it,
//                     without the owner's CPU. The clients of a process may share it
//
// Leaves with keys of more than 39 bytes have tags in the place of keys (tagged_leaf.h). The records hold the keys then
// (record_header.h): from Insert or BulkLoad on until a grace period after Remove or Replace. The record that a
// client's Find returns is not verified, and comes with a witness (FindResult).
//
// Why a stale cache is harmless: a leaf carries both its fences, blocks that were leaves stay leaves of the same tree
// (block_pool.h), and a version is used once. So a consistent image of a leaf whose fences enclose a key is *the* leaf
// of that key at the time of the READ, however the reader found its address. Models, translation tables and hints only
// determine how many READs a lookup needs.
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

// Longest byte keys of an index that has them in its leaves (xstore/leaf.h).
inline constexpr size_t kMostInlineKeyBytes = 39;

struct XStoreOptions {
  KeyKind key_kind = KeyKind::kInteger;
  size_t max_key_bytes = kIntegerKeyBytes;  // of byte keys; at most kMaxKeyBytes
  // The model is trained again with twice (half) the sub-models when the average number of keys per sub-model rises
  // above this (falls below a quarter of it): the paper's model expansion.
  uint32_t keys_per_sub_model = 200;
  // The fixed number of sub-models, for measurements. 0: it is not fixed.
  uint32_t fixed_sub_models = 0;
  // Most threads that retrain sub-models of this index at the same time, 1 to kMostXStoreTrainers. A node trains one
  // index at a time. The paper has one, and measures two (section 7.5).
  int trainers = 1;
};

inline constexpr int kMostXStoreTrainers = 16;

// The owner's side. Thread-safe as LocalIndex requires.
class XStore : public LocalIndex {
 public:
  // `service` must outlive the index. InvalidArgument for options out of range.
  static StatusOr<std::unique_ptr<XStore>> Create(IndexService* service, IndexId id, const XStoreOptions& options);

  // The current model; all zero while no client has asked for one.
  struct ModelStatistics {
    uint64_t generation = 0;   // number of full trainings
    uint64_t retrainings = 0;  // number of trainings of single sub-models
    uint64_t sub_models = 0;
    uint64_t table_entries = 0;    // of all translation tables
    uint64_t model_bytes = 0;      // size of the sub-models in a client's cache
    double leaves_per_lookup = 0;  // predicted, averaged over the leaves
    double mean_error = 0;         // of the predicted middle of a leaf, in leaves
    double mean_range = 0;   // from the least to the greatest error of a key, in positions (Quality in sub_model.h)
    bool caught_up = false;  // no retraining is waiting
  };
  virtual ModelStatistics model_statistics() = 0;
};

// Serves the clients of all XStore indexes of `service` on its node. Trains the models that clients ask for, on one
// thread. Must be called before Node::Serve.
void RegisterXStoreMethods(IndexService* service);

// The content of a client's cache. More memory means fewer READs per lookup.
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
  // Limit of the cache. Translation tables are dropped first, then sub-models. The top model stays (a few KiB; at most
  // 25 KiB for byte keys).
  size_t max_bytes = SIZE_MAX;
  // No cache and no READs: every lookup and scan is a call to the owner.
  bool by_call = false;
  absl::Duration call_timeout = rdma::Channel::kDefaultCallTimeout;
  // A cache from MakeSharedCache, instead of one of the client's own.
  std::shared_ptr<xstore::CachedModel> shared{};
};

// Makes a cache for several clients of one index, in any threads. Lookups take no lock (client/cached_generation.h).
// Only the mode and max_bytes of `options` count here; those of its clients do not. max_bytes limits the cache as a
// whole. While clients still use the model that the owner has replaced, its copy takes memory, too. A client's
// statistics do not count the bytes of a shared cache.
std::shared_ptr<xstore::CachedModel> MakeSharedCache(const XCacheOptions& options);
// Thread-safe.
uint64_t BytesOf(const xstore::CachedModel& cache);
// Copies `from` to *to. Both must belong to clients of the same index. No thread may use `from` meanwhile.
void CopyCache(const xstore::CachedModel& from, xstore::CachedModel* to);

// Connects to index `id` of node `owner` on `channel`, which must outlive the client. `index`: the options with which
// the owner made the index; the client uses only the part about keys. InvalidArgument for keys out of range. Makes no
// call yet. The first lookup or scan asks for the model, unless options.by_call is set. It returns NotFound if the
// owner has no such index, and FailedPrecondition if that index has other keys.
StatusOr<std::unique_ptr<RemoteIndex>> ConnectXStore(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                     const XStoreOptions& index, const XCacheOptions& options);

}  // namespace gannet::index
