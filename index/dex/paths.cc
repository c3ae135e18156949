#include "index/dex/paths.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/mutant.h"
#include "base/runtime.h"
#include "base/sometimes.h"

namespace gannet::index::dex {
namespace {

// Copies that change while a way is followed. After that the search begins at the root.
constexpr int kMostTries = 4;

}  // namespace

// Leaves of all keys have these two words in the same place.
std::optional<GrantedWord> FindGranted(const PageCache& cache, rdma::GlobalAddress leaf) {
  using Body = LeafBody<shared_leaf::IntegerKeys>;
  const FrameId id = cache.Find(leaf);
  FrameLook look;
  if (id == kNoFrame || !cache.frames().Look(id, &look)) return std::nullopt;
  if (look.node() != leaf.bits() || look.place().level > 0) return std::nullopt;
  const GrantedWord found{.state = Body::StateOf(look.body()), .grant = Body::GrantOf(look.body())};
  if (found.grant.is_none() || !cache.frames().Unchanged(look)) return std::nullopt;
  return found;
}

template <class Keys>
typename Paths<Keys>::End Paths<Keys>::Follow(const Point& point, uint8_t level) {
  Charge(Cost::kIndexStep, 2);  // the inner node above the leaves, and the leaf; those above it are in the CPU's cache
  End end;
  for (int i = 0; i < kMostTries; ++i) {
    if (FollowOnce(point, level, &end)) return end;
    CpuRelax();
  }
  End lost;
  lost.is_busy = end.is_busy;
  return lost;
}

template <class Keys>
bool Paths<Keys>::FollowOnce(const Point& point, uint8_t level, End* end) {
  const Frames& frames = cache_.frames();
  *end = {};
  FrameId id = cache_.Find(root_);
  bool by_frame = false;  // the copy in `parent` tells the frame, not the address
  for (int steps = 0; steps < blink::kMaxLevels; ++steps) {
    FrameLook look;
    if (id == kNoFrame || !frames.Look(id, &look)) {
      end->is_busy = look.word.kept_and_latched();
      return !by_frame;
    }
    const Place place = look.place();
    const auto node = rdma::GlobalAddress::FromBits(look.node());
    if (!frames.Unchanged(look)) return false;
    const bool is_below = steps == 0 || place.level + 1 == end->above;
    if (place.tree != tree_ || !is_below || (!by_frame && node != (steps == 0 ? root_ : end->node))) {
      if (!by_frame) return true;
      // The frame has another node by now, and its parent was not told.
      Sometimes<"dex: a frame leads to another node">();
      FrameLook parent;
      if (frames.Look(end->parent, &parent)) {
        const auto above = rdma::GlobalAddress::FromBits(parent.node());
        if (frames.Unchanged(parent)) cache_.Drop(&user_, above);
      }
      return false;
    }
    if (steps > 0) end->node = node;
    if (look.word.cooling() || (!by_frame && steps > 0)) {
      cache_.Restore(&user_, id, node, end->parent);
      if (!frames.Look(id, &look) || look.node() != node.bits()) return false;
      const Place now = look.place();
      if (now.tree != place.tree || now.level != place.level || now.children != place.children) return false;
    }
    if (place.level <= level) {
      if (place.level < level) return true;
      end->is_reached = true;
      end->frame = id;
      end->look = look;
      end->place = place;
      end->node = node;
      return true;
    }
    const ChildFound found = InnerBody<Keys>::Find(frames, look, place, point);
    if (found.is == ChildFound::Is::kChanged) return false;
    if (found.is == ChildFound::Is::kElsewhere) return true;
    end->parent = id;
    end->above = place.level;
    by_frame = cache_.LeadsToFrame(found.link);
    if (by_frame) {
      id = cache_.FrameOf(found.link);
      frames.Prefetch(id);
    } else {
      end->node = cache_.AddressOf(found.link, root_.node());
      id = cache_.Find(end->node);
    }
  }
  return false;
}

template <class Keys>
std::optional<blink::Start> Paths<Keys>::StartFor(const Point& point, uint8_t level) {
  const End end = Follow(point, level);
  if (end.above == blink::kMaxLevels || end.node.is_null()) return std::nullopt;
  return blink::Start{end.node, end.above};
}

template <class Keys>
rdma::GlobalAddress Paths<Keys>::NodeAt(const Point& point, uint8_t level) {
  const End end = Follow(point, level);
  return end.is_reached || end.above == level + 1 ? end.node : rdma::GlobalAddress();
}

template <class Keys>
template <class Write>
bool Paths<Keys>::Put(const LeafCopy& node, FrameSize size, size_t children, Entry entry, Write write) {
  Place place{.tree = tree_, .level = node.image.level(), .children = static_cast<uint8_t>(children)};
  const bool is_announced = entry == Entry::kAnnounced || entry == Entry::kKept;
  if (!is_announced) {
    if (IsKept(node.address)) return false;
    if (const std::optional<LatchedFrame> frame = cache_.Reopen(tree_, node.address, size); frame.has_value()) {
      write(*frame);
      cache_.Republish(*frame, place);
      return true;
    }
    cache_.Drop(&user_, node.address);  // of another size
  }
  if (entry == Entry::kDraw && !cache_.Admits(&user_, place.level)) return false;
  if (node.address != root_) {
    const End above = Follow(Keys::At(Keys::LowOf(node.image)), static_cast<uint8_t>(place.level + 1));
    if (above.is_reached) place.parent = above.frame;
  }
  const std::optional<LatchedFrame> frame = cache_.Take(&user_, size);
  if (!frame.has_value()) return false;
  write(*frame);
  const PageCache::As as = entry == Entry::kKept ? PageCache::As::kKept
                           : is_announced        ? PageCache::As::kAnnounced
                                                 : PageCache::As::kCopy;
  return cache_.Publish(&user_, *frame, node.address, place, as);
}

template <class Keys>
void Paths<Keys>::Keep(const LeafCopy& inner) {
  if (inner.address == root_) root_level_ = inner.image.level();
  const auto children = InnerBody<Keys>::ChildrenOf(cache_, inner);
  const std::optional<FrameSize> size = InnerBody<Keys>::SizeFor(children);
  if (!size.has_value()) return;
  Put(inner, *size, children.size, Entry::kDraw,
      [&](const LatchedFrame& frame) { InnerBody<Keys>::Store(frame, inner, children); });
}

template <class Keys>
void Paths<Keys>::KeepLeaf(const LeafCopy& leaf, bool admitted) {
  if (leaf.address == root_) root_level_ = 0;
  Put(leaf, LeafBody<Keys>::SizeFor(leaf.image), 0, admitted ? Entry::kAdmitted : Entry::kDraw,
      [&](const LatchedFrame& frame) { LeafBody<Keys>::Store(frame, leaf.image, shared_leaf::Grant()); });
}

template <class Keys>
bool Paths<Keys>::Announce(rdma::GlobalAddress leaf) {
  if (IsKept(leaf)) return false;
  cache_.Drop(&user_, leaf);
  return GANNET_MUTANT(kClaimBeforeFrame) || cache_.Announce(leaf);
}

template <class Keys>
void Paths<Keys>::KeepClaimed(const LeafCopy& leaf, shared_leaf::Grant grant) {
  const Entry entry = grant.is_kept()                    ? Entry::kKept
                      : GANNET_MUTANT(kClaimBeforeFrame) ? Entry::kAdmitted
                                                         : Entry::kAnnounced;
  const bool is_kept = Put(leaf, LeafBody<Keys>::SizeFor(leaf.image), 0, entry,
                           [&](const LatchedFrame& frame) { LeafBody<Keys>::Store(frame, leaf.image, grant); });
  if (is_kept) return;
  if (grant.is_kept()) AddKept(leaf.address, leaf.image, grant);
  Withdraw(leaf.address);
}

template <class Keys>
std::optional<uint64_t> Paths<Keys>::Weaken(rdma::GlobalAddress leaf) {
  const uint64_t mark = user_.NextMark();
  if (GANNET_MUTANT(kCopyStaysGood)) return mark;
  const PageCache::Latching latching = cache_.Latch(leaf);
  if (latching.is_busy) {
    Sometimes<"dex: a change waits for a claim of its own node">();
    return std::nullopt;
  }
  if (!latching.frame.has_value()) return mark;
  if (latching.frame->place().level > 0) {  // always a hint
    cache_.Release(*latching.frame);
    return mark;
  }
  if (latching.frame->before.kept()) {  // another thread was faster
    cache_.Release(*latching.frame);
    return std::nullopt;
  }
  LeafBody<Keys>::StoreGrant(latching.frame->body(), shared_leaf::Grant(0, mark));
  cache_.Rewritten(*latching.frame);
  return mark;
}

template <class Keys>
void Paths<Keys>::TakeChange(const shared_leaf::LeafWatch::Release& change, size_t leaf_bytes,
                             shared_leaf::Grant grant) {
  const std::optional<LatchedFrame> frame = cache_.Latch(change.leaf).frame;
  if (!frame.has_value()) return;
  // The split of a root that was a leaf makes it an inner node.
  const auto is_inner = [&change](const rdma::Operation& operation) {
    if (operation.verb != rdma::Verb::kWrite || operation.remote != change.leaf) return false;
    typename Keys::Head head;
    std::memcpy(&head, operation.local, sizeof(head));
    return shared_leaf::LeafSlots::Unpack(head.slots).level > 0;
  };
  if (frame->place().level > 0 || std::ranges::any_of(change.operations, is_inner)) {
    cache_.Release(*frame);
    Forget(change.leaf);
    return;
  }
  const shared_leaf::Grant found = LeafBody<Keys>::GrantOf(frame->body());
  const uint64_t state = LeafBody<Keys>::StateOf(frame->body());
  // Another thread's copy may be older, or newer.
  if (state != change.before || (!found.is_none() && !GANNET_MUTANT(kCopyStaysGood))) {
    cache_.Release(*frame);
    return;
  }
  for (const rdma::Operation& operation : change.operations) {
    const bool is_here = operation.verb == rdma::Verb::kWrite && operation.remote.node() == change.leaf.node() &&
                         operation.remote.offset() - change.leaf.offset() < leaf_bytes;
    if (is_here) LeafBody<Keys>::Apply(*frame, change.leaf, operation);
  }
  const bool is_last = found == shared_leaf::Grant(0, change.noted.mark) || GANNET_MUTANT(kUnmarkedChange);
  if (!is_last) Sometimes<"dex: another thread changes a leaf before the last change is in the cache">();
  LeafBody<Keys>::StoreGrant(frame->body(), is_last ? grant : shared_leaf::Grant());
  cache_.Rewritten(*frame);
}

template <class Keys>
void Paths<Keys>::Drop(const Point& point, uint8_t level) {
  const End end = Follow(point, level);
  if (end.is_reached) cache_.Drop(&user_, end.node);
}

template <class Keys>
bool Paths<Keys>::Load(const FrameLook& look, Image* image, shared_leaf::Grant* grant) {
  LeafBody<Keys>::Load(look.body(), image);
  *grant = LeafBody<Keys>::GrantOf(look.body());
  return cache_.frames().Unchanged(look);
}

template <class Keys>
bool Paths<Keys>::FindLeaf(const Point& point, LeafCopy* copy, shared_leaf::Grant* grant) {
  const End end = Follow(point, 0);
  if (!end.is_reached) return false;
  if (!Load(end.look, &copy->image, grant) || !(Keys::Covers(copy->image, point) || GANNET_MUTANT(kNoFences))) {
    return false;
  }
  copy->address = end.node;
  Keys::ForgetKeys(&copy->keys);
  return true;
}

template <class Keys>
bool Paths<Keys>::FindEntry(const Key& key, rdma::GlobalAddress* target, Witness* leaf, shared_leaf::Grant* grant,
                            bool* busy) {
  if constexpr (Keys::kKeysElsewhere) {
    return false;
  } else {
    using Body = LeafBody<Keys>;
    const End end = Follow(Keys::At(key), 0);
    *busy = end.is_busy;
    if (!end.is_reached) return false;
    const std::byte* const body = end.look.body();
    const bool covers = Body::Covers(body, key) || GANNET_MUTANT(kNoFences);
    const int slot = Body::FindSlot(body, key);
    *target = rdma::GlobalAddress::FromBits(slot < 0 ? 0 : Body::TargetAt(body, slot));
    *leaf = {end.node, Body::StateOf(body)};
    *grant = Body::GrantOf(body);
    return cache_.frames().Unchanged(end.look) && covers;
  }
}

template <class Keys>
typename Paths<Keys>::End Paths<Keys>::EndAt(rdma::GlobalAddress leaf) const {
  End end;
  end.frame = cache_.Find(leaf);
  end.node = leaf;
  if (end.frame == kNoFrame || !cache_.frames().Look(end.frame, &end.look)) {
    end.is_busy = end.look.word.kept_and_latched();
    return end;
  }
  end.place = end.look.place();
  end.is_reached = end.look.node() == leaf.bits() && end.place.tree == tree_ && end.place.level == 0;
  return end;
}

template <class Keys>
bool Paths<Keys>::LoadLeaf(rdma::GlobalAddress leaf, Image* image, shared_leaf::Grant* grant) {
  const End end = EndAt(leaf);
  return end.is_reached && Load(end.look, image, grant);
}

template <class Keys>
bool Paths<Keys>::FindCurrent(const Point& point, uint8_t level, LeafCopy* leaf) {
  if (level != 0) return false;
  if (expected_.has_value()) {
    const LeafCopy expected = *std::exchange(expected_, std::nullopt);
    if (Keys::Covers(expected.image, point)) {
      *leaf = expected;
      return true;
    }
  }
  shared_leaf::Grant grant;
  return claims_ != nullptr && FindLeaf(point, leaf, &grant) && !grant.is_none() &&
         claims_->IsGood(leaf->address, grant);
}

template <class Keys>
bool Paths<Keys>::IsKept(rdma::GlobalAddress leaf) const {
  const End end = EndAt(leaf);
  return end.is_reached && end.look.word.kept();
}

template <class Keys>
typename Paths<Keys>::Kept Paths<Keys>::ChangeKept(const shared_leaf::KeptEdit<Keys>& edit, rdma::GlobalAddress leaf,
                                                   bool through, KeptLeaf* kept) {
  if constexpr (Keys::kKeysElsewhere) {
    return Kept::kNotKept;
  } else {
    using Edit = shared_leaf::KeptEdit<Keys>;
    using Body = LeafBody<Keys>;
    const End end = leaf.is_null() ? Follow(Keys::At(edit.key), 0) : EndAt(leaf);
    if (end.is_busy) return Kept::kBusy;
    if (!end.is_reached || !end.look.word.kept()) return Kept::kNotKept;
    const std::optional<LatchedFrame> latched = cache_.LatchKept(end.frame, end.look);
    if (!latched.has_value()) return Kept::kBusy;
    std::byte* const body = latched->body();
    *kept = {.leaf = end.node, .state = Body::StateOf(body), .grant = Body::GrantOf(body), .frame = *latched};
    const auto leave = [&](Kept result) {
      cache_.Release(*latched);
      return result;
    };
    if (!Body::Covers(body, edit.key)) return leave(Kept::kNotKept);
    if (!claims_->Lasts(kept->grant.lease())) return leave(Kept::kLeaseOver);
    int slot = Body::FindSlot(body, edit.key);
    if (edit.kind == Edit::Kind::kInsert) {
      if (slot >= 0) return leave(Kept::kExists);
      slot = Body::FreeSlot(body);
      if (slot < 0) return leave(Kept::kFull);
      Body::SetEntry(body, slot, edit.entry);
      Body::SetUsed(body, slot, true);
    } else {
      const std::optional<uint64_t> target = edit.kind == Edit::Kind::kRemove ? std::optional(edit.entry.target)
                                             : edit.from.has_value()          ? std::optional(edit.from->target)
                                                                              : std::nullopt;
      if (slot < 0 || (target.has_value() && Body::TargetAt(body, slot) != *target)) return leave(Kept::kNotFound);
      if (edit.kind == Edit::Kind::kRemove) {
        Body::SetUsed(body, slot, false);
      } else {
        Body::SetEntry(body, slot, edit.entry);
      }
    }
    kept->grant = Body::GrantOf(body);
    if (through) return Kept::kToWrite;
    cache_.Rewritten(*latched);
    return Kept::kDone;
  }
}

template <class Keys>
void Paths<Keys>::Wrote(const LatchedFrame& frame, const Image& image, uint16_t lease) {
  LeafBody<Keys>::Store(frame, image, shared_leaf::Grant::Kept(lease, 0));
  cache_.Rewritten(frame);
}

template <class Keys>
bool Paths<Keys>::ForsakeKept(const KeptLeaf& kept) {
  const std::optional<LatchedFrame> frame = cache_.Latch(kept.leaf).frame;
  if (!frame.has_value()) return false;
  const std::byte* const body = frame->body();
  const bool is_same = frame->before.kept() && LeafBody<Keys>::StateOf(body) == kept.state &&
                       LeafBody<Keys>::GrantOf(body).lease() == kept.grant.lease();
  if (is_same) {
    Forsake(*frame);
  } else {
    cache_.Release(*frame);
  }
  return is_same;
}

template <class Keys>
void Paths<Keys>::AddKept(rdma::GlobalAddress leaf, const Image& image, shared_leaf::Grant grant) {
  if constexpr (Keys::kKeysElsewhere) return;  // none is kept
  KeptFrame kept;
  StoreWord(kept.bytes.data() + offsetof(FrameHead, node), leaf.bits());
  LatchedFrame frame;
  frame.frame = kept.bytes.data();
  LeafBody<Keys>::Store(frame, image, grant);
  user_.AddKept(kept);
}

template <class Keys>
std::optional<size_t> Paths<Keys>::TakeKeptFrom(size_t at, const Key& from, const Key& to, bool* missed) {
  if constexpr (Keys::kKeysElsewhere) {
    return std::nullopt;
  } else {
    constexpr size_t kAtOnce = 16;
    const auto is_wanted = [&](const std::byte* body) { return LeafBody<Keys>::Meets(body, from, to); };
    const size_t next = cache_.TakeKeptFrom(&user_, tree_, at, kAtOnce, is_wanted, missed);
    return next < cache_.frames().blocks() ? std::optional(next) : std::nullopt;
  }
}

template <class Keys>
size_t Paths<Keys>::LeavesFrom(const Point& point, const Key& to, bool reverse, std::span<rdma::GlobalAddress> leaves,
                               double* skipped) {
  const End end = Follow(point, 1);
  if (!end.is_reached) return 0;
  std::array<ChildLink, Keys::kSlots> links;
  const size_t most = std::min(links.size(), leaves.size());
  const size_t known = InnerBody<Keys>::FindFrom(cache_.frames(), end.look, end.place, point, to, reverse,
                                                 std::span(links).first(most), skipped);
  for (size_t i = 0; i < known; ++i) {
    if (!cache_.LeadsToFrame(links[i])) {
      leaves[i] = cache_.AddressOf(links[i], root_.node());
      continue;
    }
    FrameLook look;
    if (!cache_.frames().Look(cache_.FrameOf(links[i]), &look)) return i;
    const Place place = look.place();
    leaves[i] = rdma::GlobalAddress::FromBits(look.node());
    if (!cache_.frames().Unchanged(look) || place.tree != tree_ || place.level != 0) return i;
  }
  return known;
}

template <class Keys>
int Paths<Keys>::LevelsToRead(const Point& point) {
  const End end = Follow(point, 0);
  if (end.is_reached) return 0;
  return end.above == blink::kMaxLevels ? root_level_ + 1 : end.above;
}

template class Paths<shared_leaf::IntegerKeys>;
template class Paths<shared_leaf::ByteKeys>;

}  // namespace gannet::index::dex
