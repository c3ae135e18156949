// CatfishClient: lookups of exact keys.
//
// A key that an image of a leaf has was in the tree at that moment. For a key that was not met, the client READs its
// word (key_words.h) and, when that has come, the words of all nodes that it looked at. If those are unchanged, the
// images were the tree at the moment between the two postings, and the key was absent then. The key's word was READ
// before: either it still had that value, which thus covers the absence, or the value is outdated and never comes back.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "index/catfish/client/read_nodes.h"
#include "index/change_wire.h"
#include "index/key_wire.h"

namespace gannet::index::catfish {
namespace {

constexpr size_t kGroup = 64;  // keys that share postings

}  // namespace

// The root is READ once for all keys; below it each key has its own nodes.
class CatfishClient::KeysVisit {
 public:
  KeysVisit(const CatfishClient& client, Session* session, std::span<const RectangleKey> keys,
            std::span<FindResult> results)
      : client_(client), session_(session), keys_(keys), results_(results) {}

  bool operator()(const Pending& pending, const NodeCopy& node) {
    if (pending.key != kAllKeys) return VisitFor(pending.key, node);
    for (uint32_t key = 0; key < keys_.size(); ++key) {
      if (!VisitFor(key, node)) return false;
    }
    return true;
  }

 private:
  bool VisitFor(uint32_t number, const NodeCopy& node) {
    const RectangleKey& key = keys_[number];
    FindResult& result = results_[number];
    if (!result.record.is_null()) return true;
    for (const Entry& entry : node.entries()) {
      if (node.head.level > 0) {
        if (!entry.box.Contains(key.box)) continue;
        if (!IsNodeOffset(entry.target, client_.tree_->layout)) return false;
        session_->pending.push_back({entry.target, node.head.level - 1, number});
      } else if (entry.id == key.id && entry.box == key.box) {
        if (!IsLeafEntry(entry, client_.owner_)) return false;
        result = {.record = rdma::GlobalAddress::FromBits(entry.target)};
        return true;
      }
    }
    return true;
  }

