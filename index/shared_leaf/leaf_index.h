// LeafIndex: the owner's side of an index of shared leaves. It changes them by the same code as clients
// (own_editors.h), or, where that is a change of one leaf which nobody else uses, at once.
//
// A kind of index derives its owner's side from this class: it adds the way to a leaf, its editor, and the parts of
// repair, load and check that concern what leads to leaves. Keys: IntegerKeys or ByteKeys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "index/index.h"
#include "index/service.h"
#include "index/shared_leaf/basic_leaf_index.h"
#include "index/shared_leaf/change/leaf_editor.h"
#include "index/shared_leaf/owner/own_editors.h"
#include "index/types.h"
#include "rdma/rpc.h"

namespace gannet::index::shared_leaf {

// Serves the clients of all indexes of `service` of one kind: `describe`, and the calls for blocks, changes and ranges.
// Before Node::Serve.
void RegisterLeafMethods(IndexService* service, rdma::MethodId describe, const char* kind);

template <class Keys>
class LeafIndex : public BasicLeafIndex<Keys> {
 public:
  using Base = BasicLeafIndex<Keys>;
  using typename Base::Schema;

  StatusOr<Change> Insert(Context& context, const index::Key& key, rdma::GlobalAddress record,
                          rdma::GlobalAddress* existing) override;
  StatusOr<Change> Remove(Context& context, const index::Key& key, rdma::GlobalAddress record) override;
  Status Replace(const index::Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) override;
  Status MakeEditor() final { return typename Editors::Pooled(&editors_, nullptr).status(); }
  void RepairAfter(rdma::NodeId node) override;
  Status EndClaimsOf(rdma::NodeId node) override;

  Status EndClaims(std::span<WordChange> claims) override;
  Status SetClaimRanges(std::vector<ClaimRange> ranges) override;

 protected:
  using typename Base::Entry;
  using typename Base::Image;
  using typename Base::Key;
  using typename Base::LeafCopy;
  using typename Base::Visit;
  using Editors = OwnEditors<LeafEditor<Keys>>;
  using Base::blocks_;
  using Base::first_;
  using Base::leaves_;
  using Base::schema_;
  using Base::service_;

  LeafIndex(IndexService* service, const Schema& schema, IndexRights rights, absl::Duration patience, const char* name);

  // Changes the leaf of the key, as `edit` changes its draft, by this thread and without a coroutine, where that is all
  // it takes. nullopt: it takes more, such as a split or the end of a claim; or `edit` has returned false.
  // The leaf that `editor` changed last often covers the key, too: then it is not searched for.
  template <class Edit>
  std::optional<Change> ChangeAtOnce(typename Editors::Pooled* editor, const Key& key, const Edit& edit);

  void StoreNode(const FreeBlock& block, uint8_t level, std::span<const Entry> entries, const Key& low,
                 const std::optional<Key>& next_low, rdma::GlobalAddress right) override;
  virtual std::unique_ptr<LeafEditor<Keys>> NewEditor(OwnChannel* channel) = 0;

  Editors editors_;

 private:
  // Repairs a leaf whose lock a lost node holds.
  void Repair(std::byte* leaf, bool is_linked);
  // Makes the leaves whole that a lost node keeps, and takes their locks away. Its lease must have ended.
  void EndKept(rdma::NodeId holder);
};

// The owner's side of `Index<Keys>`, added to `service`.
template <template <class> class Index, class Options>
StatusOr<std::unique_ptr<LocalIndex>> Create(IndexService* service, IndexId id, KeyKind key_kind,
                                             const Options& options) {
  StatusOr<std::unique_ptr<LocalIndex>> index;
  if (key_kind == KeyKind::kInteger) {
    index = Index<IntegerKeys>::Create(service, {}, options);
  } else {
    GANNET_RETURN_IF_ERROR(CheckMaxKeyBytes(options.max_key_bytes, kShortKeyBytes));
    index = Index<ByteKeys>::Create(service, {KeyedHash::DrawSeed(), options.max_key_bytes}, options);
  }
  // A node of very many tables has no channel for each.
  if (index.ok()) dynamic_cast<AnyLeafIndex&>(**index).MakeEditor().IgnoreError();
  if (index.ok()) GANNET_RETURN_IF_ERROR(service->Add(id, index->get()));
  return index;
}

}  // namespace gannet::index::shared_leaf
