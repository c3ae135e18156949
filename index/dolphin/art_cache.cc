#include "index/dolphin/art_cache.h"

#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/runtime.h"

namespace gannet::index::dolphin {
namespace {

// The table grows by a quarter when it is filled by seven eighths.
constexpr size_t kFirstSlots = 16;

uint64_t LineOf(rdma::GlobalAddress node) {
  return node.offset() / kLineBytes;
}

// The entries of an old copy whose children were replaced by larger ones: no way leads to copies of those any more.
std::vector<uint64_t> ReplacedIn(const ArtCopy& old, const ArtCopy::Content& now) {
  std::vector<uint64_t> replaced;
  for (size_t i = 0, j = 0; i < old.count() && j < now.count;) {
    const uint64_t before = old.entry(i);
    const uint64_t after = now.entries[j];
    if (ByteOf(before) == ByteOf(after) && TypeOf(before) != kLeafType && TypeOf(before) < TypeOf(after)) {
      replaced.push_back(before);
    }
    i += ByteOf(before) <= ByteOf(after) ? 1 : 0;
    j += ByteOf(after) <= ByteOf(before) ? 1 : 0;
  }
  return replaced;
}

}  // namespace

// --- The table ---

ArtCopy ArtCache::At(Place place) const {
  return ArtCopy(reinterpret_cast<std::byte*>(chunks_[place / kUnitsOfPlaces].memory.get() + place % kUnitsOfPlaces));
}

size_t ArtCache::HomeOf(uint64_t line) const {
  return static_cast<size_t>(static_cast<unsigned __int128>(Mix64(line)) * table_.size() >> 64);
}

size_t ArtCache::SlotOf(uint64_t line) const {
  size_t slot = HomeOf(line);
  while (table_[slot] != kNowhere && At(table_[slot]).line() != line) slot = slot + 1 == table_.size() ? 0 : slot + 1;
  return slot;
}

std::optional<size_t> ArtCache::SlotIfKnown(rdma::GlobalAddress node) const {
  if (table_.empty()) return std::nullopt;
  const size_t slot = SlotOf(LineOf(node));
  return table_[slot] == kNowhere ? std::nullopt : std::optional(slot);
}

void ArtCache::GrowTable() {
  std::vector<Place> old(std::max(kFirstSlots, table_.size() + table_.size() / 4), kNowhere);
  old.swap(table_);
  for (const Place place : old) {
    if (place != kNowhere) table_[SlotOf(At(place).line())] = place;
  }
}

// Nodes behind the freed slot move up if a search would not find them any more.
void ArtCache::EraseSlot(size_t slot) {
  Free(table_[slot]);
  --nodes_;
  for (size_t next = slot;;) {
    next = next + 1 == table_.size() ? 0 : next + 1;
    if (table_[next] == kNowhere) break;
    const size_t home = HomeOf(At(table_[next]).line());
    const bool stays = slot < next ? slot < home && home <= next : slot < home || home <= next;
    if (stays) continue;
    table_[slot] = table_[next];
    slot = next;
  }
  table_[slot] = kNowhere;
}

// --- Memory ---

void ArtCache::OpenChunk() {
  if (free_chunks_.empty()) {
    open_ = chunks_.size();
    chunks_.emplace_back();
  } else {
    open_ = free_chunks_.back();
    free_chunks_.pop_back();
  }
  chunks_[open_].memory = std::make_unique_for_overwrite<uint32_t[]>(kUnits);
}

ArtCache::Place ArtCache::Allocate(size_t bytes) {
  const size_t units = bytes / ArtCopy::kUnit;
  if (chunks_.empty() || chunks_[open_].filled + units > kUnits) OpenChunk();
  const size_t place = open_ * kUnitsOfPlaces + chunks_[open_].filled;
  GANNET_CHECK(place <= UINT32_MAX, "a cache of %d chunks", chunks_.size());
  chunks_[open_].filled += units;
  return static_cast<Place>(place);
}

void ArtCache::Free(Place place) {
  ArtCopy copy = At(place);
  const size_t bytes = copy.bytes();
  chunks_[place / kUnitsOfPlaces].gaps += bytes;
  gaps_ += bytes;
  copy.GiveUp();
}

void ArtCache::CloseGaps() {
  const auto most = std::ranges::max_element(chunks_, {}, &Chunk::gaps);
  const auto number = static_cast<size_t>(most - chunks_.begin());
  if (number == open_) OpenChunk();
  const size_t end = chunks_[number].filled;
  for (size_t unit = 1; unit < end;) {
    const ArtCopy copy = At(static_cast<Place>(number * kUnitsOfPlaces + unit));
    const size_t bytes = copy.bytes();
    unit += bytes / ArtCopy::kUnit;
    if (copy.is_given_up()) continue;
    const size_t slot = SlotOf(copy.line());
    const Place place = Allocate(bytes);
    At(place).CopyFrom(copy);
    table_[slot] = place;
  }
  gaps_ -= chunks_[number].gaps;
  chunks_[number] = Chunk();
  free_chunks_.push_back(number);
}

// Second chance: two rounds find a victim, if there is one.
void ArtCache::MakeRoom(uint64_t line) {
  for (size_t steps = 2 * table_.size(); bytes() > max_bytes_ && nodes_ > 1;) {
    if (HasManyGaps()) {
      CloseGaps();
      CountBytes();
      continue;
    }
    if (steps-- == 0) return;
    if (hand_ >= table_.size()) hand_ = 0;
    const Place place = table_[hand_];
    if (place == kNowhere || At(place).line() == line || At(place).ForgetUse()) {
      ++hand_;
    } else {
      EraseSlot(hand_);  // another node may have it now
    }
  }
  if (HasManyGaps()) CloseGaps();
  CountBytes();
}

void ArtCache::CountBytes() {
  bytes_.store(table_.size() * sizeof(Place) + MemoryOfChunks(), std::memory_order_relaxed);
}

// --- Copies ---

std::optional<ArtCopy> ArtCache::Find(rdma::GlobalAddress node) const {
  const std::optional<size_t> slot = SlotIfKnown(node);
  if (!slot.has_value()) return std::nullopt;
  const ArtCopy copy = At(table_[*slot]);
  copy.NoteUse();
  return copy;
}

bool ArtCache::Go(ArtWay* way) const {
  while (way->step() == ArtWay::Step::kRead) {
    if (way->must_read()) return false;
    const std::optional<ArtCopy> node = Find(way->next().address);
    if (!node.has_value()) return false;
    Charge(Cost::kIndexStep);
    way->Take(*node, /*is_fresh=*/false);
  }
  return true;
}

std::optional<NodeRef> ArtCache::DeepestFor(rdma::GlobalAddress root, std::string_view key) const {
  std::optional<NodeRef> deepest;
  NodeRef next{root, kLargestNode};
  for (size_t bytes = 0;; ++bytes) {
    const std::optional<ArtCopy> node = Find(next.address);
    if (!node.has_value() || !key.starts_with(node->prefix()) || node->prefix().size() < bytes) return deepest;
    deepest = {next.address, node->type()};
    bytes = node->prefix().size();
    if (bytes == key.size()) return deepest;
    const int byte = ByteAt(key, bytes);
    const uint64_t entry = node->EntryUpTo(byte);
    if (entry == 0 || ByteOf(entry) != byte || TypeOf(entry) == kLeafType) return deepest;
    next = ChildOf(entry, root.node());
  }
}

std::optional<ArtCache::FreeEntry> ArtCache::FreeEntryFor(rdma::GlobalAddress root, std::string_view low) const {
  const std::optional<NodeRef> deepest = DeepestFor(root, low);
  if (!deepest.has_value()) return std::nullopt;
  const ArtCopy node = *Find(deepest->address);
  const std::optional<uint32_t> version = node.version();
  const size_t bytes = node.prefix().size();
  const int byte = ByteAt(low, bytes);
  const uint64_t there = node.EntryUpTo(byte);
  const int slot = node.type() == kLargestNode ? byte : static_cast<int>(node.count());
  const bool fits = low.size() <= bytes + kEntryBytes && slot < kNodeEntries[node.type()];
  if (!version.has_value() || !fits || (there != 0 && ByteOf(there) == byte)) return std::nullopt;
  return FreeEntry{*deepest, *version, bytes, slot};
}

void ArtCache::LeavesFrom(rdma::GlobalAddress root, std::string_view key, bool below, bool reverse, size_t most,
                          std::vector<Leaf>* leaves) const {
  ArtWay way(root, key, below);
  while (leaves->size() < most && Go(&way) && way.step() == ArtWay::Step::kFound) {
    leaves->push_back({way.leaf(), way.low()});
    if (reverse) {
      way.GoLeft();
    } else {
      way.GoRight();
    }
  }
}

void ArtCache::Put(const NodeImage& image) {
  if (max_bytes_ < 2 * kChunkBytes) return;  // a chunk, and the table for what it may have
  const uint64_t line = LineOf(image.address());
  if (line == 0) return;  // a client that breaks the rules may have written that a node is there
  ArtCopy::Content content;
  content.line = line;
  content.type = image.type();
  content.prefix = ByteKey(image.prefix());
  // The version of a node that is alive is its state.
  if (image.state() <= UINT32_MAX) content.version = static_cast<uint32_t>(image.state());
  image.ForEach([&](uint64_t entry) { content.entries[content.count++] = entry; });
  if (8 * (nodes_ + 1) > 7 * table_.size()) GrowTable();
  const size_t slot = SlotOf(line);
  std::vector<uint64_t> replaced;
  if (table_[slot] != kNowhere) replaced = ReplacedIn(At(table_[slot]), content);
  Store(slot, content);
  for (const uint64_t child : replaced) Drop(ChildOf(child, image.address().node()).address);
}

void ArtCache::Store(size_t slot, const ArtCopy::Content& content) {
  const Place before = table_[slot];
  if (before != kNowhere && At(before).bytes() == content.bytes()) return At(before).Store(content);
  const Place place = Allocate(content.bytes());
  At(place).Store(content);
  if (before == kNowhere) {
    ++nodes_;
  } else {
    Free(before);
  }
  table_[slot] = place;
  CountBytes();
  MakeRoom(content.line);
}

void ArtCache::Drop(rdma::GlobalAddress node) {
  const std::optional<size_t> slot = SlotIfKnown(node);
  if (!slot.has_value()) return;
  EraseSlot(*slot);
  if (HasManyGaps()) CloseGaps();
  CountBytes();
}

template <class Edit>
void ArtCache::Change(rdma::GlobalAddress node, uint64_t entry, const Edit& edit) {
  const std::optional<size_t> slot = SlotIfKnown(node);
  if (!slot.has_value()) return;
  ArtCopy::Content content;
  const ArtCopy copy = At(table_[*slot]);
  copy.Load(&content);
  uint64_t* const at = content.entries.data() + copy.LowerBound(ByteOf(entry));
  uint64_t* const end = content.entries.data() + content.count;
  if (edit(at, end, &content.count)) Store(*slot, content);
}

void ArtCache::NoteEntry(rdma::GlobalAddress node, uint64_t entry) {
  Change(node, entry, [entry](uint64_t* at, uint64_t* end, size_t* count) {
    if (at == end || ByteOf(*at) != ByteOf(entry)) {
      std::copy_backward(at, end, end + 1);
      ++*count;
    }
    *at = entry;
    return true;
  });
}

void ArtCache::NoteNoEntry(rdma::GlobalAddress node, uint64_t entry) {
  Change(node, entry, [entry](uint64_t* at, uint64_t* end, size_t* count) {
    if (at == end || *at != entry) return false;
    std::copy(at + 1, end, at);
    --*count;
    return true;
  });
}

}  // namespace gannet::index::dolphin