  const CatfishClient& client_;
  Session* session_;
  std::span<const RectangleKey> keys_;
  std::span<FindResult> results_;
};

coro::Async<StatusOr<FindResult>> CatfishClient::Find(const Key& key) {
  return FindOne(key);
}

coro::Task<StatusOr<FindResult>> CatfishClient::FindOne(Key key) {
  FindResult result;
  const std::span<const Key> keys(&key, 1);
  const std::span<FindResult> results(&result, 1);
  const Status status = co_await FindMany(keys, results);
  if (!status.ok()) co_return status;
  co_return result;
}

coro::Task<Status> CatfishClient::FindMany(std::span<const Key> keys, std::span<FindResult> results) {
  statistics_.lookups += keys.size();
  PooledSession pooled(this);
  Session& session = *pooled;
  if (!tree_.has_value() && !keys.empty() && !options_.by_call) {
    const Status described = co_await Describe(session);
    GANNET_CO_RETURN_IF_ERROR(described);
  }
  for (size_t first = 0; first < keys.size(); first += kGroup) {
    const size_t n = std::min(kGroup, keys.size() - first);
    const std::span<const Key> group = keys.subspan(first, n);
    const std::span<FindResult> found = results.subspan(first, n);
    const Status status = co_await FindGroup(session, group, found);
    GANNET_CO_RETURN_IF_ERROR(status);
  }
  co_return absl::OkStatus();
}

coro::Task<Status> CatfishClient::FindGroup(Session& session, std::span<const Key> keys,
                                            std::span<FindResult> results) {
  std::vector<uint8_t> settled(keys.size(), 0);
  std::ranges::fill(results, FindResult{});
  std::vector<RectangleKey> decoded;
  decoded.reserve(keys.size());
  for (const Key& key : keys) {
    const StatusOr<RectangleKey> rectangle = DecodeRectangleKey(key);
    if (rectangle.ok()) decoded.push_back(*rectangle);
  }
  // The owner says what is absent although it is no rectangle.
  for (int attempt = 0; decoded.size() == keys.size() && !options_.by_call && attempt < kMostAttempts; ++attempt) {
    session.pending.assign(1, {tree_->root, -1, kAllKeys});
    session.seen.clear();
    KeysVisit visit(*this, &session, decoded, results);
    const StatusOr<bool> read = co_await ReadNodes(session, visit);
    if (!read.ok()) co_return read.status();
    const double below_root = static_cast<double>(session.seen.size()) - 1;
    nodes_per_key_ += (std::max(below_root, 0.0) / static_cast<double>(keys.size()) - nodes_per_key_) / 8;
    if (!channel_->capabilities().line_consistent) {
      // Whether an image is believed is seen by its word, also that of a hit.
      const StatusOr<bool> confirmed = co_await ConfirmSeen(session);
      if (!confirmed.ok()) co_return confirmed.status();
      if (!*confirmed) {
        std::ranges::fill(results, FindResult{});
        continue;
      }
    }
    for (size_t i = 0; i < keys.size(); ++i) settled[i] = results[i].record.is_null() ? 0 : 1;
    if (session.too_large) break;
    if (!*read) continue;
    const Status status = co_await WitnessMisses(session, keys, results, &settled);
    GANNET_CO_RETURN_IF_ERROR(status);
    if (std::ranges::all_of(settled, [](uint8_t done) { return done != 0; })) break;
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (settled[i] != 0) {
      ++statistics_.one_sided;
      continue;
    }
    ++statistics_.fallbacks;
    const StatusOr<FindResult> found = co_await FindByCall(session, keys[i]);
    if (!found.ok()) co_return found.status();
    results[i] = *found;
  }
  co_return absl::OkStatus();
}

// Follows FindGroup for keys that are there.
ReadEstimate CatfishClient::Estimate(std::span<const Key> keys) const {
  const auto n = static_cast<double>(keys.size());
  if (options_.by_call) return {.calls = n, .keys = n};
  const double groups = std::ceil(n / static_cast<double>(kGroup));
  const double nodes = groups + n * nodes_per_key_;
  const auto node_bytes = static_cast<double>(tree_.has_value() ? tree_->layout.bytes : NodeLayout(kMostEntries).bytes);
  ReadEstimate estimate{.postings = groups * levels_ + std::floor(nodes / options_.reads_at_once),
                        .reads = nodes,
                        .calls = tree_.has_value() ? 0.0 : 1.0,
                        .bytes = nodes * node_bytes,
                        .keys = n};
  if (!channel_->capabilities().line_consistent) {
    estimate += {.postings = groups, .reads = nodes, .bytes = nodes * kWordBytes};
  }
  return estimate;
}

coro::Task<Status> CatfishClient::WitnessMisses(Session& session, std::span<const Key> keys,
                                                std::span<FindResult> results, std::vector<uint8_t>* settled) {
  std::vector<uint32_t> missed;
  std::vector<rdma::GlobalAddress> words;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    if ((*settled)[i] != 0) continue;
    missed.push_back(i);
    words.push_back(WordOf(keys[i]));
  }
  if (missed.empty()) co_return absl::OkStatus();
  const Status read = co_await ReadWords(session, words);
  GANNET_CO_RETURN_IF_ERROR(read);
  const std::vector<uint64_t> values(session.words.begin(), session.words.end());
  // The nodes' words are READ only now (see above).
  std::erase_if(session.seen, [&](const Seen& seen) { return seen.key != kAllKeys && (*settled)[seen.key] != 0; });
  std::vector<rdma::GlobalAddress> nodes;
  for (const Seen& seen : session.seen) nodes.emplace_back(owner_, seen.offset);
  const Status again = co_await ReadWords(session, nodes);
  GANNET_CO_RETURN_IF_ERROR(again);
  std::vector<uint8_t> changed(keys.size(), 0);
  bool root_changed = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (session.words[i] == session.seen[i].state) continue;
    if (session.seen[i].key == kAllKeys) {
      root_changed = true;
    } else {
      changed[session.seen[i].key] = 1;
    }
  }
  for (size_t i = 0; i < missed.size(); ++i) {
    const uint32_t key = missed[i];
    if (root_changed || changed[key] != 0 || (values[i] & rdma::kLockBit) != 0) continue;
    results[key].witness = {words[i], values[i]};
    (*settled)[key] = 1;
  }
  co_return absl::OkStatus();
}

coro::Task<StatusOr<FindResult>> CatfishClient::FindByCall(Session& session, Key key) {
  std::array<std::byte, 128> request;
  rdma::WireWriter writer(request);
  writer.PutU16(id_);
  PutKey(writer, key);
  const StatusOr<std::span<const std::byte>> response = co_await Call(session, kFind, writer.written());
  if (!response.ok()) co_return response.status();
  rdma::WireReader reader(*response);
  FindResult result;
  result.record = reader.GetAddress();
  if (result.record.is_null()) result.witness = GetWitness(reader);
  const rdma::GlobalAddress named = result.record.is_null() ? result.witness.word : result.record;
  if (!reader.Finish().ok() || named.is_null() || named.node() != owner_ || named.marked()) {
    co_return absl::DataLossError("the owner of a catfish index sent a malformed result of a find");
  }
  co_return result;
}

}  // namespace gannet::index::catfish
