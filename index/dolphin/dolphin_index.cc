#include "index/dolphin/dolphin_index.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "index/shared_leaf/basic_leaf_index_impl.h"
#include "index/shared_leaf/leaf/schema_wire.h"
#include "index/shared_leaf/owner/own_leaves_impl.h"

namespace gannet::index::dolphin {

using shared_leaf::FreeBlock;
using shared_leaf::LeafFormat;

template <class Keys>
StatusOr<std::unique_ptr<DolphinIndex<Keys>>> DolphinIndex<Keys>::Create(IndexService* service, IndexId id,
                                                                         const Schema& schema,
                                                                         const DolphinOptions& options) {
  if (static_cast<size_t>(service->fabric().num_nodes()) > kMostNodes) {
    return absl::InvalidArgumentError(absl::StrCat("an index of the kind dolphin is for at most ", kMostNodes,
                                                   " nodes, not ", service->fabric().num_nodes(),
                                                   "; choose another kind"));
  }
  std::unique_ptr<DolphinIndex> index(new DolphinIndex(service, id, schema, options));
  rdma::SlabCache slab(&service->slab());
  Context context{.slab = &slab, .epoch = nullptr};
  for (const Key& low : Keys::FirstLows()) {
    const StatusOr<FreeBlock> block = index->blocks_.Take(context);
    if (!block.ok()) return block.status();
    index->firsts_.push_back({low, block->address});
  }
  index->first_ = index->map_.first = index->firsts_[0].address;
  GANNET_RETURN_IF_ERROR(index->art_.MakeRoot(context, index->first_));
  GANNET_RETURN_IF_ERROR(index->art_.Build(context, index->FirstLeaves()));
  rdma::GlobalAddress right;
  std::optional<Key> next_low;
  for (auto first = index->firsts_.rbegin(); first != index->firsts_.rend(); ++first) {
    std::byte* const at = service->node().memory().data() + first->address.offset();
    StoreNewLeaf<Keys>(schema, at, {}, first->low, next_low, right);
    StoreWord(at, NextLife(LoadWord(at)));  // nobody knows the block yet
    right = first->address;
    next_low = first->low;
  }
  return index;
}

template <class Keys>
DolphinIndex<Keys>::DolphinIndex(IndexService* service, IndexId id, const Schema& schema, const DolphinOptions& options)
    : Base(service, schema,
           LeafFormat{.bytes = schema.leaf_bytes(), .begin = BeginBlock, .fence_lines = schema.fence_lines()},
           options.rights, options.patience, "index of the kind dolphin"),
      book_(HolderBook::Of(service->node().memory().data(), service->node().id(), id)),
      art_(&service->fabric(), &service->node(), shared_leaf::MaxKeyBytesOf<Keys>(schema), options.rights),
      map_{&leaves_, &art_, {}, shared_leaf::MaxKeyBytesOf<Keys>(schema)},
      editors_(service, &blocks_, options.patience, [this](shared_leaf::OwnChannel* channel) {
        return std::make_unique<OwnEditor>(channel, &schema_, book_.get(), &map_);
      }) {}

template <class Keys>
DolphinIndex<Keys>::~DolphinIndex() {
  rdma::SlabCache slab(&service_->slab());
  art_.Close(slab);
}

template <class Keys>
std::vector<ArtLeaf> DolphinIndex<Keys>::FirstLeaves() const {
  std::vector<ArtLeaf> leaves;
  for (const FirstLeaf& first : firsts_) leaves.push_back({Keys::ArtKey(first.low), first.address});
  return leaves;
}

template <class Keys>
void DolphinIndex<Keys>::Describe(rdma::WireWriter& writer) const {
  shared_leaf::PutSchema<Keys>(schema_, writer);
  writer.PutU8(static_cast<uint8_t>(schema_.shape_lines()));
  writer.PutU64(art_.root().offset());
  writer.PutU64(first_.offset());
}

template <class Keys>
template <class MakeChange>
auto DolphinIndex<Keys>::ByEditor(Context* context, const MakeChange& change) {
  typename Editors::Pooled editor(&editors_, context);
  using Result = decltype(editor.Run(change(*editor)));
  if (!editor.status().ok()) return Result(editor.status());
  Result result = editor.Run(change(*editor));
  const auto stays_in_use = [](const auto& made) {
    if constexpr (requires { made.status(); }) {
      return absl::IsUnavailable(made.status());
    } else {
      return absl::IsUnavailable(made);
    }
  };
  if (!stays_in_use(result)) return result;
  {
    std::lock_guard lock(repair_mutex_);
    if (to_repair_.empty() || !FinishRepairs(&editor)) return result;
  }
  return editor.Run(change(*editor));
}

template <class Keys>
StatusOr<Change> DolphinIndex<Keys>::Insert(Context& context, const index::Key& key, rdma::GlobalAddress record,
                                            rdma::GlobalAddress* existing) {
  GANNET_RETURN_IF_ERROR(Keys::CheckLength(schema_, key));
  return ByEditor(&context, [&](OwnEditor& editor) { return editor.Insert(Keys::KeyFrom(key), record, existing); });
}

template <class Keys>
StatusOr<Change> DolphinIndex<Keys>::Remove(Context& context, const index::Key& key, rdma::GlobalAddress record) {
  return ByEditor(&context, [&](OwnEditor& editor) { return editor.Remove(Keys::KeyFrom(key), record); });
}

template <class Keys>
Status DolphinIndex<Keys>::Replace(const index::Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  return ByEditor(nullptr, [&](OwnEditor& editor) { return editor.Replace(Keys::KeyFrom(key), from, to); });
}

// A leaf whose holder has died in the middle of a change cannot be read, and the walk must not end there: a new leaf
// that it has locked, too, would be opened although nothing leads to it.
template <class Keys>
Status DolphinIndex<Keys>::ForEachLinked(const LeafRepair<Keys>& repair, rdma::NodeId client,
                                         const std::function<void(rdma::GlobalAddress)>& visit) const {
  LeafCopy leaf;
  leaf.address = first_;
  Key low = Keys::kLeast;
  for (uint64_t most = leaves_.Most();; --most) {
    if (most == 0) return leaves_.EndlessError();
    const bool is_read =
        repair.Peek(client, leaf.address, &leaf.image) || leaves_.Read(leaf.address, &leaf.image) == LeafLook::kWhole;
    if (!is_read || Keys::LowOf(leaf.image) != low || !Keys::CoversKey(leaf.image, low)) {
      GANNET_RETURN_IF_ERROR(Locate(Keys::At(low), &leaf));  // others have changed the way meanwhile
    }
    visit(leaf.address);
    if (Keys::IsLast(leaf.image)) return absl::OkStatus();
    low = Keys::NextLow(leaf.image);
    leaf.address = leaf.image.right();
  }
}

template <class Keys>
bool DolphinIndex<Keys>::FinishRepairs(typename Editors::Pooled* editor) {
  LeafRepair<Keys> repair(&service_->fabric(), editor->leaves().channel(), &editor->worker(), &blocks_, &schema_,
                          leaves_.patience_nanos());
  const auto cas = [editor](const rdma::Operation& wanted) -> StatusOr<uint64_t> {
    rdma::Operation operation[] = {wanted};
    GANNET_RETURN_IF_ERROR(editor->Run(editor->leaves().PostHint(operation)));
    return operation[0].result;
  };
  std::erase_if(to_repair_, [&](rdma::NodeId node) {
    blocks_.BeginRepair(node);
    const Status repaired = repair.RepairAfter(node, [&](const std::function<void(rdma::GlobalAddress)>& visit) {
      return ForEachLinked(repair, node, visit);
    });
    blocks_.EndRepair();
    return repaired.ok() && art_.RepairAfter(node, cas).ok();
  });
  return to_repair_.empty();
}

template <class Keys>
void DolphinIndex<Keys>::RepairAfter(rdma::NodeId node) {
  if (blocks_.rights() == IndexRights::kOwnerOnly) return;  // it could lock nothing, and has borrowed nothing
  std::lock_guard lock(repair_mutex_);
  to_repair_.insert(node);
  typename Editors::Pooled editor(&editors_, nullptr);
  if (editor.status().ok()) FinishRepairs(&editor);
}

template <class Keys>
void DolphinIndex<Keys>::StoreNode(const FreeBlock& block, uint8_t /*level*/, std::span<const Entry> entries,
                                   const Key& low, const std::optional<Key>& next_low, rdma::GlobalAddress right) {
  StoreNewLeaf<Keys>(schema_, service_->node().memory().data() + block.address.offset(), entries, low, next_low, right);
}

template <class Keys>
Status DolphinIndex<Keys>::CheckEmpty() const {
  size_t met = 0;
  bool empty = true;
  GANNET_RETURN_IF_ERROR(this->ForEachNode([&](const LeafCopy& leaf) {
    empty = empty && met < firsts_.size() && leaf.address == firsts_[met].address &&
            leaf.image.template count<Entry>() == 0;
    ++met;
  }));
  if (empty) return absl::OkStatus();
  return absl::FailedPreconditionError("a bulk load needs an empty index");
}

// The leaves that it has made live before the first ones lead to them. Nobody changes the index, so the changes of
// first leaves are not disturbed.
template <class Keys>
class DolphinIndex<Keys>::Load final : public Base::Load {
 public:
  Load(DolphinIndex* index, LoadRuns entries, double fill, size_t most_parts)
      : Base::Load(index, std::move(entries), fill, index->schema_.slots(), most_parts, index->firsts_),
        index_(index) {}

