#include "index/dex/cache/page_cache.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/runtime.h"
#include "base/sometimes.h"

namespace gannet::index::dex {
namespace {

// The mapping table and the cooling map get a line for so many bytes of frames.
constexpr size_t kFrameBytesPerLine = 4 * BytesOf(FrameSize::k192);

size_t BytesOfFrames(size_t max_bytes) {
  return max_bytes - max_bytes / (kFrameBytesPerLine / kLineBytes + 1);
}

}  // namespace

PageCache::PageCache(const PageCacheOptions& options)
    : options_(options),
      frames_(BytesOfFrames(options.max_bytes)),
      limit_(static_cast<uint32_t>(frames_.blocks() * Frames::kUnits)),
      table_(frames_.blocks() * Frames::kBlockBytes / dex::BytesOf(FrameSize::k192)),
      cooling_(static_cast<size_t>(static_cast<double>(frames_.blocks() * Frames::kBlockBytes) * options.cooling /
                                   static_cast<double>(dex::BytesOf(FrameSize::k384))),
               options.one_cooling_latch) {
  for (BulkMemory& bytes : tree_bytes_) bytes = BulkMemory((UINT16_MAX + 1) * kWordBytes);
}

PageCache::User::~User() {
  const std::lock_guard lock(cache_.mutex_);
  for (size_t size = 0; size < kFrameSizes; ++size) {
    cache_.free_[size].insert(cache_.free_[size].end(), free_[size].begin(), free_[size].end());
  }
  cache_.kept_.insert(cache_.kept_.end(), kept_.begin(), kept_.end());
}

std::vector<KeptFrame> PageCache::User::TakeKept() {
  std::vector<KeptFrame> taken = std::exchange(kept_, {});
  const std::lock_guard lock(cache_.mutex_);
  taken.insert(taken.end(), cache_.kept_.begin(), cache_.kept_.end());
  cache_.kept_.clear();
  return taken;
}

bool PageCache::Admits(User* user, uint8_t level) {
  if (level > 0 || frames_.used_blocks() < frames_.blocks() || user->random_.Unit() < options_.leaf_admission)
    return true;
  Add(user, Event::kRefused);
  return false;
}

std::optional<LatchedFrame> PageCache::TakeFree(User* user, FrameSize size) {
  std::vector<FrameId>& own = user->free_[static_cast<size_t>(size)];
  for (;;) {
    if (own.empty()) {
      const std::lock_guard lock(mutex_);
      std::vector<FrameId>& all = free_[static_cast<size_t>(size)];
      const size_t n = std::min(all.size(), kOwnFree);
      own.assign(all.end() - static_cast<ptrdiff_t>(n), all.end());
      all.resize(all.size() - n);
    }
    if (own.empty()) return std::nullopt;
    const FrameId id = own.back();
    own.pop_back();
    // It may have been taken with its block.
    std::optional<LatchedFrame> frame = frames_.TryLatch(id);
    if (!frame.has_value()) continue;
    if (frame->size == size && !frame->before.live()) return frame;
    Release(*frame);
  }
}

void PageCache::KeepFree(User* user, FrameSize size, FrameId frame) {
  if (user != nullptr && user->free_[static_cast<size_t>(size)].size() < kOwnFree) {
    user->free_[static_cast<size_t>(size)].push_back(frame);
    return;
  }
  const std::lock_guard lock(mutex_);
  free_[static_cast<size_t>(size)].push_back(frame);
}

std::optional<LatchedFrame> PageCache::Take(User* user, FrameSize size) {
  if (frames_.blocks() == 0) return std::nullopt;
  if (std::optional<LatchedFrame> frame = TakeFree(user, size); frame.has_value()) return frame;
  std::vector<FrameId> rest;
  if (std::optional<LatchedFrame> frame = frames_.TakeBlock(size, &rest); frame.has_value()) {
    for (const FrameId id : rest) KeepFree(user, size, id);
    return frame;
  }
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kCooledAtOnce; ++i) CoolOne(user);
    if (std::optional<LatchedFrame> frame = TakeFree(user, size); frame.has_value()) return frame;
    Evict(user, cooling_.Pop(user->random_.Below(cooling_.buckets())));
    if (std::optional<LatchedFrame> frame = TakeFree(user, size); frame.has_value()) return frame;
  }
  return Recut(user, size);
}

