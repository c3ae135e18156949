#include "index/blink/editor.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/runtime.h"
#include "index/backoff.h"
#include "index/shared_leaf/leaf/leaf_draft.h"
#include "index/shared_leaf/leaf/leaf_split.h"

namespace gannet::index::blink {

using shared_leaf::FreeBlock;
using shared_leaf::LeafLook;
using shared_leaf::Posting;

namespace {

// Descents of one search. The tree changes while it is searched, but only a
// damaged one leads astray so often.
constexpr int kMostDescents = 1000;

// The keys of a level without room: those of a place, with a new one, in
// ascending order.
template <class Keys>
struct Sorted {
  Sorted(const shared_leaf::LeafCopyOf<Keys>& of, const typename Keys::IndexEntry& with) : place(of), added(with) {
    for (uint64_t used = place.image.template used<typename Keys::Entry>(); used != 0; used &= used - 1) {
      slots[size++] = std::countr_zero(used);
    }
    slots[size++] = -1;
    std::sort(slots.begin(), slots.begin() + static_cast<ptrdiff_t>(size),
              [this](int a, int b) { return key(a) < key(b); });
  }
  typename Keys::Key key(int slot) const {
    return slot < 0 ? Keys::KeyOf(added) : Keys::KeyAt(place.image, place.keys, slot);
  }
  typename Keys::Entry entry(int slot) const {
    return slot < 0 ? Keys::EntryOf(added) : place.image.template entry<typename Keys::Entry>(slot);
  }

