#include "index/blink/editor.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "index/backoff.h"
#include "index/remote/leaf_draft.h"
#include "index/remote/leaf_split.h"

namespace gannet::index::blink {

using remote::FreeBlock;
using remote::LeafDraft;
using remote::LeafLook;
using remote::Posting;

namespace {

// Descents of one search. The tree changes while it is searched, but only a damaged one leads astray so often.
constexpr int kMostDescents = 1000;

rdma::GlobalAddress TargetOf(const IntegerEntry& entry) {
  return rdma::GlobalAddress::FromBits(entry.target);
}

Status StaysLocked(rdma::GlobalAddress node) {
  return absl::UnavailableError(absl::StrCat("the node of a B-link tree at ", node.ToString(),
                                             " stays locked, or changes all the time; try again"));
}

}  // namespace

coro::Task<Status> Editor::Locate(uint64_t key, uint8_t level, Notice notice, Place* place) {
  Backoff backoff;
  for (int n = 0; n < kMostDescents; ++n) {
    Descent descent(root_, key, level);
    if (n == 0 && cache_ != nullptr) {
      const uint8_t from = cache_->LowestWith(static_cast<uint8_t>(level + 1), key);
      if (from < kMaxLevels) descent.BeginBelow(cache_->Find(from, key)->image);
    }
    while (descent.step() == Descent::Step::kRead) {
      place->address = descent.next();
      const StatusOr<LeafLook> look = co_await leaves_->Read(place->address, &place->image);
      // A wrong address is what a stale or hostile separator may have.
      if (!look.ok() && !absl::IsInvalidArgument(look.status())) co_return look.status();
      descent.Take(look.ok() ? *look : LeafLook::kDead, place->image);
      if (descent.passed() && cache_ != nullptr) cache_->Put(place->address, place->image);
    }
    if (cache_ != nullptr && (descent.cache_was_stale() || (n == 0 && descent.step() == Descent::Step::kLost))) {
      cache_->Drop(static_cast<uint8_t>(level + 1), key);
    }
    if (descent.step() == Descent::Step::kFound) {
      if (notice == Notice::kMend && (descent.notes().missing.has_value() || descent.notes().stale.has_value())) {
        co_await Mend(level, descent.notes());
      }
      co_return absl::OkStatus();
    }
    if (n > 0) backoff.Pause();
  }
  co_return absl::DataLossError(absl::StrCat("the B-link tree at ", root_.ToString(), " has no way to the key ", key,
                                             ": a client may have damaged it"));
}

coro::Task<void> Editor::Mend(uint8_t level, Descent::Notes notes) {
  const auto above = static_cast<uint8_t>(level + 1);
  if (notes.stale.has_value()) co_await RemoveSeparator(above, *notes.stale);
  if (notes.missing.has_value()) co_await InsertSeparator(above, *notes.missing);
}

coro::Task<StatusOr<Change>> Editor::Insert(uint64_t key, rdma::GlobalAddress record, rdma::GlobalAddress* existing) {
  return InsertAt(0, {key, record.bits()}, existing);
}

coro::Task<StatusOr<Change>> Editor::InsertAt(uint8_t level, IntegerEntry entry, rdma::GlobalAddress* existing) {
  Place place;
  Patience patience(leaves_->patience_nanos());
  for (;;) {
    const Status located = co_await Locate(entry.key, level, Notice::kMend, &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    const int slot = FindSlot(place.image, entry.key);
    if (slot >= 0) {
      if (existing != nullptr) *existing = TargetOf(place.image.entry<IntegerEntry>(slot));
      co_return absl::AlreadyExistsError(absl::StrCat("the key ", entry.key, " is in the index"));
    }
    Change change;
    std::optional<IntegerEntry> separator;
    const StatusOr<bool> done = co_await TryInsert(place, entry, &change, &separator);
    if (!done.ok()) co_return done.status();
    if (*done) {
      if (separator.has_value()) co_await InsertSeparator(static_cast<uint8_t>(level + 1), *separator);
      co_return std::move(change);
    }
    if (!patience.Pause()) co_return StaysLocked(place.address);
  }
}

coro::Task<StatusOr<bool>> Editor::TryInsert(const Place& place, IntegerEntry entry, Change* change,
                                             std::optional<IntegerEntry>* separator) {
  if (RoomIn(place) == 0) {
    if (place.address == root_) {
      const StatusOr<bool> split = co_await SplitRoot(place, entry, change);
      co_return split;
    }
    IntegerEntry right;
    const StatusOr<bool> split = co_await changer_.Split(place, entry, change, &right);
    if (split.ok() && *split) *separator = right;
    co_return split;
  }
  const StatusOr<bool> done = co_await changer_.Add(place, entry, change);
  co_return done;
}

coro::Task<StatusOr<bool>> Editor::SplitRoot(const Place& place, IntegerEntry entry, Change* change) {
  const uint8_t level = place.image.level();
  if (level + 1 >= kMaxLevels) co_return absl::DataLossError("a B-link tree of too many levels");
  const StatusOr<FreeBlock> left_block = co_await blocks_->Take();
  if (!left_block.ok()) co_return left_block.status();
  const StatusOr<FreeBlock> right_block = co_await blocks_->Take();
  if (!right_block.ok()) {
    blocks_->PutBack(*left_block);
    co_return right_block.status();
  }
  const uint64_t owner_bits = leaves_->owner_bits();
  LeafDraft root(place.address, place.image, owner_bits);
  LeafDraft left(left_block->address, left_block->word, level, owner_bits);
  LeafDraft right(right_block->address, right_block->word, level, owner_bits);
  const StatusOr<bool> locked = co_await leaves_->Lock(root);
  if (!locked.ok() || !*locked) {
    blocks_->PutBack(*left_block);
    blocks_->PutBack(*right_block);
    co_return locked;
  }
  std::array<IntegerEntry, kSlots + 1> all;
  size_t size = 0;
  const uint64_t old = place.image.used<IntegerEntry>();
  for (uint64_t used = old; used != 0; used &= used - 1) {
    all[size++] = place.image.entry<IntegerEntry>(std::countr_zero(used));
  }
  all[size++] = entry;
  std::sort(all.begin(), all.begin() + static_cast<ptrdiff_t>(size),
            [](const IntegerEntry& a, const IntegerEntry& b) { return a.key < b.key; });
  const size_t middle = size / 2;
  for (size_t i = 0; i < size; ++i) (i < middle ? left : right).Add(all[i]);
  left.set_low(place.image.head.low);
  left.set_high(all[middle].key - 1);
  left.set_right(right.address());
  right.set_low(all[middle].key);
  right.set_high(place.image.head.high);
  // In slots that are free now: the others belong to the root until its line 0 says that they do not.
  root.Add(IntegerEntry{place.image.head.low, left.address().bits()});
  root.Add(IntegerEntry{all[middle].key, right.address().bits()});
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

coro::Task<StatusOr<Change>> Editor::Remove(uint64_t key, rdma::GlobalAddress record) {
  Place place;
  Patience patience(leaves_->patience_nanos());
  for (;;) {
    const Status located = co_await Locate(key, 0, Notice::kMend, &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    const int slot = FindSlot(place.image, key);
    if (slot < 0 || TargetOf(place.image.entry<IntegerEntry>(slot)) != record) {
      co_return absl::NotFoundError(absl::StrCat("the key ", key, " is not mapped to ", record.ToString()));
    }
    const uint64_t before = place.image.head.state;
    Change removed;
    const StatusOr<bool> done = co_await changer_.Remove(&place, slot, &removed);
    if (!done.ok()) co_return done.status();
    if (*done) {
      Change merged;
      if (co_await MergeLeft(0, place, &merged)) {
        // The merge has changed the leaf's word again, and nobody else has in between.
        Change change;
        for (const WordChange& word : merged.words()) {
          change.AddChanged(word.word, word.word == place.address ? before : word.before, word.after);
        }
        co_return std::move(change);
      }
      co_return std::move(removed);
    }
    if (!patience.Pause()) co_return StaysLocked(place.address);
  }
}

coro::Task<Status> Editor::ReplaceAt(uint8_t level, uint64_t key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  Place place;
  Patience patience(leaves_->patience_nanos());
  for (;;) {
    const Status located = co_await Locate(key, level, Notice::kMend, &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    const int slot = FindSlot(place.image, key);
    if (slot < 0 || TargetOf(place.image.entry<IntegerEntry>(slot)) != from) {
      co_return absl::NotFoundError(absl::StrCat("the key ", key, " is not mapped to ", from.ToString()));
    }
    const IntegerEntry entry{key, to.bits()};
    const StatusOr<bool> done = co_await changer_.Replace(place, slot, entry);
    if (!done.ok()) co_return done.status();
    if (*done) co_return absl::OkStatus();
    if (!patience.Pause()) co_return StaysLocked(place.address);
  }
}

coro::Task<void> Editor::InsertSeparator(uint8_t level, IntegerEntry separator) {
  rdma::GlobalAddress existing;
  const StatusOr<Change> inserted = co_await InsertAt(level, separator, &existing);
  if (!absl::IsAlreadyExists(inserted.status()) || existing == TargetOf(separator)) co_return;
  // A separator of a dead node with the same low fence; or this one is stale by now.
  Place child{TargetOf(separator), {}};
  const StatusOr<LeafLook> look = co_await leaves_->Read(child.address, &child.image);
  if (!look.ok() || *look != LeafLook::kWhole || child.image.head.low != separator.key ||
      child.image.level() + 1 != level) {
    co_return;
  }
  co_await ReplaceAt(level, separator.key, existing, TargetOf(separator));
}

coro::Task<void> Editor::RemoveSeparator(uint8_t level, IntegerEntry separator) {
  Place place;
  const Status located = co_await Locate(separator.key, level, Notice::kMend, &place);
  if (!located.ok()) co_return;
  const int slot = FindSlot(place.image, separator.key);
  // The first one stays: without it the keys before the second one had no child.
  if (slot < 0 || place.image.entry<IntegerEntry>(slot) != separator || separator.key == place.image.head.low)
    co_return;
  Change unused;
  co_await changer_.Remove(&place, slot, &unused);
}

coro::Task<bool> Editor::MergeLeft(uint8_t level, const Place& node, Change* change) {
  const uint64_t low = node.image.head.low;
  if (node.address == root_ || low == 0 || node.image.count<IntegerEntry>() > kSparse) co_return false;
  const auto above = static_cast<uint8_t>(level + 1);
  Place parent;
  const Status located = co_await Locate(low, above, Notice::kMend, &parent);
  if (!located.ok()) co_return false;
  const int slot = FindSlot(parent.image, low);
  if (slot < 0 || TargetOf(parent.image.entry<IntegerEntry>(slot)) != node.address) co_return false;
  if (low == parent.image.head.low) {
    // Its left sibling has another parent. If this parent leads to nothing else, it can be merged itself; then a later
    // removal merges the node.
    if (parent.image.count<IntegerEntry>() == 1) co_await MergeLeft(above, parent, nullptr);
    co_return false;
  }
  const int slot_of_left = ChildSlot(parent.image, low, slot);
  if (slot_of_left < 0) co_return false;
  Place left;
  left.address = TargetOf(parent.image.entry<IntegerEntry>(slot_of_left));
  for (int n = 0;; ++n) {
    const StatusOr<LeafLook> look = co_await leaves_->Read(left.address, &left.image);
    if (!look.ok() || *look != LeafLook::kWhole || left.image.level() != level || left.image.head.high >= low ||
        n > 8) {
      co_return false;
    }
    if (left.image.right() == node.address) break;
    left.address = left.image.right();
  }
  if (left.image.count<IntegerEntry>() > kRoomy || left.image.head.high + 1 != low) co_return false;

  // First the separator: a stale one would lead to a block that may become any other node.
  Change unused;
  const StatusOr<bool> removed = co_await changer_.Remove(&parent, slot, &unused);
  if (!removed.ok() || !*removed) co_return false;
  const StatusOr<bool> merged = co_await changer_.Absorb(left, node, change == nullptr ? &unused : change);
  if (!merged.ok() || !*merged) {
    co_await InsertSeparator(above, {low, node.address.bits()});
    co_return false;
  }
  co_await MergeLeft(above, parent, nullptr);
  co_return true;
}

coro::Task<Status> Editor::FillRoot(uint8_t level, std::span<const IntegerEntry> entries) {
  Place root{root_, {}};
  const StatusOr<LeafLook> look = co_await leaves_->Read(root_, &root.image);
  if (!look.ok()) co_return look.status();
  if (*look != LeafLook::kWhole || root.image.level() != 0 || root.image.count<IntegerEntry>() != 0) {
    co_return absl::FailedPreconditionError("a bulk load needs an empty index");
  }
  LeafDraft draft(root_, root.image, leaves_->owner_bits());
  draft.set_level(level);
  for (const IntegerEntry& entry : entries) draft.Add(entry);
  const StatusOr<bool> done = co_await changer_.Publish(&draft);
  if (!done.ok()) co_return done.status();
  if (!*done) co_return absl::FailedPreconditionError("a bulk load needs an index that nobody else changes");
  co_return absl::OkStatus();
}

}  // namespace gannet::index::blink
