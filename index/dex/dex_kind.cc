// DEX's entry in the registry.
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "index/dex/dex.h"
#include "index/dex/paths.h"
#include "index/registry.h"
#include "index/shared_leaf/leaf_index.h"
#include "index/witness_word.h"

namespace gannet::index {

IndexKindEntry BlinkKind();  // which this kind resembles

namespace {

dex::PageCacheOptions OptionsFor(size_t max_bytes) {
  dex::PageCacheOptions options;
  if (max_bytes != 0) options.max_bytes = max_bytes;
  return options;
}

}  // namespace

namespace dex {

void SharedPages::SetRanges(std::vector<ClaimRange> ranges, Asked asked) {
  const std::lock_guard lock(mutex_);
  // Another client has asked later, and had its answer first: a word of a board only grows.
  const bool is_same = connection_.load(std::memory_order_relaxed) == asked.connection;
  if (is_same && asked.word < word_.load(std::memory_order_relaxed)) return;
  ranges_ = std::move(ranges);
  number_.fetch_add(1, std::memory_order_release);
  connection_.store(asked.connection, std::memory_order_relaxed);
  word_.store(asked.word, std::memory_order_relaxed);
}

void SharedPages::Pin(std::vector<ClaimRange> ranges) {
  const std::lock_guard lock(mutex_);
  ranges_ = std::move(ranges);
  is_pinned_.store(true, std::memory_order_relaxed);
  number_.fetch_add(1, std::memory_order_release);
}

// The time sees to it that somebody asks if a client is destroyed while it does.
bool SharedPages::BeginAsking() {
  constexpr uint64_t kAnswerNanos = 10'000'000;
  const uint64_t now = NowNanos();
  uint64_t until = asking_until_.load(std::memory_order_relaxed);
  return now >= until && asking_until_.compare_exchange_strong(until, now + kAnswerNanos, std::memory_order_relaxed);
}

// The moment is the earliest of three looks: at the copy, whose word nobody else changes before it has ended the claim,
// at the board's word, and at the clock (claim_holder.h).
bool PagePool::Confirms(const Witness& witness, const shared_leaf::ClaimHolder& claims) const {
  const std::optional<GrantedWord> found = FindGranted(*cache_, witness.word);
  return found.has_value() && IsSameSet(found->state, witness.seen) && claims.IsGood(witness.word, found->grant);
}

std::vector<ClaimRange> SharedPages::ranges() const {
  const std::lock_guard lock(mutex_);
  return ranges_;
}

}  // namespace dex

std::shared_ptr<dex::SharedPages> MakeDexCache(size_t max_bytes) {
  return std::make_shared<dex::SharedPages>(std::make_shared<dex::PageCache>(OptionsFor(max_bytes)));
}

StatusOr<std::unique_ptr<LocalIndex>> CreateDex(IndexService* service, IndexId id, KeyKind key_kind,
                                                BlinkOptions options) {
  options.describe_method = dex::kDescribe;
  return CreateBlink(service, id, key_kind, options);
}

void RegisterDexMethods(IndexService* service) {
  shared_leaf::RegisterLeafMethods(service, dex::kDescribe, "dex");
}

IndexKindEntry DexKind() {
  IndexKindEntry entry = BlinkKind();
  entry.name = "dex";
  entry.traits.has_claims = true;
  entry.connect = [](rdma::Channel* channel, rdma::NodeId owner, IndexId id, const IndexClientOptions& options) {
    return ConnectDex(channel, owner, id, DexClientOptions::Of(options));
  };
  entry.create = [](IndexService* service, IndexId id, const IndexOptions& options) {
    return CreateDex(service, id, options.key_kind, {.max_key_bytes = options.max_key_bytes, .rights = options.rights});
  };
  entry.register_methods = RegisterDexMethods;
  entry.make_cache = [](size_t max_bytes) -> std::shared_ptr<SharedCache> { return MakeDexCache(max_bytes); };
  entry.make_pool = [](size_t max_bytes) -> std::shared_ptr<CachePool> {
    return std::make_shared<dex::PagePool>(OptionsFor(max_bytes));
  };
  return entry;
}

}  // namespace gannet::index
