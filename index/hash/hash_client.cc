#include "index/hash/hash_client.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/hash/bucket_walk.h"
#include "index/hash/hash_rpc.h"
#include "index/hash/location_cache.h"
#include "index/key_wire.h"
#include "index/record_header.h"
#include "rdma/slab.h"

namespace gannet::index {
namespace {

using hash::BucketWalk;
using hash::KeyHash;
using Step = hash::BucketWalk::Step;

// Most READs of one lookup without progress before it asks the owner.
constexpr int kMaxRetries = 8;
// Number of keys that share a doorbell.
constexpr size_t kBatch = 64;
// More rounds than any lookup needs; a bound in case the owner's memory is corrupt.
constexpr int kMaxRounds = hash::kUsualChain + hash::kMaxDepth + kMaxRetries;

// Room for a request with this key: in place for a short one, too little for one that no index takes.
using RequestBuffer = absl::InlinedVector<std::byte, 96>;
RequestBuffer RoomFor(const Key& key) {
  return RequestBuffer(hash::kRequestBytes + std::min(WireKeyBytes(key), kMostWireKeyBytes));
}

using LineBuffer = std::array<uint64_t, kLineBytes / kWordBytes>;

// The state of a FindMany in flight. It is too large for a pooled coroutine frame, so clients keep it.
struct Batch {
  std::array<BucketWalk, kBatch> walks;
  std::array<LineBuffer, kBatch> lines;
  std::array<rdma::Operation, kBatch> operations;
  std::array<uint32_t, kBatch> which;  // walk -> key
  std::array<uint32_t, kBatch> hard;   // keys that a batch could not settle
};

class HashClient : public RemoteIndex {
 public:
  HashClient(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const HashClientOptions& options)
      : channel_(channel), owner_(owner), id_(id), options_(options), cache_(options.location_cache_bytes) {}

  coro::Async<StatusOr<FindResult>> Find(const Key& key) override;
  coro::Task<Status> FindMany(std::span<const Key> keys, std::span<FindResult> results) override;
  coro::Task<Status> Scan(ScanRange range, ScanResult* result) override;
  coro::Task<StatusOr<Change>> Insert(Key key, rdma::GlobalAddress record) override;
  coro::Task<StatusOr<Change>> Remove(Key key, rdma::GlobalAddress record) override;
  void Forget(const Key& key) override {
    if (description_.has_value()) cache_.Forget(HashOf(key));
  }
  void Remember(const Key& key, rdma::GlobalAddress record) override {
    if (description_.has_value() && record.node() == owner_) cache_.Put(HashOf(key), record.offset());
  }
  ReadEstimate Estimate(std::span<const Key> keys) const override;
  using RemoteIndex::Estimate;
  ClientStatistics statistics() const override;

 private:
  class PooledBatch;

  rdma::GlobalAddress At(uint64_t offset) const { return {owner_, offset}; }
  std::byte* Bytes(LineBuffer* line) const { return reinterpret_cast<std::byte*>(line->data()); }
  void CheckKind(const Key& key) const {
    GANNET_CHECK(key.kind() == description_->key_kind, "key %s is not of the index's kind", key.ToString());
  }
  // Takes the owner's description. Before that nothing can be hashed, and nothing is cached.
  void Learn(const hash::Description& description) {
    description_ = description;
    if (!hash_.has_value() || hash_->seed() != description.seed) hash_.emplace(description.seed);
  }
  KeyHash HashOf(const Key& key) const { return hash::HashOf(*hash_, key); }
  BucketWalk NewWalk(KeyHash hash) const { return {description_->geometry, hash}; }
  Step Take(BucketWalk* walk, LineBuffer* line);
  // The result of a walk that ended with kFound or kAbsent.
  FindResult Conclude(const BucketWalk& walk, Step step);
  // The common lookup without a coroutine, where the fabric completes READs at once. Empty if this lookup is not the
  // common case.
  std::optional<StatusOr<FindResult>> FindAtOnce(KeyHash hash);
  coro::Task<StatusOr<FindResult>> FindByReads(Key key);
  coro::Task<StatusOr<FindResult>> Verify(Key key, const BucketWalk* walk);
  coro::Task<StatusOr<FindResult>> FindByCall(Key key);
  coro::Task<Status> FindBatch(std::span<const Key> keys, std::span<FindResult> results, Batch* batch);
  // Posts the first `n` walks of the batch, takes their lines, and keeps the walks that must continue; returns their
  // number.
  coro::Task<StatusOr<size_t>> Round(Batch* batch, size_t n, int round, std::span<FindResult> results, size_t* hard);
  coro::Task<Status> Describe();
  coro::Task<StatusOr<Change>> CallChange(rdma::MethodId method, Key key, rdma::GlobalAddress record);
  // Returns the number of bytes in `response`.
  coro::Task<StatusOr<size_t>> Call(rdma::MethodId method, const rdma::WireWriter* request,
                                    std::span<std::byte> response);

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  IndexId id_;
  HashClientOptions options_;
  std::optional<hash::Description> description_;
  std::optional<KeyedHash> hash_;  // uses the seed in `description_`
  hash::LocationCache cache_;
  std::vector<std::unique_ptr<Batch>> idle_batches_;
  ClientStatistics statistics_;
};

class HashClient::PooledBatch {
 public:
  explicit PooledBatch(HashClient* client) : client_(client) {
    if (client_->idle_batches_.empty()) client_->idle_batches_.push_back(std::make_unique<Batch>());
    batch_ = std::move(client_->idle_batches_.back());
    client_->idle_batches_.pop_back();
  }
  ~PooledBatch() { client_->idle_batches_.push_back(std::move(batch_)); }
  PooledBatch(const PooledBatch&) = delete;
  PooledBatch& operator=(const PooledBatch&) = delete;
  Batch* get() { return batch_.get(); }

