#include "index/xstore/model/model.h"

#include <algorithm>
#include <cmath>

#include "index/backoff.h"

namespace gannet::index::xstore {
namespace {

constexpr size_t kSlotsPerGuard = 1 << 16;  // a long walk must not delay the grace period
constexpr size_t kMaxSamples = 1 << 16;     // of the keys' distribution, for the top model

size_t TableBytes(uint32_t entries) {
  return entries * kWordBytes;
}

}  // namespace

template <int W>
Model<W>::Model(Tree<W>* tree, const ModelPools& pools, uint64_t generation)
    : tree_(tree), pools_(pools), memory_(tree->LeafAt(0).at()), generation_(generation) {}

template <int W>
Model<W>::~Model() {
  for (const Part& part : parts_) {
    if (part.table != nullptr) pools_.tables->Release(part.table, TableBytes(part.size));
  }
  for (std::byte* block : line_blocks_) pools_.lines->Release(block, kLinesPerBlock * kLineBytes);
}

template <int W>
auto Model<W>::CollectLeaves(Tree<W>* tree, Projection::Learner<W>* learner, uint64_t* keys) -> std::vector<LeafInfo> {
  std::vector<LeafInfo> leaves;
  typename Tree<W>::Snapshot snapshot;
  snapshot.high = Words::Lowest();
  bool more = true;
  for (Words key = Words::Lowest(); more;) {
    IndexService::Guard guard(&tree->service());
    for (size_t slots = 0; slots < kSlotsPerGuard && more; slots += LeafLayout<W>::kSlots) {
      const Leaf<W> leaf = tree->Look(key, Words::Lowest(), Words::Highest(), &snapshot);
      leaves.push_back(
          {snapshot.low, snapshot.high, {tree->NumberOf(leaf), snapshot.meta.incarnation, snapshot.meta.count}});
      *keys += snapshot.meta.count;
      for (int j = 0; j < snapshot.pairs.size; ++j) learner->Add(snapshot.pairs.pairs[j].key);
      more = snapshot.high != Words::Highest();
      if (more) key = snapshot.high.Next();
      if (snapshot.meta.right != 0) tree->LeafAt(snapshot.meta.right).PrefetchAll();
    }
  }
  return leaves;
}

template <int W>
StatusOr<std::unique_ptr<Model<W>>> Model<W>::Train(Tree<W>* tree, const ModelPools& pools, uint64_t generation,
                                                    const std::function<uint32_t(uint64_t)>& count_for) {
  Projection::Learner<W> learner;
  uint64_t keys = 0;
  const std::vector<LeafInfo> leaves = CollectLeaves(tree, &learner, &keys);
  std::unique_ptr<Model> model(new Model(tree, pools, generation));

  const Projection projection = learner.Learn();
  std::vector<uint64_t> samples;
  const size_t stride = leaves.size() / kMaxSamples + 1;
  if (keys > 0) {
    samples.push_back(projection(learner.least()));
    for (size_t i = stride; i < leaves.size(); i += stride) samples.push_back(projection(leaves[i].low));
    samples.push_back(projection(learner.greatest()));
  }
  // Concurrent splits may have given a fence twice.
  std::sort(samples.begin(), samples.end());
  model->top_ = TopModel::Train(projection, samples, count_for(keys),
                                W == 1 ? TopModel::kSegmentsOfIntegers : TopModel::kMaxSegments);

  model->parts_.resize(model->top_.sub_models());
  size_t first = 0;  // first leaf that the sub-model overlaps
  for (uint32_t i = 0; i < model->top_.sub_models(); ++i) {
    IndexService::Guard guard(&tree->service());
    if (i == 0) GANNET_RETURN_IF_ERROR(model->AllocateLines(guard.context()));
    while (first + 1 < leaves.size() && model->top_.Locate(leaves[first].high).sub_model < i) ++first;
    size_t end = first + 1;
    while (end < leaves.size() && model->top_.Locate(leaves[end].low).sub_model <= i) ++end;
    GANNET_RETURN_IF_ERROR(
        model->TrainPart(guard.context(), i, std::span<const LeafInfo>(leaves).subspan(first, end - first)));
    first = end - 1;
  }
  return model;
}

template <int W>
Status Model<W>::AllocateLines(Context& context) {
  for (uint32_t i = 0; i < top_.sub_models(); i += kLinesPerBlock) {
    StatusOr<std::byte*> block = pools_.lines->Allocate(context, kLinesPerBlock * kLineBytes);
    if (!block.ok()) return block.status();
    line_blocks_.push_back(*block);
    directory_.push_back(static_cast<uint32_t>((*block - memory_) / static_cast<ptrdiff_t>(kLineBytes)));
  }
  return absl::OkStatus();
}

template <int W>
Status Model<W>::TrainPart(Context& context, uint32_t index, std::span<const LeafInfo> leaves) {
  leaves = leaves.first(std::min<size_t>(leaves.size(), kMaxTableEntries));
  Part& part = parts_[index];
  std::vector<LeafSpan> spans;
  spans.reserve(leaves.size());
  uint32_t keys = 0;
  Charge(Cost::kTrainKey, leaves.size() * 2);  // for the fences of leaves
  for (const LeafInfo& leaf : leaves) {
    const TopModel::Place low = top_.Locate(leaf.low);
    const TopModel::Place high = top_.Locate(leaf.high);
    spans.push_back({low.sub_model < index ? 0.0 : low.x, high.sub_model > index ? 1.0 : high.x});
    if (low.sub_model == index) keys += leaf.entry.count;
  }
  SubModel sub_model = TrainSubModel(spans);
  Quality quality = Judge(sub_model, spans);
  JudgeKeys(index, leaves, &sub_model, &quality);

  const auto size = static_cast<uint32_t>(leaves.size());
  StatusOr<std::byte*> table = pools_.tables->Allocate(context, TableBytes(size));
  if (!table.ok()) return table.status();
  for (uint32_t i = 0; i < size; ++i) StoreWord(*table + i * kWordBytes, leaves[i].entry.Pack());
  const SubModelLine line{.model = sub_model,
                          .table = static_cast<uint32_t>((*table - memory_) / static_cast<ptrdiff_t>(kLineBytes)),
                          .index = index,
                          .generation = generation_};
  line.Store(LineAt(index));
  if (part.table != nullptr) pools_.tables->Retire(context, part.table, TableBytes(part.size));

  const std::lock_guard lock(sums_mutex_);
  keys_ = keys_ - part.keys + keys;
  table_entries_ = table_entries_ - part.size + size;
  lookup_leaves_ += static_cast<double>(quality.lookup_leaves) - static_cast<double>(part.quality.lookup_leaves);
  error_ += static_cast<double>(quality.error) - static_cast<double>(part.quality.error);
  range_ += static_cast<double>(quality.range) - static_cast<double>(part.quality.range);
  part = {leaves.front().low, *table, size, keys, quality};
  return absl::OkStatus();
}

// Visits all keys of a sub-model again, and measures their distance from the line. A leaf that has changed since then
// must be READ whole.
template <int W>
void Model<W>::JudgeKeys(uint32_t index, std::span<const LeafInfo> leaves, SubModel* model, Quality* quality) const {
  double spread = 0;
  double least = 0;
  double most = 0;
  typename Tree<W>::Snapshot snapshot;
  for (size_t l = 0; l < leaves.size(); ++l) {
    const auto leaf = static_cast<double>(l);
    const auto count = static_cast<int>(leaves[l].entry.count);
    if (!tree_->TrySnapshot(tree_->LeafAt(leaves[l].entry.leaf), Words::Lowest(), Words::Highest(), &snapshot) ||
        snapshot.low != leaves[l].low || snapshot.pairs.size != count) {
      spread = std::max(spread, 1.0);
      continue;
    }
    Charge(Cost::kTrainKey, static_cast<uint64_t>(count));
    for (int slot = 0; slot < count; ++slot) {
      const TopModel::Place place = top_.Locate(snapshot.pairs.pairs[slot].key);
      if (place.sub_model != index) continue;
      const double at = model->Line(place.x);
      spread = std::max({spread, leaf + static_cast<double>(slot) / count - at, at - leaf - (slot + 1.0) / count});
      if (std::floor(at) == leaf) continue;
      const double error = (leaf - at) * LeafLayout<W>::kSlots + slot;
      least = std::min(least, error);
      most = std::max(most, error);
    }
  }
  model->spread = EncodeError(spread);
  quality->range = static_cast<float>(most - least);
}

template <int W>
Status Model<W>::Retrain(Context& context, uint32_t sub_model) {
  std::vector<LeafInfo> leaves;
  typename Tree<W>::Snapshot snapshot;
  for (Words key = parts_[sub_model].anchor; leaves.size() < kMaxTableEntries; key = snapshot.high.Next()) {
    // No pairs, only the fences.
    const Leaf<W> leaf = tree_->Look(key, Words::Highest(), Words::Lowest(), &snapshot);
    if (!leaves.empty() && top_.Locate(snapshot.low).sub_model > sub_model) break;
    if (top_.Locate(snapshot.high).sub_model >= sub_model) {
      leaves.push_back(
          {snapshot.low, snapshot.high, {tree_->NumberOf(leaf), snapshot.meta.incarnation, snapshot.meta.count}});
    }
    if (snapshot.high == Words::Highest()) break;
  }
  return TrainPart(context, sub_model, leaves);
}

template <int W>
void Model<W>::Disown() {
  for (uint32_t i = 0; i < sub_models(); ++i) SubModelLine().Store(LineAt(i));
}

template <int W>
SubModelLine Model<W>::LineOf(uint32_t sub_model) const {
  SubModelLine line;
  for (Backoff backoff; !line.Load(LineAt(sub_model)); backoff.Pause()) {
  }
  return line;
}

#define GANNET_INSTANTIATE(W) template class Model<W>;
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
