// RolexIndex: the owner's side. Its models lead it to leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "index/model/trainer.h"
#include "index/rolex/directory.h"
#include "index/rolex/editor.h"
#include "index/rolex/model_cache.h"
#include "index/rolex/retraining.h"
#include "index/rolex/rolex.h"
#include "index/shared_leaf/leaf_index.h"

namespace gannet::index::rolex {

// What tests need to know of an index, with either kind of keys.
class RolexIndex {
 public:
  virtual ~RolexIndex() = default;
  // Trains what clients have queued, now and in this thread: a trainer's thread does it otherwise.
  virtual void TrainNow() = 0;
  // The tables in the owner's memory, one per model. Valid as long as the index does not train.
  virtual std::vector<std::byte*> synonym_tables() const = 0;
  virtual uint64_t queue_offset() const = 0;
};

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class BasicRolexIndex final : public shared_leaf::LeafIndex<Keys>, public RolexIndex {
 public:
  using Base = shared_leaf::LeafIndex<Keys>;
  using typename Base::Schema;

  static StatusOr<std::unique_ptr<BasicRolexIndex>> Create(IndexService* service, const Schema& schema,
                                                           const RolexOptions& options);
  ~BasicRolexIndex() override;

  rdma::MethodId describe_method() const override { return kDescribe; }
  void Describe(rdma::WireWriter& writer) const override;
  Statistics statistics() override;
  Status CheckStructure() override;
  void RepairAfter(rdma::NodeId node) override;

  void TrainNow() override { retraining_->TrainNow(); }
  std::vector<std::byte*> synonym_tables() const override;
  uint64_t queue_offset() const override { return static_cast<uint64_t>(queue_ - memory_); }
  const Directory<Keys>& directory() const { return directory_; }

 private:
  class Load;
  using Base::blocks_;
  using Base::first_;
  using Base::leaves_;
  using Base::schema_;
  using Base::service_;
  using typename Base::Entry;
  using typename Base::Key;
  using typename Base::LeafCopy;
  using typename Base::Point;

  class OwnGuide final : public Guide<Keys> {
   public:
    explicit OwnGuide(const BasicRolexIndex* index) : index_(index) {}
    coro::Task<StatusOr<rdma::GlobalAddress>> StartOf(Point point, int attempt) override;
    void NoteLeaf(const NewLeaf<Keys>&) override {}
    coro::Task<StatusOr<typename Guide<Keys>::Synonyms>> SynonymsFor(Key key) override {
      co_return *KnownSynonyms(key);
    }
    std::optional<typename Guide<Keys>::Synonyms> KnownSynonyms(const Key& key) const override;
    rdma::GlobalAddress queue() const override { return {index_->first_.node(), index_->queue_offset()}; }

   private:
    const BasicRolexIndex* index_;
  };

  BasicRolexIndex(IndexService* service, const Schema& schema, const RolexOptions& options)
      : Base(service, schema, options.rights, options.patience, "ROLEX index"),
        memory_(service->node().memory().data()),
        directory_(service, options.rights),
        guide_(this) {}

  Status Locate(const Point& point, LeafCopy* place) const override;
  std::unique_ptr<shared_leaf::LeafEditor<Keys>> NewEditor(shared_leaf::OwnChannel* channel) override {
    return std::make_unique<Editor<Keys>>(&channel->leaves, &schema_, &channel->blocks, &guide_);
  }
  std::unique_ptr<typename Base::Load> NewLoad(LoadRuns entries, double fill, size_t most_parts) override;
  // The place where a search begins (Guide::StartOf).
  rdma::GlobalAddress StartOf(Point point, int attempt) const;
  // The leaf that the synonym table knows furthest right for the point; null if it knows none. Where it begins is known
  // only approximately.
  rdma::GlobalAddress SynonymFor(const Point& point) const;

  std::byte* const memory_;
  Directory<Keys> directory_;
  OwnGuide guide_;
  std::unique_ptr<Retraining<Keys>> retraining_;
  std::byte* queue_ = nullptr;
};

}  // namespace gannet::index::rolex