 private:
  HashClient* client_;
  std::unique_ptr<Batch> batch_;
};

Step HashClient::Take(BucketWalk* walk, LineBuffer* line) {
  ++statistics_.leaves_read;
  const Step step = walk->Take(Bytes(line), &description_->geometry);
  if (step == Step::kAgain) channel_->CountRetry();
  return step;
}

FindResult HashClient::Conclude(const BucketWalk& walk, Step step) {
  ++statistics_.one_sided;
  FindResult result{.record = {}, .witness = {At(walk.head()), walk.version()}};
  if (step == Step::kAbsent) return result;
  cache_.Put(walk.hash(), walk.candidate(0));
  result.record = At(walk.candidate(0));
  return result;
}

coro::Async<StatusOr<FindResult>> HashClient::Find(const Key& key) {
  ++statistics_.lookups;
  if (!description_.has_value()) [[unlikely]]
    return FindByReads(key);
  const KeyHash hash = HashOf(key);
  if (const uint64_t offset = cache_.Get(hash); offset != 0) {
    ++statistics_.one_sided;
    return StatusOr<FindResult>(FindResult{.record = At(offset), .from_cache = true});
  }
  if (channel_->capabilities().completes_at_once) {
    CheckKind(key);
    std::optional<StatusOr<FindResult>> found = FindAtOnce(hash);
    if (found.has_value()) return std::move(*found);
  }
  return FindByReads(key);
}

std::optional<StatusOr<FindResult>> HashClient::FindAtOnce(KeyHash hash) {
  BucketWalk walk = NewWalk(hash);
  LineBuffer line;
  for (int round = 0; round < kMaxRounds; ++round) {
    rdma::OperationAwaiter read = channel_->Read(At(walk.next()), line.data(), kLineBytes);
    GANNET_CHECK(read.await_ready(), "a READ did not complete at once on node %d", channel_->node());
    Status status = read.await_resume();
    if (!status.ok()) return status;
    const Step step = Take(&walk, &line);
    if (step == Step::kFound || step == Step::kAbsent) return Conclude(walk, step);
    if (step != Step::kRead) break;
  }
  return std::nullopt;
}

coro::Task<StatusOr<FindResult>> HashClient::FindByReads(Key key) {
  if (!description_.has_value()) {
    Status described = co_await Describe();
    if (!described.ok()) co_return described;
  }
  CheckKind(key);
  BucketWalk walk = NewWalk(HashOf(key));
  LineBuffer line;
  bool described_again = false;
  int retries = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    Status status = co_await channel_->Read(At(walk.next()), line.data(), kLineBytes);
    if (!status.ok()) co_return status;
    const Step step = Take(&walk, &line);
    if (step == Step::kFound || step == Step::kAbsent) co_return Conclude(walk, step);
    if (step == Step::kVerify) co_return co_await Verify(key, &walk);
    if (step == Step::kLong || (step == Step::kAgain && ++retries > kMaxRetries)) break;
    if (step != Step::kUnknown) continue;
    if (std::exchange(described_again, true)) break;
    Status described = co_await Describe();
    if (!described.ok()) co_return described;
    walk = NewWalk(HashOf(key));
  }
  co_return co_await FindByCall(key);
}

// Reads the keys of all candidates with one doorbell. They were all in the chain at one moment, so at most one holds
// the key. Each READ takes the bytes of `key`: RecordHoldsKey looks at no more of a candidate, also if
// that claims to have a longer key.
coro::Task<StatusOr<FindResult>> HashClient::Verify(Key key, const BucketWalk* walk) {
  static_assert(HeaderReadBytes(kMaxKeyBytes) <= kLineBytes + rdma::kReadBeyondBytes,
                "the candidate may have a shorter key, and one line");
  constexpr size_t kShortHeaderBytes = HeaderReadBytes(kShortKeyBytes);
  alignas(kLineBytes) std::array<std::byte, kShortHeaderBytes * BucketWalk::kMaxCandidates> short_headers;
  std::array<rdma::Operation, BucketWalk::kMaxCandidates> operations;
  const int n = walk->candidates();
  const size_t bytes = HeaderReadBytes(key.size());
  std::vector<uint64_t> long_headers;
  if (bytes > kShortHeaderBytes) long_headers.resize(bytes * static_cast<size_t>(n) / kWordBytes);
  std::byte* const headers =
      long_headers.empty() ? short_headers.data() : reinterpret_cast<std::byte*>(long_headers.data());
  const auto header = [headers, bytes](int i) { return headers + static_cast<size_t>(i) * bytes; };
  for (int i = 0; i < n; ++i) {
    operations[i] = rdma::Operation::Read(At(walk->candidate(i)), header(i), static_cast<uint32_t>(bytes));
  }
  const std::span<rdma::Operation> posted(operations.data(), n);
  Status status = co_await channel_->Post(posted);
  if (!status.ok()) co_return status;
  ++statistics_.one_sided;
  for (int i = 0; i < n; ++i) {
    if (!RecordHoldsKey(header(i), key)) continue;
    cache_.Put(walk->hash(), walk->candidate(i));
    co_return FindResult{.record = At(walk->candidate(i))};
  }
  co_return FindResult{.record = {}, .witness = {At(walk->head()), walk->version()}};
}

coro::Task<StatusOr<FindResult>> HashClient::FindByCall(Key key) {
  ++statistics_.fallbacks;
  RequestBuffer request = RoomFor(key);
  std::array<std::byte, hash::kMaxResponseBytes> response;
  rdma::WireWriter writer{std::span<std::byte>(request)};
  writer.PutU16(id_);
  PutKey(writer, key);
  StatusOr<size_t> bytes = co_await Call(hash::kFind, &writer, response);
  if (!bytes.ok()) co_return bytes.status();
  StatusOr<FindResult> result = hash::GetFindResult({response.data(), *bytes}, owner_);
  if (result.ok() && !result->record.is_null()) cache_.Put(HashOf(key), result->record.offset());
  co_return result;
}

coro::Task<Status> HashClient::FindMany(std::span<const Key> keys, std::span<FindResult> results) {
  statistics_.lookups += keys.size();
  if (!description_.has_value() && !keys.empty()) {
    Status described = co_await Describe();
    if (!described.ok()) co_return described;
  }
  PooledBatch batch(this);
  for (size_t begin = 0; begin < keys.size(); begin += kBatch) {
    const size_t n = std::min(kBatch, keys.size() - begin);
    Status status = co_await FindBatch(keys.subspan(begin, n), results.subspan(begin, n), batch.get());
    if (!status.ok()) co_return status;
  }
  co_return absl::OkStatus();
}

coro::Task<Status> HashClient::FindBatch(std::span<const Key> keys, std::span<FindResult> results, Batch* batch) {
  size_t n = 0;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    CheckKind(keys[i]);
    const KeyHash hash = HashOf(keys[i]);
    if (const uint64_t offset = cache_.Get(hash); offset != 0) {
      ++statistics_.one_sided;
      results[i] = {.record = At(offset), .from_cache = true};
      continue;
    }
    batch->walks[n] = NewWalk(hash);
    batch->which[n++] = i;
  }
  size_t hard = 0;
  for (int round = 1; n > 0; ++round) {
    StatusOr<size_t> left = co_await Round(batch, n, round, results, &hard);
    if (!left.ok()) co_return left.status();
    n = *left;
  }
  for (size_t i = 0; i < hard; ++i) {
    const Key key = keys[batch->hard[i]];
    StatusOr<FindResult> found = co_await FindByReads(key);
    if (!found.ok()) co_return found.status();
    results[batch->hard[i]] = *found;
  }
  co_return absl::OkStatus();
}

