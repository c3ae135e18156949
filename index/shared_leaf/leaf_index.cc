#include "index/shared_leaf/leaf_index.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/sometimes.h"
#include "index/claim_boards.h"
#include "index/service_method.h"
#include "index/shared_leaf/change/change_calls.h"
#include "index/shared_leaf/change/leaf_keys.h"

namespace gannet::index::shared_leaf {
namespace {

void RegisterClaimRanges(IndexService* service) {
  if (!service->MayRegister(kSetRanges)) return;
  ServeIndexMethod<AnyLeafIndex>(
      service, kSetRanges, "shared-leaf",
      [service](AnyLeafIndex* index, Context&, rdma::WireReader& request, rdma::WireWriter&) -> Status {
        std::vector<ClaimRange> ranges;
        GANNET_RETURN_IF_ERROR(GetRanges(request, &ranges));
        GANNET_RETURN_IF_ERROR(
            CheckRanges(ranges, index->blocks().key_kind(), index->max_key_bytes(), service->fabric().num_nodes()));
        return index->SetClaimRanges(std::move(ranges));
      });
  ServeIndexMethod<AnyLeafIndex>(
      service, kReadRanges, "shared-leaf",
      [](AnyLeafIndex* index, Context&, rdma::WireReader& request, rdma::WireWriter& response) -> Status {
        GANNET_RETURN_IF_ERROR(request.Finish());
        PutRanges(response, index->claim_ranges().Get());
        return absl::OkStatus();
      });
}

}  // namespace

void RegisterLeafMethods(IndexService* service, rdma::MethodId describe, const char* kind) {
  ServeIndexMethod<AnyLeafIndex>(
      service, describe, kind,
      [describe](AnyLeafIndex* index, Context&, rdma::WireReader& request, rdma::WireWriter& response) -> Status {
        GANNET_RETURN_IF_ERROR(request.Finish());
        if (index->describe_method() != describe) return absl::NotFoundError("the index is of another kind");
        index->Describe(response);
        return absl::OkStatus();
      });
  RegisterBlockLending(service);
  RegisterChangeCalls(service);
  RegisterClaimBoards(service);
  RegisterClaimRanges(service);
}

template <class Keys>
LeafIndex<Keys>::LeafIndex(IndexService* service, const Schema& schema, IndexRights rights, absl::Duration patience,
                           const char* name)
    : service_(service),
      schema_(schema),
      blocks_(&service->fabric(), &service->node(), schema.fence_lines(), rights),
      leaves_(&service->node(), &blocks_, &schema_, static_cast<uint64_t>(absl::ToInt64Nanoseconds(patience)), this,
              name),
      editors_(service, &blocks_, patience, [this](OwnChannel* channel) { return NewEditor(channel); }) {}

template <class Keys>
LeafIndex<Keys>::~LeafIndex() {
  rdma::SlabCache slab(&service_->slab());
  blocks_.Close(slab);
}

template <class Keys>
Status LeafIndex<Keys>::MakeFirst(Context& context) {
  const StatusOr<FreeBlock> block = blocks_.Take(context);
  if (!block.ok()) return block.status();
  leaves_.Store(*block, 0, {}, Keys::kLeast, std::nullopt, {});
  first_ = block->address;
  return absl::OkStatus();
}

// Separators that a client's split left out are mended by the changes that take more, such as splits.
template <class Keys>
template <class Edit>
std::optional<Change> LeafIndex<Keys>::ChangeAtOnce(typename Editors::Pooled* editor, const Key& key,
                                                    const Edit& edit) {
  if (!editor->leaves().may_change_at_once()) return std::nullopt;
  LeafCopy leaf;
  leaf.address = editor->last_leaf();
  // It may be dead, or another leaf by now, but it is a block of this index.
  const bool is_last = !leaf.address.is_null() &&
                       blocks_.Look(leaf.address.offset(), &leaf.image) == LeafLook::kWhole &&
                       leaf.image.level() == 0 && Keys::CoversKey(leaf.image, key);
  if (!is_last && !this->Locate(Keys::At(key), &leaf).ok()) return std::nullopt;
  const uint64_t before = leaf.image.head.state;
  if (IsLocked(before)) return std::nullopt;  // it is kept
  typename Keys::Draft draft(leaf.address, leaf.image, editor->leaves().owner_bits());
  if (!edit(leaf, &draft)) return std::nullopt;
  const rdma::Operation lock = draft.Lock();
  editor->posting().Clear();
  draft.AppendChange(&editor->posting());
  if (!editor->leaves().ChangeAtOnce(lock, &editor->posting())) return std::nullopt;
  editor->last_leaf() = leaf.address;
  Change change;
  change.AddChanged(leaf.address, before, draft.unlocked());
  return change;
}

template <class Keys>
StatusOr<Change> LeafIndex<Keys>::Insert(Context& context, const index::Key& key, rdma::GlobalAddress record,
                                         rdma::GlobalAddress* existing) {
  GANNET_RETURN_IF_ERROR(Keys::CheckLength(schema_, key));
  typename Editors::Pooled editor(&editors_, &context);
  GANNET_RETURN_IF_ERROR(editor.status());
  const Key own = Keys::KeyFrom(key);
  std::optional<Change> change = ChangeAtOnce(&editor, own, [&](const LeafCopy& leaf, typename Keys::Draft* draft) {
    if (editor->RoomIn(leaf) <= 0 || FindOwnKey<Keys>(blocks_, schema_, own, leaf) >= 0) return false;
    draft->AddToRoom(Keys::EntryOf(Keys::RecordEntry(schema_, own, record)));
    return true;
  });
  if (change.has_value()) return *std::move(change);
  return editor.Run(editor->Insert(own, record, existing));
}

template <class Keys>
StatusOr<Change> LeafIndex<Keys>::Remove(Context& context, const index::Key& key, rdma::GlobalAddress record) {
  typename Editors::Pooled editor(&editors_, &context);
  GANNET_RETURN_IF_ERROR(editor.status());
  const Key own = Keys::KeyFrom(key);
  std::optional<Change> change = ChangeAtOnce(&editor, own, [&](const LeafCopy& leaf, typename Keys::Draft* draft) {
    // A leaf that has few entries then is to be merged.
    const int slot = SlotOf<Keys>(leaf.image, Keys::EntryOf(Keys::RecordEntry(schema_, own, record)));
    if (slot < 0 || leaf.image.template count<Entry>() <= kSparse<Keys> + 1) return false;
    draft->Remove(slot);
    return true;
  });
  if (change.has_value()) return *std::move(change);
  return editor.Run(editor->Remove(own, record));
}

template <class Keys>
Status LeafIndex<Keys>::Replace(const index::Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  typename Editors::Pooled editor(&editors_, nullptr);
  GANNET_RETURN_IF_ERROR(editor.status());
  return editor.Run(editor->Replace(Keys::KeyFrom(key), from, to));
}

template <class Keys>
Status LeafIndex<Keys>::CheckEmpty() const {
  LeafCopy first;
  GANNET_RETURN_IF_ERROR(this->Locate(Keys::At(Keys::kLeast), &first));
  if (first.address != first_ || !Keys::IsLast(first.image) || first.image.template count<Entry>() != 0) {
    return absl::FailedPreconditionError("a bulk load needs an empty index");
  }
  return absl::OkStatus();
}

template <class Keys>
StatusOr<std::unique_ptr<PartedLoad>> LeafIndex<Keys>::BeginLoad(Context& context, LoadRuns entries, double fill,
                                                                 size_t most_parts) {
  GANNET_RETURN_IF_ERROR(CheckFill(fill));
  GANNET_RETURN_IF_ERROR(CheckEmpty());
  std::unique_ptr<Load> load = NewLoad(std::move(entries), fill, most_parts);
  GANNET_RETURN_IF_ERROR(load->Begin(context));
  return load;
}

template <class Keys>
Status LeafIndex<Keys>::BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) {
  const StatusOr<std::unique_ptr<PartedLoad>> load = BeginLoad(context, LoadRuns(entries), fill, 1);
  return load.ok() ? (*load)->Run(context) : load.status();
}

