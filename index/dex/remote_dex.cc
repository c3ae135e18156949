#include "index/dex/remote_dex.h"

#include <algorithm>
#include <cmath>

namespace gannet::index {
namespace dex {

template <class Keys>
void RemoteDex<Keys>::Forget(const index::Key& key) {
  LeafCopy leaf;
  if (this->is_ready() && paths_.FindLeaf(Keys::At(Keys::KeyFrom(key)), &leaf)) paths_.Forget(leaf.address);
}

template <class Keys>
rdma::GlobalAddress RemoteDex<Keys>::ExpectLeaf(const Key& key) {
  // Others may have filled the cache, and this client does not know the schema yet.
  if (!this->is_ready()) return {};
  const std::optional<blink::Start> start = paths_.StartFor(Keys::At(key), 0);
  return start.has_value() && start->above == 1 ? start->node : rdma::GlobalAddress();
}

template <class Keys>
size_t RemoteDex<Keys>::LeavesFrom(const Cut& next, const Key& to, bool reverse, size_t entries,
                                   std::span<rdma::GlobalAddress, kMostReads> leaves) {
  const size_t most = fill_.LeavesFor(entries, kMostReads);
  return paths_.LeavesFrom(Keys::PointOf(next, reverse), to, reverse, std::span(leaves).first(most));
}

template <class Keys>
ReadEstimate RemoteDex<Keys>::Estimate(std::span<const index::Key> keys) const {
  constexpr size_t kLooks = 8;
  const size_t looks = std::min(kLooks, keys.size());
  double levels = 0;   // to READ
  double missing = 0;  // lookups that READ anything
  for (size_t i = 0; i < looks; ++i) {
    const int read = paths_.LevelsToRead(Keys::At(Keys::KeyFrom(keys[i * keys.size() / looks])));
    levels += read;
    missing += read > 0 ? 1 : 0;
  }
  const auto n = static_cast<double>(keys.size());
  const double share = looks == 0 ? 0 : n / static_cast<double>(looks);
  levels *= share;
  missing *= share;
  ReadEstimate estimate{.reads = levels, .bytes = levels * static_cast<double>(leaves_.leaf_bytes()), .keys = n};
  // The leaves come by one posting, if they are all that is missing. An inner node of byte keys is READ with the low
  // fences of its children, in another posting.
  const double inner = levels - missing;
  const double of_inner = Keys::kKeysElsewhere ? 2 : 1;
  estimate.lasting_postings = of_inner * inner;
  estimate.postings = estimate.lasting_postings + std::ceil(missing / static_cast<double>(kMostReads));
  if (!this->is_ready()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

template <class Keys>
ReadEstimate RemoteDex<Keys>::Estimate(const ScanRange& range) const {
  ReadEstimate estimate = this->EstimateScan(range, Keys::kSlots / 2.0, Keys::kSlots * 0.7);
  const Key first = Keys::KeyFrom(range.reverse ? range.to : range.from);
  const int levels = paths_.LevelsToRead(Keys::At(first));
  if (levels == 0) {
    estimate.reads = std::max(estimate.reads - 1, 0.0);
    estimate.postings = std::max(estimate.postings - 1, 0.0);
  } else {
    estimate.postings += levels - 1;
    estimate.lasting_postings += levels - 1;
  }
  if (!this->is_ready()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

template class RemoteDex<shared_leaf::IntegerKeys>;
template class RemoteDex<shared_leaf::ByteKeys>;

}  // namespace dex

StatusOr<std::unique_ptr<RemoteIndex>> ConnectDex(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                  const DexClientOptions& options) {
  return shared_leaf::Connect<dex::RemoteDex>(channel, owner, id, options);
}

}  // namespace gannet::index