  Status Finish(Context& context) override {
    GANNET_RETURN_IF_ERROR(index_->CheckEmpty());
    typename Editors::Pooled editor(&index_->editors_, &context);
    GANNET_RETURN_IF_ERROR(editor.status());
    for (size_t n = 0; n < blocks_.size(); ++n) {
      if (!this->IsFirst(n)) GANNET_RETURN_IF_ERROR(editor.Run(editor->Enliven(blocks_[n])));
    }
    LoadRuns::Reader entries(this->entries_);
    std::vector<ArtLeaf> leaves;
    for (size_t n = 0; n < this->shape_.leaves(); ++n) {
      leaves.push_back({Keys::ArtKey(this->LowOfLeaf(n, &entries)), blocks_[n].address});
    }
    // Without memory for inner nodes, the first leaves and right links lead to all others. Changes that come that way
    // add the nodes when there is memory again.
    const Status built = index_->art_.Build(context, leaves);
    if (!absl::IsResourceExhausted(built)) GANNET_RETURN_IF_ERROR(built);
    this->finished_ = true;  // nodes lead to the leaves; the rest takes no memory
    for (size_t run = 0; run < this->firsts_.size(); ++run) {
      const size_t n = this->shape_.FirstLeafOfRun(run);
      std::array<Entry, static_cast<size_t>(Keys::kSlots)> own;
      GANNET_RETURN_IF_ERROR(editor.Run(editor->Fill(blocks_[n].address, this->EntriesOf(n, &entries, &own),
                                                     this->NextLowOfLeaf(n, &entries), this->RightOf(n))));
    }
    return absl::OkStatus();
  }

