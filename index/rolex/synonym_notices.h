// SynonymNotices: adds new leaves to the synonym tables of their models, in the postings of a transaction's inserts
// (shared_leaf/change/split_notices.h): the slots are taken together with the locks of the leaves, and written with
// their changes. A slot whose leaf is not made after all stays empty, as if its client had died (synonyms.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "index/rolex/editor.h"
#include "index/rolex/model_cache.h"
#include "index/rolex/synonyms.h"
#include "index/shared_leaf/change/split_notices.h"
#include "index/shared_leaf/leaf/posting.h"

namespace gannet::index::rolex {

template <class Keys>
class SynonymNotices final : public shared_leaf::SplitNotices<Keys> {
 public:
  using IndexEntry = typename Keys::IndexEntry;

  // All must outlive this. The editor is there once a leaf is added.
  SynonymNotices(std::optional<Editor<Keys>>* editor, const ModelCache<Keys>* models, rdma::NodeId owner)
      : editor_(editor), models_(models), owner_(owner) {}

  void Begin(uint64_t connection) override;
  bool Add(const IndexEntry& leaf) override;
  void AppendLocks(std::vector<rdma::Operation>* operations) override;
  coro::Task<void> TakeLocks(Status posted, std::span<const rdma::Operation> operations) override;
  void AppendChanges(absl::FunctionRef<bool(const IndexEntry&)> is_made,
                     std::vector<rdma::Operation>* operations) override;
  coro::Task<void> TakeChanges(Status posted) override;
  coro::Task<void> Finish() override;

 private:
  struct Leaf {
    IndexEntry leaf;
    rdma::GlobalAddress table;
    uint64_t number = 0;  // of its low fence, for the model
    size_t take_at = 0;   // place of its FAA in the caller's posting
    std::optional<uint64_t> slot = {};
  };
  // A table that is due for training.
  struct Due {
    rdma::GlobalAddress table;
    bool urgent = false;
  };

  std::optional<Editor<Keys>>* editor_;
  const ModelCache<Keys>* models_;
  rdma::NodeId owner_;
  uint64_t connection_ = 0;
  std::vector<Leaf> leaves_;
  std::vector<Due> due_;
  shared_leaf::Posting changes_;
};

}  // namespace gannet::index::rolex