coro::Task<StatusOr<size_t>> HashClient::Round(Batch* batch, size_t n, int round, std::span<FindResult> results,
                                               size_t* hard) {
  for (size_t i = 0; i < n; ++i) {
    batch->operations[i] = rdma::Operation::Read(At(batch->walks[i].next()), batch->lines[i].data(), kLineBytes);
  }
  const std::span<rdma::Operation> posted(batch->operations.data(), n);
  Status status = co_await channel_->Post(posted);
  if (!status.ok()) co_return status;
  size_t left = 0;
  for (size_t i = 0; i < n; ++i) {
    const Step step = Take(&batch->walks[i], &batch->lines[i]);
    if (step == Step::kFound || step == Step::kAbsent) {
      results[batch->which[i]] = Conclude(batch->walks[i], step);
    } else if ((step == Step::kRead && round < kMaxRounds) || (step == Step::kAgain && round <= kMaxRetries)) {
      batch->walks[left] = batch->walks[i];
      batch->which[left++] = batch->which[i];
    } else {
      batch->hard[(*hard)++] = batch->which[i];
    }
  }
  co_return left;
}

coro::Task<Status> HashClient::Scan(ScanRange, ScanResult*) {
  co_return absl::UnimplementedError("a hash index keeps no order; scans need a table with an ordered index");
}