 private:
  using Base::Load::blocks_;

  DolphinIndex* const index_;
};

template <class Keys>
std::unique_ptr<typename DolphinIndex<Keys>::Base::Load> DolphinIndex<Keys>::NewLoad(LoadRuns entries, double fill,
                                                                                     size_t most_parts) {
  return std::make_unique<Load>(this, std::move(entries), fill, most_parts);
}

template <class Keys>
Status DolphinIndex<Keys>::CheckStructure() {
  Status status;
  absl::flat_hash_set<uint64_t> linked;
  std::vector<ArtLeaf> leaves;
  std::optional<Key> low = Key(Keys::kLeast);  // of the leaf that follows
  const Status walked = this->ForEachNode([&](const LeafCopy& seen) {
    linked.insert(seen.address.offset());
    leaves.push_back({Keys::ArtKey(Keys::LowOf(seen.image)), seen.address});
    LeafCopy leaf = seen;
    if (status.ok()) status = leaves_.Check(&leaf, &low);
    const uint64_t holders = LoadWord(blocks_.Memory(leaf.address.offset()) + kHoldersOffset);
    if (status.ok() && holders != 0) {
      status = absl::InternalError(
          absl::StrCat("leaf ", leaf.address.ToString(), ": nodes ", absl::Hex(holders), " are inside"));
    }
  });
  GANNET_RETURN_IF_ERROR(walked);
  if (!status.ok()) return status;
  if (low.has_value()) return absl::InternalError("the leaves end before the last key");
  GANNET_RETURN_IF_ERROR(art_.CheckAll(leaves).status());
  return blocks_.Check([&linked](rdma::GlobalAddress at) { return linked.contains(at.offset()); });
}

template <class Keys>
Statistics DolphinIndex<Keys>::statistics() {
  Statistics statistics = Base::statistics();
  statistics.registered_bytes += art_.bytes();
  return statistics;
}

template class DolphinIndex<IntegerKeys>;
template class DolphinIndex<ByteKeys>;

}  // namespace gannet::index::dolphin

namespace gannet::index::shared_leaf {

template class OwnLeaves<dolphin::IntegerKeys>;
template class OwnLeaves<dolphin::ByteKeys>;
template class BasicLeafIndex<dolphin::IntegerKeys>;
template class BasicLeafIndex<dolphin::ByteKeys>;

}  // namespace gannet::index::shared_leaf
