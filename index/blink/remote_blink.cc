#include "index/blink/remote_blink.h"

#include <algorithm>
#include <array>

#include "base/runtime.h"

namespace gannet::index {
namespace blink {

template <class Keys>
rdma::GlobalAddress RemoteBlink<Keys>::ChildFor(const Key& key) const {
  Charge(Cost::kIndexStep, 2);  // a tree of nodes, and the node
  const Reading nodes(paths_.nodes());
  const auto* const node = nodes->Find(1, Keys::At(key));
  if (node == nullptr) return {};
  const int slot = ChildSlot<Keys>(node->image, node->keys, Keys::At(key));
  return slot < 0 ? rdma::GlobalAddress() : this->TargetOf(node->image, slot);
}

// The cached inner node above the leaves knows them.
template <class Keys>
size_t RemoteBlink<Keys>::LeavesFrom(const Cut& next, const Key& to, bool reverse, size_t entries,
                                     std::span<rdma::GlobalAddress, kMostReads> leaves) {
  const Reading nodes(paths_.nodes());
  const auto* const node = nodes->Find(1, Keys::PointOf(next, reverse));
  if (node == nullptr) return 0;
  const int first = ChildSlot<Keys>(node->image, node->keys, Keys::PointOf(next, reverse));
  if (first < 0) return 0;
  const auto separator = [node](int slot) -> decltype(auto) { return Keys::KeyAt(node->image, node->keys, slot); };
  std::array<int, Keys::kSlots> children;
  size_t n = 0;
  for (uint64_t used = node->image.template used<Entry>(); used != 0; used &= used - 1) {
    const int slot = std::countr_zero(used);
    if (!Keys::Knows(node->keys, slot)) continue;
    if (reverse ? separator(slot) <= separator(first) : separator(slot) >= separator(first) && separator(slot) <= to) {
      children[n++] = slot;
    }
  }
  std::sort(children.begin(), children.begin() + static_cast<ptrdiff_t>(n),
            [&](int a, int b) { return reverse ? separator(b) < separator(a) : separator(a) < separator(b); });
  size_t most = fill_.LeavesFor(entries, kMostReads);
  if (!reverse && n > 1) {
    const double skipped =
        Keys::ShareBefore(separator(children[0]), Keys::PointOf(next, reverse), separator(children[1]));
    most = std::min(most, fill_.LeavesBehind(skipped, entries, kMostReads));
  }
  n = std::min(n, most);
  for (size_t i = 0; i < n; ++i) {
    leaves[i] = this->TargetOf(node->image, children[i]);
    if (leaves[i].node() != owner_) return 0;
  }
  return n;
}

template <class Keys>
ReadEstimate RemoteBlink<Keys>::Estimate(std::span<const index::Key> keys) const {
  constexpr size_t kLooks = 8;
  size_t known = 0;
  const size_t looks = std::min(kLooks, keys.size());
  for (size_t i = 0; i < looks; ++i) {
    const Key key = Keys::KeyFrom(keys[i * keys.size() / looks]);
    known += ChildFor(key).is_null() ? 0 : 1;
  }
  const auto n = static_cast<double>(keys.size());
  const auto leaf_bytes = static_cast<double>(leaves_.leaf_bytes());
  const double unknown = looks == 0 ? 0 : n * static_cast<double>(looks - known) / static_cast<double>(looks);
  ReadEstimate estimate{.reads = n + unknown, .bytes = (n + unknown) * leaf_bytes, .keys = n};
  // An inner node of byte keys is READ with the low fences of its children, in another posting.
  const double of_unknown = Keys::kKeysElsewhere ? 3 : 2;
  estimate.postings = static_cast<double>((keys.size() + kMostReads - 1) / kMostReads) + of_unknown * unknown;
  estimate.lasting_postings = (of_unknown - 1) * unknown;
  if (!this->is_ready()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

template <class Keys>
ReadEstimate RemoteBlink<Keys>::Estimate(const ScanRange& range) const {
  ReadEstimate estimate = this->EstimateScan(range, Keys::kSlots / 2.0, Keys::kSlots * 0.7);
  const Key first = Keys::KeyFrom(range.reverse ? range.to : range.from);
  if (Reading(paths_.nodes())->Find(1, Keys::At(first)) == nullptr) {
    ++estimate.postings;
    ++estimate.lasting_postings;
  }
  if (!this->is_ready()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

template class RemoteBlink<IntegerKeys>;
template class RemoteBlink<ByteKeys>;

}  // namespace blink

std::shared_ptr<blink::SharedNodes> MakeBlinkCache(size_t max_bytes) {
  return std::make_shared<blink::SharedNodes>(max_bytes == 0 ? size_t{64} << 20 : max_bytes);
}

StatusOr<std::unique_ptr<RemoteIndex>> ConnectBlink(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                    const BlinkClientOptions& options) {
  return shared_leaf::Connect<blink::RemoteBlink>(channel, owner, id, options);
}

}  // namespace gannet::index