template <class Keys>
LeafIndex<Keys>::Load::~Load() {
  if (finished_) return;
  for (size_t n = has_first_ ? 1 : 0; n < blocks_.size(); ++n) {
    if (!blocks_[n].address.is_null()) index_->blocks_.Discard(blocks_[n]);
  }
}

template <class Keys>
Status LeafIndex<Keys>::Load::Take(Context& context, FreeBlock* block) {
  const StatusOr<FreeBlock> taken = index_->blocks_.Take(context);
  if (!taken.ok()) return taken.status();
  *block = *taken;
  return absl::OkStatus();
}

// The blocks of the parts' first leaves are taken at the beginning: then each part can link its last leaf.
template <class Keys>
Status LeafIndex<Keys>::Load::Begin(Context& context) {
  for (size_t part = has_first_ ? 1 : 0; part < parts() && makes_leaves_; ++part) {
    GANNET_RETURN_IF_ERROR(Take(context, &blocks_[shape_.FirstLeaf(part)]));
  }
  return absl::OkStatus();
}

template <class Keys>
Status LeafIndex<Keys>::Load::Build(Context& context, size_t part) {
  const size_t first = shape_.FirstLeaf(part);
  const size_t end = shape_.EndLeaf(part);
  GANNET_RETURN_IF_ERROR(shape_.CheckOrder(entries_, part));
  LoadRuns::Reader entries(entries_);
  for (size_t i = shape_.Begin(first); i < shape_.End(end - 1); ++i) {
    GANNET_RETURN_IF_ERROR(Keys::CheckLength(index_->schema_, entries[i].key));
  }
  if (!makes_leaves_) return absl::OkStatus();
  for (size_t n = first + 1; n < end; ++n) GANNET_RETURN_IF_ERROR(Take(context, &blocks_[n]));
  for (size_t n = std::max<size_t>(first, has_first_ ? 1 : 0); n < end; ++n) StoreLeaf(n, &entries);
  return absl::OkStatus();
}