void PageCache::CoolOne(User* user) {
  const size_t block = user->random_.Below(frames_.blocks());
  const FrameId frame = frames_.FrameIn(block, user->random_());
  if (frame != kNoFrame) Cool(user, frame, 0);
}

bool PageCache::Cool(User* user, FrameId id, int depth) {
  constexpr int kMostLevels = 64;
  // A free frame is left alone: a thread that takes it from the list of free frames would find it latched, and lose it.
  FrameLook look;
  if (!frames_.Look(id, &look)) return false;
  const std::optional<LatchedFrame> frame = frames_.TryLatch(id, look.word);
  if (!frame.has_value()) return false;
  const Place place = frame->place();
  std::array<FrameId, 64> below;
  size_t n = 0;
  for (size_t child = 0; child < place.children; ++child) {
    const ChildLink link = LoadLink(frame->body(), child);
    if (LeadsToFrame(link)) below[n++] = FrameOf(link);
  }
  if (n > 0) {
    Release(*frame);
    Add(user, Event::kDelegated);
    return depth < kMostLevels && Cool(user, below[user->random_.Below(n)], depth + 1);
  }
  const uint64_t node = frame->node();
  Unswizzle(*frame, place);
  frames_.Unlatch(*frame, (frame->before.bits & FrameWord::kState) | FrameWord::kCooling);
  Add(user, Event::kCooled);
  Evict(user, cooling_.Push(node, id));
  return true;
}

void PageCache::Evict(User* user, FrameId id) {
  if (id == kNoFrame) return;
  const std::optional<LatchedFrame> frame = frames_.TryLatch(id);
  if (!frame.has_value()) return;  // it stays, and may be chosen again
  if (frame->before.live() && frame->before.cooling()) {
    Add(user, Event::kEvicted);
    Empty(user, *frame);
  } else {
    Release(*frame);
  }
}

void PageCache::HandOver(User* user, const LatchedFrame& frame) {
  KeptFrame kept;
  for (size_t at = 0; at < kept.bytes.size(); at += kWordBytes) {
    StoreWord(kept.bytes.data() + at, LoadWord(frame.frame + at));
  }
  Add(user, Event::kKept);
  if (user != nullptr) {
    user->AddKept(kept);
    return;
  }
  const std::lock_guard lock(mutex_);
  kept_.push_back(kept);
}

void PageCache::Forget(User* user, const LatchedFrame& frame) {
  table_.Erase(frame.node(), frame.id);
  FetchAndAddWord(SizeOf(user, frame.place().tree), -dex::BytesOf(frame.size));
}

void PageCache::Empty(User* user, const LatchedFrame& frame) {
  if (frame.before.kept()) HandOver(user, frame);
  Forget(user, frame);
  frames_.Unlatch(frame, 0);
  KeepFree(user, frame.size, frame.id);
}

std::optional<LatchedFrame> PageCache::Recut(User* user, FrameSize size) {
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    const size_t block = user->random_.Below(frames_.blocks());
    const Frames::Cut cut = frames_.FramesOf(block);
    if (cut.frames.empty()) continue;
    std::vector<LatchedFrame> latched;
    for (const FrameId id : cut.frames) {
      const std::optional<LatchedFrame> frame = frames_.TryLatch(id);
      if (!frame.has_value()) break;
      if (frame->size != cut.size) {  // another thread has cut the block anew
        Release(*frame);
        break;
      }
      latched.push_back(*frame);
    }
    if (latched.size() < cut.frames.size()) {
      for (const LatchedFrame& frame : latched) Release(frame);
      continue;
    }
    for (const LatchedFrame& frame : latched) {
      if (!frame.before.live()) continue;
      Unswizzle(frame, frame.place());
      if (frame.before.cooling()) cooling_.Remove(frame.node(), frame.id);
      if (frame.before.kept()) HandOver(user, frame);
      Forget(user, frame);
      Add(user, Event::kEvicted);
    }
    Add(user, Event::kRecut);
    Sometimes<"dex: a block is cut anew">();
    const std::vector<LatchedFrame> fresh = frames_.Recut(block, size);
    for (const LatchedFrame& frame : std::span(fresh).subspan(1)) {
      frames_.Unlatch(frame, 0);
      KeepFree(user, size, frame.id);
    }
    return fresh.front();
  }
  return std::nullopt;
}

