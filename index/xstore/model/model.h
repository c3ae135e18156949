// Model: one generation of XModel at the owner: the top model, the sub-models' lines and their translation tables, over
// the leaves of a tree.
//
// One thread (the trainer's) makes and retrains it; any thread inside the epoch may read it at the same time. Its
// blocks return to their pools when it is destroyed, so a replaced model must be kept for a grace period.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/thread.h"
#include "index/index.h"
#include "index/xstore/model/sub_model_line.h"
#include "index/xstore/model/top_model.h"
#include "index/xstore/model/translation_table.h"
#include "index/xstore/tree/tree.h"

namespace gannet::index::xstore {

// The pools of the blocks of a tree's models: a block keeps its use (block_pool.h).
struct ModelPools {
  std::shared_ptr<BlockPool> lines = std::make_shared<BlockPool>();
  std::shared_ptr<BlockPool> tables = std::make_shared<BlockPool>();
};

template <int W>
class Model {
 public:
  using Words = KeyWords<W>;

  // Trains over all leaves of `tree` (which must outlive it), with as many sub-models as `count_for(keys)` says.
  // Concurrent changes of the tree make it stale, not wrong.
  static StatusOr<std::unique_ptr<Model>> Train(Tree<W>* tree, const ModelPools& pools, uint64_t generation,
                                                const std::function<uint32_t(uint64_t keys)>& count_for);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Trains one sub-model on its current leaves. Several threads may train different ones at the same time.
  Status Retrain(Context& context, uint32_t sub_model);

  // Called when a newer model has taken over: from now on the lines name no generation, so that a client which READs
  // one learns that its model is old. Otherwise they would look current until the grace period ends, and clients of the
  // old model would have to follow right siblings again and again.
  void Disown();

  const TopModel& top() const { return top_; }
  uint64_t generation() const { return generation_; }
  uint32_t sub_models() const { return top_.sub_models(); }

  // The blocks of the lines, by block number.
  std::span<const uint32_t> directory() const { return directory_; }
  SubModelLine LineOf(uint32_t sub_model) const;
  // The translation table that a line names, as words in registered memory.
  const std::byte* TableAt(uint32_t block_number) const { return memory_ + uint64_t{block_number} * kLineBytes; }

  // The functions below are for the trainer, while no sub-model is being trained.
  uint64_t keys() const { return keys_; }
  uint64_t table_entries() const { return table_entries_; }
  double leaves_per_lookup() const {
    return table_entries_ == 0 ? 0 : lookup_leaves_ / static_cast<double>(table_entries_);
  }
  double mean_error() const { return table_entries_ == 0 ? 0 : error_ / static_cast<double>(table_entries_); }
  double mean_range() const { return range_ / static_cast<double>(sub_models()); }

 private:
  struct LeafInfo {
    Words low;
    Words high;
    TableEntry entry;
  };
  // The owner's data about a sub-model.
  struct Part {
    Words anchor;  // a key in its first leaf, or left of it
    std::byte* table = nullptr;
    uint32_t size = 0;  // of the table
    uint32_t keys = 0;  // in the leaves that begin in this sub-model
    Quality quality;
  };

  Model(Tree<W>* tree, const ModelPools& pools, uint64_t generation);

  static std::vector<LeafInfo> CollectLeaves(Tree<W>* tree, Projection::Learner<W>* learner, uint64_t* keys);
  Status AllocateLines(Context& context);
  std::byte* LineAt(uint32_t sub_model) const {
    return line_blocks_[sub_model / kLinesPerBlock] + sub_model % kLinesPerBlock * kLineBytes;
  }
  Status TrainPart(Context& context, uint32_t index, std::span<const LeafInfo> leaves);
  void JudgeKeys(uint32_t index, std::span<const LeafInfo> leaves, SubModel* model, Quality* quality) const;

  Tree<W>* tree_;
  ModelPools pools_;
  std::byte* memory_;
  uint64_t generation_;
  TopModel top_;
  std::vector<uint32_t> directory_;
  std::vector<Part> parts_;  // each used by the thread that trains it only
  std::vector<std::byte*> line_blocks_;
  Mutex sums_mutex_;  // for the sums over all parts
  uint64_t keys_ = 0;
  uint64_t table_entries_ = 0;
  double lookup_leaves_ = 0;
  double error_ = 0;
  double range_ = 0;
};

}  // namespace gannet::index::xstore