template <class Keys>
void LeafIndex<Keys>::RepairAfter(rdma::NodeId node) {
  leaves_.RepairAfter(node, service_->boards().MayClaim(node),
                      [this](const Visit& visit) { return ForEachNode(visit); });
}

template <class Keys>
Status LeafIndex<Keys>::EndClaimsOf(rdma::NodeId node) {
  if (blocks_.rights() == IndexRights::kOwnerOnly) return absl::OkStatus();
  leaves_.EndKept(node);
  struct Claim {
    rdma::GlobalAddress leaf;
    uint64_t word;
  };
  std::vector<Claim> claims;
  blocks_.ForEach([&](rdma::GlobalAddress at) {
    const uint64_t word = LoadWord(blocks_.Memory(at.offset()));
    if (IsClaimedBy(node, word)) claims.push_back({at, word});
  });
  if (claims.empty()) return absl::OkStatus();
  typename Editors::Pooled editor(&editors_, nullptr);
  GANNET_RETURN_IF_ERROR(editor.status());
  for (const Claim& claim : claims) {
    // If the word is another by now, it is no claim of this node: none is made any more.
    GANNET_RETURN_IF_ERROR(
        editor.Run(editor.leaves().EndClaim(claim.leaf, claim.word, LeafChannel::EndBy::kLoss)).status());
  }
  Sometimes<"claims: those of a lost node are ended">();
  return absl::OkStatus();
}

template <class Keys>
Status LeafIndex<Keys>::EndClaims(std::span<WordChange> claims) {
  const auto may_be = [this](const WordChange& claim) {
    return blocks_.MayHave(claim.word) && IsClaimed(claim.before);
  };
  if (blocks_.rights() == IndexRights::kOwnerOnly || !std::ranges::all_of(claims, may_be)) {
    return absl::InvalidArgumentError("these are no claims of leaves");
  }
  typename Editors::Pooled editor(&editors_, nullptr);
  GANNET_RETURN_IF_ERROR(editor.status());
  for (WordChange& claim : claims) {
    const StatusOr<bool> ended =
        editor.Run(editor.leaves().EndClaim(claim.word, claim.before, LeafChannel::EndBy::kBoard));
    if (!ended.ok()) return ended.status();
    claim.after = *ended ? NextState(claim.before, false) : claim.before;
  }
  return absl::OkStatus();
}

template <class Keys>
Status LeafIndex<Keys>::SetClaimRanges(std::vector<ClaimRange> ranges) {
  this->claim_ranges().Set(std::move(ranges));
  typename Editors::Pooled editor(&editors_, nullptr);
  GANNET_RETURN_IF_ERROR(editor.status());
  editor.Run(service_->boards().RaiseRanges(editor.leaves().channel()));
  return absl::OkStatus();
}

template <class Keys>
Statistics LeafIndex<Keys>::statistics() {
  Statistics statistics;
  statistics.registered_bytes = blocks_.bytes();
  const Status walked = ForEachNode([&statistics](const LeafCopy& place) {
    if (place.image.level() == 0) {
      ++statistics.nodes;
      statistics.keys += static_cast<uint64_t>(place.image.template count<Entry>());
    }
    statistics.height = std::max(statistics.height, place.image.level() + 1);
  });
  if (!walked.ok()) statistics.height = 0;  // of a damaged index: what the walk has met
  return statistics;
}

template class LeafIndex<IntegerKeys>;
template class LeafIndex<ByteKeys>;

}  // namespace gannet::index::shared_leaf