coro::Task<StatusOr<Change>> HashClient::Insert(Key key, rdma::GlobalAddress record) {
  StatusOr<Change> change = co_await CallChange(hash::kInsert, key, record);
  if (change.ok() && description_.has_value()) cache_.Put(HashOf(key), record.offset());
  co_return change;
}

coro::Task<StatusOr<Change>> HashClient::Remove(Key key, rdma::GlobalAddress record) {
  Forget(key);
  return CallChange(hash::kRemove, key, record);
}

coro::Task<StatusOr<Change>> HashClient::CallChange(rdma::MethodId method, Key key, rdma::GlobalAddress record) {
  RequestBuffer request = RoomFor(key);
  std::array<std::byte, hash::kMaxResponseBytes> response;
  rdma::WireWriter writer{std::span<std::byte>(request)};
  writer.PutU16(id_);
  PutKey(writer, key);
  writer.PutAddress(record);
  StatusOr<size_t> bytes = co_await Call(method, &writer, response);
  if (!bytes.ok()) co_return bytes.status();
  co_return hash::GetChange({response.data(), *bytes}, owner_);
}

coro::Task<Status> HashClient::Describe() {
  std::array<std::byte, 8> request;
  std::array<std::byte, hash::kMaxResponseBytes> response;
  rdma::WireWriter writer(request);
  writer.PutU16(id_);
  StatusOr<size_t> bytes = co_await Call(hash::kDescribe, &writer, response);
  if (!bytes.ok()) co_return bytes.status();
  StatusOr<hash::Description> description = hash::GetDescription({response.data(), *bytes});
  if (!description.ok()) co_return description.status();
  Learn(*description);
  co_return absl::OkStatus();
}

coro::Task<StatusOr<size_t>> HashClient::Call(rdma::MethodId method, const rdma::WireWriter* request,
                                              std::span<std::byte> response) {
  if (!request->ok()) co_return absl::InvalidArgumentError("the key is longer than any index takes");
  const std::span<const std::byte> message = request->written();
  StatusOr<size_t> bytes = co_await channel_->Call(owner_, method, message, response, options_.call_timeout);
  if (bytes.ok() && *bytes > response.size()) co_return absl::InternalError("a response longer than its buffer");
  co_return bytes;
}

// A miss is one READ of a bucket: chains, tags that several keys share and growth are rare.
ReadEstimate HashClient::Estimate(std::span<const Key> keys) const {
  // If there are more keys, only this many of them are looked up, at equal distances.
  constexpr size_t kMostLookedUp = 8;
  ReadEstimate estimate{.keys = static_cast<double>(keys.size())};
  if (keys.empty()) return estimate;
  double misses = estimate.keys;
  if (description_.has_value()) {
    const size_t looked_up = std::min(keys.size(), kMostLookedUp);
    size_t missed = 0;
    for (size_t i = 0; i < looked_up; ++i) missed += cache_.Has(HashOf(keys[i * keys.size() / looked_up])) ? 0 : 1;
    misses = estimate.keys * static_cast<double>(missed) / static_cast<double>(looked_up);
  } else {
    estimate.calls = 1;
    estimate.lasting_calls = 1;
  }
  estimate.postings = std::ceil(misses / kBatch);
  if (cache_.enabled()) estimate.lasting_postings = estimate.postings;
  estimate.reads = misses;
  estimate.bytes = misses * kLineBytes;
  return estimate;
}

ClientStatistics HashClient::statistics() const {
  ClientStatistics statistics = statistics_;
  statistics.cache_bytes = cache_.bytes();
  return statistics;
}

}  // namespace

StatusOr<std::unique_ptr<RemoteIndex>> ConnectHash(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                   const HashClientOptions& options) {
  return std::make_unique<HashClient>(channel, owner, id, options);
}

}  // namespace gannet::index
