#include "index/shared_leaf/leaf_index.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/claim_boards.h"
#include "index/service_method.h"
#include "index/shared_leaf/change/change_calls.h"
#include "index/shared_leaf/change/leaf_keys.h"
#include "index/shared_leaf/claim/claim.h"
#include "index/shared_leaf/leaf/leaf_repair.h"

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
    : Base(service, schema, std::nullopt, rights, patience, name),
      editors_(service, &blocks_, patience, [this](OwnChannel* channel) { return NewEditor(channel); }) {}

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
void LeafIndex<Keys>::StoreNode(const FreeBlock& block, uint8_t level, std::span<const Entry> entries, const Key& low,
                                const std::optional<Key>& next_low, rdma::GlobalAddress right) {
  typename Keys::Draft draft(block.address, block.word, level, OwnerBits(service_->node().id(), 0),
                             blocks_.fence_lines());
  Keys::SetLow(&draft, low);
  Keys::SetNextLow(&draft, next_low);
  draft.set_right(right);
  for (const Entry& entry : entries) draft.AddToRoom(entry);
  Posting posting;
  draft.AppendNew(&posting);
  Image image = draft.image();
  image.head.state = draft.unlocked();
  // Nobody knows the block yet: it is dead until its last word is stored.
  StoreLeaf(image, service_->node().memory().data() + block.address.offset());
}

template <class Keys>
void LeafIndex<Keys>::Repair(std::byte* leaf, bool is_linked) {
  if constexpr (Keys::kKeysElsewhere) {
    RepairTaggedLeaf(leaf, is_linked, blocks_.fence_lines());
  } else {
    RepairLeaf(leaf, is_linked);
  }
}

// Its holder neither split the leaf nor merged it with another, so it is linked.
template <class Keys>
void LeafIndex<Keys>::EndKept(rdma::NodeId holder) {
  blocks_.ForEach([&](rdma::GlobalAddress at) {
    std::byte* const leaf = service_->node().memory().data() + at.offset();
    if (IsKeptBy(holder, LoadWord(leaf))) Repair(leaf, /*is_linked=*/true);
  });
}

template <class Keys>
void LeafIndex<Keys>::RepairAfter(rdma::NodeId node) {
  if (blocks_.rights() == IndexRights::kOwnerOnly) return;  // it could lock nothing, and has borrowed nothing
  const bool may_keep = service_->boards().MayClaim(node);
  blocks_.BeginRepair(node);
  absl::flat_hash_set<uint64_t> linked;
  const Status walked = this->ForEachNode([&linked](const LeafCopy& place) { linked.insert(place.address.offset()); });
  // What a damaged index does not reach any more must not be thrown away.
  const auto is_linked = [&](rdma::GlobalAddress at) { return !walked.ok() || linked.contains(at.offset()); };
  blocks_.ForEach([&](rdma::GlobalAddress at) {
    std::byte* const leaf = service_->node().memory().data() + at.offset();
    const uint64_t state = LoadWord(leaf);
    const bool is_held = IsLocked(state) && !rdma::IsLineBusy(state) && LockOwnerNode(state) == node;
    // The client may still read the leaves that it keeps (claim/claim.h). Without a board it keeps none, whatever it
    // wrote into the word.
    const bool is_kept = IsKept(state) && may_keep && !GANNET_MUTANT(kKeptRepairedAtOnce);
    if (is_held && !is_kept) Repair(leaf, is_linked(at));
  });
  blocks_.EndRepair();
  blocks_.Sweep(node, is_linked);
}

template <class Keys>
Status LeafIndex<Keys>::EndClaimsOf(rdma::NodeId node) {
  if (blocks_.rights() == IndexRights::kOwnerOnly) return absl::OkStatus();
  EndKept(node);
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

template class LeafIndex<IntegerKeys>;
template class LeafIndex<ByteKeys>;

}  // namespace gannet::index::shared_leaf