bool PageCache::Publish(User* user, const LatchedFrame& frame, rdma::GlobalAddress node, Place place, As as) {
  StoreWord(&frame.head()->node, node.bits());
  StoreWord(&frame.head()->place, place.Pack());
  if (!table_.Insert(node.bits(), frame.id, as != As::kCopy)) {
    Sometimes<"dex: two threads admit a node at once">();
    Abandon(user, frame);
    return false;
  }
  Add(user, Event::kAdmitted);
  FetchAndAddWord(SizeOf(user, place.tree), dex::BytesOf(frame.size));
  if (place.parent != kNoFrame) Swizzle(frame, place);
  frames_.Unlatch(frame, FrameWord::kLive | (as == As::kKept ? FrameWord::kKept : 0));
  return true;
}

void PageCache::Abandon(User* user, const LatchedFrame& frame) {
  frames_.Unlatch(frame, 0);
  KeepFree(user, frame.size, frame.id);
}

PageCache::Latching PageCache::Latch(rdma::GlobalAddress node) {
  for (int i = 0; i < kLatchTries; ++i) {
    const FrameId id = Find(node);
    if (id == kNoFrame) return {};
    if (id == kComing) break;
    if (const std::optional<LatchedFrame> frame = frames_.TryLatch(id); frame.has_value()) {
      if (frame->before.live() && frame->node() == node.bits()) return {.frame = frame};
      // An entry leads to its node's frame, as long as it is there: it was taken out meanwhile, or is another node's
      // with the same tag. That excludes a copy of this node.
      Release(*frame);
      if (Find(node) == id) return {};
      continue;
    }
    CpuRelax();
  }
  return {.frame = std::nullopt, .is_busy = true};
}

void PageCache::Rewritten(const LatchedFrame& frame) {
  frames_.Unlatch(frame, frame.before.bits & FrameWord::kState);
}

void PageCache::Detach(const LatchedFrame& frame) {
  if (frame.before.cooling()) {
    cooling_.Remove(frame.node(), frame.id);
  } else {
    Unswizzle(frame, frame.place());
  }
}

void PageCache::Forsake(User* user, const LatchedFrame& frame) {
  Detach(frame);
  Add(user, Event::kDropped);
  Forget(user, frame);
  Abandon(user, frame);
}

size_t PageCache::TakeKeptFrom(User* user, uint16_t tree, size_t block, size_t most,
                               absl::FunctionRef<bool(const std::byte* body)> is_wanted, bool* missed) {
  const size_t before = user->kept_.size();
  for (; block < frames_.used_blocks() && user->kept_.size() < before + most; ++block) {
    const Frames::Cut cut = frames_.FramesOf(block);
    Charge(Cost::kRecordLine, cut.frames.size());
    for (const FrameId id : cut.frames) {
      FrameLook look;
      if (!frames_.Look(id, &look)) {
        *missed |= look.word.kept_and_latched();
        continue;
      }
      if (!look.word.kept()) continue;
      if (look.place().tree != tree || !is_wanted(look.body())) {
        *missed |= !frames_.Unchanged(look);
        continue;
      }
      const std::optional<LatchedFrame> frame = LatchKept(id, look);
      if (!frame.has_value()) {
        *missed = true;
        continue;
      }
      Detach(*frame);
      Empty(user, *frame);
    }
  }
  return block < frames_.used_blocks() ? block : frames_.blocks();
}

std::optional<LatchedFrame> PageCache::Reopen(uint16_t tree, rdma::GlobalAddress node, FrameSize size) {
  const std::optional<LatchedFrame> frame = Latch(node).frame;
  if (!frame.has_value()) return frame;
  // The tree may have been dropped to which the memory belonged.
  if (frame->size == size && !frame->before.kept() && frame->place().tree == tree) return frame;
  Release(*frame);
  return std::nullopt;
}

void PageCache::Republish(const LatchedFrame& frame, Place place) {
  place.parent = frame.place().parent;
  if (frame.before.cooling()) cooling_.Remove(frame.node(), frame.id);
  StoreWord(&frame.head()->place, place.Pack());
  frames_.Unlatch(frame, FrameWord::kLive);
}