  const shared_leaf::LeafCopyOf<Keys>& place;
  const typename Keys::IndexEntry& added;
  std::array<int, Keys::kSlots + 1> slots;
  size_t size = 0;
};

}  // namespace

template <class Keys>
coro::Task<Status> Editor<Keys>::Locate(Point point, uint8_t level, Notice notice, LeafCopy* place) {
  if (current_ != nullptr && current_->FindCurrent(point, level, place)) {
    Keys::ForgetKeys(&place->keys);  // those of an earlier image
    co_return absl::OkStatus();
  }
  Backoff backoff;
  for (int n = 0; n < kMostDescents; ++n) {
    Descent<Keys> descent(root_, point, level);
    std::optional<Start> start;
    if (n == 0 && cache_ != nullptr) start = cache_->StartFor(point, level);
    if (start.has_value()) descent.BeginAt(*start);
    Status kept;
    while (descent.step() == Step::kRead) {
      LeafCopy* const node = &descent.node();
      node->address = descent.next();
      kept = absl::OkStatus();
      StatusOr<LeafLook> look =
          co_await leaves_->Read(node->address, &node->image, {}, shared_leaf::LeafChannel::IfKept::kReturn);
      if (look.ok() && *look == LeafLook::kLocked) {
        // Only leaves are kept: the word of an inner node that says so was made up by a client.
        if (node->image.level() > 0) {
          co_return absl::UnavailableError(absl::StrCat("the node at ", node->address.ToString(),
                                                        " stays locked by node ", LockOwnerNode(node->image.head.state),
                                                        "; try again"));
        }
        // If it is not the one, its fences lead on.
        if (level == 0 && Keys::Covers(node->image, point)) {
          look = co_await leaves_->Read(node->address, &node->image);
          if (shared_leaf::IsLeafKept(look.status())) kept = look.status();
        }
        if (!kept.ok() || (look.ok() && *look == LeafLook::kLocked)) look = LeafLook::kWhole;
      }
      // A wrong address is what a stale or hostile separator may have.
      if (!look.ok() && !absl::IsInvalidArgument(look.status())) co_return look.status();
      if constexpr (Keys::kKeysElsewhere) {
        if (look.ok() && *look == LeafLook::kWhole && node->image.level() > level) {
          const Status read =
              co_await shared_leaf::ReadKeys(leaves_, *schema_, node, node->image.template used<Entry>());
          GANNET_CO_RETURN_IF_ERROR(read);
          if (notice == Notice::kMend && node->keys.stale != 0) co_await RemoveStale(node);
        }
      }
      descent.Take(look.ok() ? *look : LeafLook::kDead);
      if (descent.passed() && cache_ != nullptr) cache_->Keep(descent.passed_node());
    }
    if (start.has_value() && (descent.cache_was_stale() || descent.step() == Step::kLost)) {
      // The cached nodes below it stay, because they were READ just now.
      cache_->Drop(point, start->above);
    }
    if (descent.step() == Step::kFound) {
      place->address = descent.node().address;
      place->image = descent.node().image;
      Keys::ForgetKeys(&place->keys);
      if (notice == Notice::kMend && (descent.notes().missing.has_value() || descent.notes().stale.has_value())) {
        co_await Mend(level, descent.notes());
      }
      co_return kept;
    }
    if (n > 0) backoff.Pause();
  }
  co_return absl::DataLossError(
      absl::StrCat("the B-link tree at ", root_.ToString(), " has no way to a key: a client may have damaged it"));
}

template <class Keys>
coro::Task<void> Editor<Keys>::Mend(uint8_t level, typename Descent<Keys>::Notes notes) {
  const auto above = static_cast<uint8_t>(level + 1);
  if (notes.stale.has_value()) co_await RemoveSeparator(above, *notes.stale);
  if (notes.missing.has_value()) co_await InsertSeparator(above, *notes.missing);
}

template <class Keys>
coro::Task<Status> Editor<Keys>::LookAtChild(uint8_t level, IndexEntry separator) {
  const rdma::GlobalAddress address = TargetOf(Keys::EntryOf(separator));
  typename Keys::Image child;
  const StatusOr<LeafLook> look = co_await leaves_->Glance(address, &child);
  if (!look.ok()) co_return look.status();
  if (*look == LeafLook::kLocked || *look == LeafLook::kTorn) {
    co_return absl::UnavailableError(absl::StrCat("the node at ", address.ToString(), " is locked"));
  }
  if (*look == LeafLook::kDead || child.level() + 1 != level || Keys::LowOf(child) != Keys::KeyOf(separator)) {
    co_return absl::NotFoundError(absl::StrCat("the node at ", address.ToString(), " is gone"));
  }
  co_return absl::OkStatus();
}

template <class Keys>
coro::Task<StatusOr<bool>> Editor<Keys>::KnowAllKeys(LeafCopy* place) {
  const StatusOr<bool> known = co_await Base::KnowAllKeys(place);
  if constexpr (Keys::kKeysElsewhere) {
    if (known.ok() && place->image.level() > 0 && place->keys.stale != 0) {
      co_await RemoveStale(place);
      co_return false;
    }
  }
  co_return known;
}

template <class Keys>
coro::Task<StatusOr<bool>> Editor<Keys>::Split(const LeafCopy& place, IndexEntry entry, Change* change,
                                               std::optional<IndexEntry>* right, shared_leaf::SplitHint* hint) {
  if (place.address == root_) return SplitRoot(place, entry, change);
  return Base::Split(place, entry, change, right, hint);
}

template <class Keys>
coro::Task<StatusOr<bool>> Editor<Keys>::SplitRoot(const LeafCopy& place, IndexEntry entry, Change* change) {
  const uint8_t level = place.image.level();
  if (level + 1 >= kMaxLevels) co_return absl::DataLossError("a B-link tree of too many levels");
  // A client that does not keep the rules may have filled the slots that the root keeps free for this.
  if (place.image.template count<Entry>() > kRootSlots<Keys>) {
    co_return absl::DataLossError("the root of a B-link tree has more entries than a root may have");
  }
  const StatusOr<FreeBlock> left_block = co_await blocks_->Take(/*connection=*/0);
  if (!left_block.ok()) co_return left_block.status();
  const StatusOr<FreeBlock> right_block = co_await blocks_->Take(left_block->connection);
  if (!right_block.ok()) {
    blocks_->PutBack(*left_block);
    co_return right_block.status();
  }
  using Draft = typename Keys::Draft;
  const uint64_t owner_bits = leaves_->owner_bits();
  const size_t fence_lines = leaves_->fence_lines();
  Draft root(place.address, place.image, owner_bits);
  Draft left(left_block->address, left_block->word, level, owner_bits, fence_lines);
  Draft right(right_block->address, right_block->word, level, owner_bits, fence_lines);
  const StatusOr<bool> locked = co_await leaves_->Lock(root, left_block->connection);
  if (!locked.ok() || !*locked) {
    blocks_->PutBack(*left_block);
    blocks_->PutBack(*right_block);
    co_return locked;
  }
  const Sorted<Keys> all(place, entry);
  const size_t middle = all.size / 2;
  for (size_t i = 0; i < all.size; ++i) (i < middle ? left : right).AddToRoom(all.entry(all.slots[i]));
  const Key low = Keys::LowOf(place.image);
  const Key border = Keys::Border(all.key(all.slots[middle - 1]), all.key(all.slots[middle]), level, false);
  Keys::SetLow(&left, low);
  Keys::SetNextLow(&left, border);
  left.set_right(right.address());
  Keys::SetLow(&right, border);
  Keys::SetNextLow(&right, NextLowOf<Keys>(place.image));
  // The entries come into slots that are free now: the others belong to the root until its line 0 says that they do
  // not.
  const uint64_t old = place.image.template used<Entry>();
  root.AddToRoom(Keys::EntryOf(Keys::ChildEntry(low, left.address())));
  root.AddToRoom(Keys::EntryOf(Keys::ChildEntry(border, right.address())));
  for (uint64_t used = old; used != 0; used &= used - 1) root.Remove(std::countr_zero(used));
  root.set_level(static_cast<uint8_t>(level + 1));
  Posting posting;
  left.AppendNew(&posting);
  right.AppendNew(&posting);
  root.AppendChange(&posting);
  left.AppendUnlock(&posting);
  right.AppendUnlock(&posting);
  const Status status = co_await leaves_->Commit(root.address(), &posting);
  GANNET_CO_RETURN_IF_ERROR(status);
  change->AddChanged(place.address, place.image.head.state, root.unlocked());
  // The blocks' words, as those of any split (LeafChanger).
  change->AddChanged(left.address(), left_block->word, left.unlocked());
  change->AddChanged(right.address(), right_block->word, right.unlocked());
  co_return true;
}

template <class Keys>
coro::Task<void> Editor<Keys>::PublishSplit(uint8_t level, std::vector<IndexEntry> rights,
                                            shared_leaf::SplitHint /*hint*/) {
  for (const IndexEntry& right : rights) co_await InsertSeparator(static_cast<uint8_t>(level + 1), right);
}

template <class Keys>
coro::Task<void> Editor<Keys>::InsertSeparator(uint8_t level, IndexEntry separator) {
  rdma::GlobalAddress existing;
  const rdma::GlobalAddress target = TargetOf(Keys::EntryOf(separator));
  const StatusOr<Change> inserted = co_await InsertAt(level, separator, &existing);
  if (!absl::IsAlreadyExists(inserted.status()) || existing == target) co_return;
  // Somebody who does not keep the rules has led the key elsewhere; or this
  // separator is stale by now.
  const Key key = Keys::KeyOf(separator);
  const Entry from = Keys::EntryOf(Keys::ChildEntry(key, existing));
  co_await ReplaceAt(level, separator, from);
}

template <class Keys>
coro::Task<void> Editor<Keys>::RemoveSeparator(uint8_t level, IndexEntry separator) {
  LeafCopy place;
  const Key key = Keys::KeyOf(separator);
  const Status located = co_await Locate(Keys::At(key), level, Notice::kMend, &place);
  if (!located.ok()) co_return;
  const int slot = SlotOf<Keys>(place.image, Keys::EntryOf(separator));
  // The first one stays: without it the keys before the second one had no
  // child.
  if (slot < 0 || key == Keys::LowOf(place.image)) co_return;
  Change unused;
  co_await changer_.Remove(&place, slot, &unused);
}

template <class Keys>
coro::Task<void> Editor<Keys>::RemoveStale(LeafCopy* node) {
  if constexpr (Keys::kKeysElsewhere) {
    const int slot = std::countr_zero(node->keys.stale & node->image.template used<Entry>());
    if (slot >= Keys::kSlots) co_return;
    Change unused;
    co_await changer_.Remove(node, slot, &unused);
  }
  co_return;
}

template <class Keys>
coro::Task<bool> Editor<Keys>::MergeAt(uint8_t level, const LeafCopy& node, Change* change) {
  if (node.address == root_ || Keys::IsFirst(node.image) || node.image.template count<Entry>() > kSparse<Keys>) {
    co_return false;
  }
  const Key low = Keys::LowOf(node.image);
  const auto above = static_cast<uint8_t>(level + 1);
  LeafCopy parent;
  const Status located = co_await Locate(Keys::At(low), above, Notice::kMend, &parent);
  if (!located.ok()) co_return false;
  const IndexEntry separator = Keys::ChildEntry(low, node.address);
  const int slot = SlotOf<Keys>(parent.image, Keys::EntryOf(separator));
  if (slot < 0) co_return false;
  if (low == Keys::LowOf(parent.image)) {
    // The node's left sibling has another parent. If this parent leads to nothing else, it can be merged itself; then a
    // later removal merges the node.
    if (parent.image.template count<Entry>() == 1) co_await MergeAt(above, parent, nullptr);
    co_return false;
  }
  const Status read = co_await shared_leaf::ReadAllKeys<Keys>(leaves_, *schema_, &parent);
  if (!read.ok() || !Keys::Knows(parent.keys, slot)) co_return false;
  const int slot_of_left = ChildSlot<Keys>(parent.image, parent.keys, Keys::At(low), slot);
  if (slot_of_left < 0) co_return false;
  LeafCopy left;
  left.address = TargetOf(parent.image.template entry<Entry>(slot_of_left));
  for (int n = 0;; ++n) {
    const StatusOr<LeafLook> look = co_await leaves_->Read(left.address, &left.image);
    if (!look.ok() || *look != LeafLook::kWhole || left.image.level() != level || Keys::IsLast(left.image) ||
        Keys::NextLow(left.image) > low || n > 8) {
      co_return false;
    }
    if (left.image.right() == node.address) break;
    left.address = left.image.right();
  }
  if (left.image.template count<Entry>() > kRoomy<Keys> || Keys::NextLow(left.image) != low) co_return false;

  // The separator goes while the node is locked, so nobody adds it again
  // (LookAtChild); and it goes before the node dies: a stale one would lead to
  // a block that may become any other node.
  Change unused;
  const auto part = [&] { return changer_.Remove(&parent, slot, &unused); };
  const StatusOr<bool> merged = co_await changer_.Absorb(left, node, change == nullptr ? &unused : change, part);
  if (!merged.ok() || !*merged) co_return false;
  co_await MergeAt(above, parent, nullptr);
  co_return true;
}

template <class Keys>
coro::Task<Status> Editor<Keys>::FillRoot(uint8_t level, std::span<const IndexEntry> entries) {
  LeafCopy root{root_, {}};
  const StatusOr<LeafLook> look = co_await leaves_->Read(root_, &root.image);
  if (!look.ok()) co_return look.status();
  if (*look != LeafLook::kWhole || root.image.level() != 0 || root.image.template count<Entry>() != 0) {
    co_return absl::FailedPreconditionError("a bulk load needs an empty index");
  }
  typename Keys::Draft draft(root_, root.image, leaves_->owner_bits());
  draft.set_level(level);
  for (const IndexEntry& entry : entries) draft.AddToRoom(Keys::EntryOf(entry));
  const StatusOr<bool> done = co_await changer_.Publish(&draft);
  if (!done.ok()) co_return done.status();
  if (!*done) co_return absl::FailedPreconditionError("a bulk load needs an index that nobody else changes");
  co_return absl::OkStatus();
}

template class Editor<IntegerKeys>;
template class Editor<ByteKeys>;

}  // namespace gannet::index::blink