void PageCache::Restore(User* user, FrameId id, rdma::GlobalAddress node, FrameId parent) {
  const std::optional<LatchedFrame> frame = frames_.TryLatch(id);
  if (!frame.has_value()) return;
  if (!frame->before.live() || frame->node() != node.bits()) {
    Release(*frame);
    return;
  }
  if (frame->before.cooling()) {
    cooling_.Remove(node.bits(), id);
    Add(user, Event::kRestored);
    Sometimes<"dex: a copy is used while it cools">();
  }
  Place place = frame->place();
  place.parent = parent;
  if (parent != kNoFrame && Swizzle(*frame, place)) StoreWord(&frame->head()->place, place.Pack());
  frames_.Unlatch(*frame, frame->before.bits & FrameWord::kState & ~FrameWord::kCooling);
}

void PageCache::Drop(User* user, rdma::GlobalAddress node) {
  const std::optional<LatchedFrame> frame = Latch(node).frame;
  if (!frame.has_value()) return;
  Detach(*frame);
  Add(user, Event::kDropped);
  Empty(user, *frame);
}

void PageCache::Unswizzle(const LatchedFrame& child, const Place& place) {
  if (place.parent == kNoFrame) return;
  const std::optional<ChildLink> link = LinkTo(rdma::GlobalAddress::FromBits(child.node()));
  std::optional<LatchedFrame> parent;
  for (int i = 0; i < kLatchTries && !parent.has_value(); ++i) {
    if (i > 0) CpuRelax();
    parent = frames_.TryLatch(place.parent);
  }
  // The parent may lead to the child's frame then, when that has another copy. Who comes there sees that it is not the
  // child (paths.h).
  if (!parent.has_value()) return;
  const Place above = parent->place();
  if (parent->before.live() && link.has_value() && above.tree == place.tree && above.level == place.level + 1) {
    for (size_t i = 0; i < above.children; ++i) {
      if (LoadLink(parent->body(), i).bits() != child.id) continue;
      StoreLink(parent->body(), i, *link);
      frames_.Unlatch(*parent, parent->before.bits & FrameWord::kState);
      return;
    }
  }
  Release(*parent);
}

bool PageCache::Swizzle(const LatchedFrame& child, const Place& place) {
  const std::optional<ChildLink> link = LinkTo(rdma::GlobalAddress::FromBits(child.node()));
  if (!link.has_value()) return false;
  const std::optional<LatchedFrame> parent = frames_.TryLatch(place.parent);
  if (!parent.has_value()) return false;
  const Place above = parent->place();
  if (parent->before.live() && !parent->before.cooling() && above.tree == place.tree &&
      above.level == place.level + 1) {
    for (size_t i = 0; i < above.children; ++i) {
      if (LoadLink(parent->body(), i).bits() != link->bits()) continue;
      StoreLink(parent->body(), i, ChildLink(child.id));
      frames_.Unlatch(*parent, FrameWord::kLive);
      return true;
    }
  }
  Release(*parent);
  return false;
}

void PageCache::Release(const LatchedFrame& frame) {
  StoreWord(frame.frame, frame.before.bits);
}

// The sum is right, though a share may have given back more than it took.
uint64_t PageCache::BytesOf(uint16_t tree) const {
  uint64_t bytes = 0;
  for (size_t share = 0; share < kShares; ++share) bytes += LoadWord(SizeIn(share, tree));
  return bytes;
}

PageCacheStatistics PageCache::statistics() const {
  const auto of = [this](Event event) {
    uint64_t sum = 0;
    for (const Counts& counts : counts_) {
      sum += counts.of[static_cast<size_t>(event)].load(std::memory_order_relaxed);
    }
    return sum;
  };
  return {.admitted = of(Event::kAdmitted),
          .refused = of(Event::kRefused),
          .cooled = of(Event::kCooled),
          .delegated = of(Event::kDelegated),
          .restored = of(Event::kRestored),
          .evicted = of(Event::kEvicted),
          .dropped = of(Event::kDropped),
          .recut = of(Event::kRecut),
          .kept = of(Event::kKept),
          .lost = of(Event::kLost)};
}

}  // namespace gannet::index::dex
