#include "index/dolphin/art_cache.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/random.h"
#include "base/runtime.h"

namespace gannet::index::dolphin {
namespace {

// The C library's allocator takes this much for an object.
constexpr size_t kAllocationBytes = 16;
constexpr size_t kAllocationHeader = 8;
// The table grows by a quarter when it is filled by seven eighths.
constexpr size_t kFirstPlaces = 16;

}  // namespace

size_t ArtCache::Node::LowerBound(int byte) const {
  const std::span<const uint64_t> all = entries();
  const auto at = std::partition_point(all.begin(), all.end(), [byte](uint64_t entry) { return ByteOf(entry) < byte; });
  return static_cast<size_t>(at - all.begin());
}
uint64_t ArtCache::Node::EntryUpTo(int most) const {
  const size_t at = LowerBound(most + 1);
  return at == 0 ? 0 : entries()[at - 1];
}
uint64_t ArtCache::Node::EntryFrom(int least) const {
  const size_t at = LowerBound(least);
  return at == count_ ? 0 : entries()[at];
}

ArtCache::~ArtCache() {
  for (Node* const node : table_) ::operator delete(node);
}

ArtCache::Node* ArtCache::NewNode(size_t prefix_bytes, size_t entries) {
  const size_t prefix_words = (prefix_bytes + kWordBytes - 1) / kWordBytes;
  const size_t wanted = sizeof(Node) + (prefix_words + entries) * kWordBytes;
  const size_t bytes = RoundUp(wanted + kAllocationHeader, kAllocationBytes) - kAllocationHeader;
  Node* const node = new (::operator new(bytes)) Node{};
  node->prefix_bytes_ = static_cast<uint8_t>(prefix_bytes);
  node->capacity_ = static_cast<uint16_t>((bytes - sizeof(Node)) / kWordBytes - prefix_words);
  return node;
}

size_t ArtCache::BytesOf(const Node& node) {
  return sizeof(Node) + (node.PrefixWords() + node.capacity_) * kWordBytes + kAllocationHeader;
}

size_t ArtCache::HomeOf(uint64_t address) const {
  return static_cast<size_t>(static_cast<unsigned __int128>(Mix64(address)) * table_.size() >> 64);
}

size_t ArtCache::PlaceOf(uint64_t address) const {
  size_t place = HomeOf(address);
  while (table_[place] != nullptr && table_[place]->address_ != address)
    place = place + 1 == table_.size() ? 0 : place + 1;
  return place;
}

const ArtCache::Node* ArtCache::Find(rdma::GlobalAddress node) const {
  if (table_.empty()) return nullptr;
  const Node* const found = table_[PlaceOf(node.bits())];
  if (found == nullptr) return nullptr;
  // Readers share the line: it is written once in a round of the hand.
  const std::atomic_ref used(found->used_);
  if (used.load(std::memory_order_relaxed) == 0) used.store(1, std::memory_order_relaxed);
  return found;
}

bool ArtCache::Go(ArtWay* way) const {
  while (way->step() == ArtWay::Step::kRead) {
    const Node* const node = way->must_read() ? nullptr : Find(way->next().address);
    if (node == nullptr) return false;
    Charge(Cost::kIndexStep);
    way->Take(*node, /*is_fresh=*/false);
  }
  return true;
}

std::optional<NodeRef> ArtCache::DeepestFor(rdma::GlobalAddress root, std::string_view key) const {
  std::optional<NodeRef> deepest;
  NodeRef next{root, kLargestNode};
  for (size_t bytes = 0;; ++bytes) {
    const Node* const node = Find(next.address);
    if (node == nullptr || !key.starts_with(node->prefix()) || node->prefix().size() < bytes) return deepest;
    deepest = {node->address(), node->type()};
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
  const Node& node = *Find(deepest->address);
  const size_t bytes = node.prefix().size();
  const int byte = ByteAt(low, bytes);
  const uint64_t there = node.EntryUpTo(byte);
  const int slot = node.type() == kLargestNode ? byte : node.count_;
  const bool fits = low.size() <= bytes + kEntryBytes && slot < kNodeEntries[node.type()];
  if (!fits || (there != 0 && ByteOf(there) == byte)) return std::nullopt;
  return FreeEntry{*deepest, node.state_, bytes, slot};
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
  const std::string_view prefix = image.prefix();
  Node* const node = NewNode(prefix.size(), static_cast<size_t>(image.count()));
  node->address_ = image.address().bits();
  node->state_ = image.state();
  node->type_ = image.type();
  node->used_ = 1;
  if (!prefix.empty()) std::memcpy(node->Words(), prefix.data(), prefix.size());
  uint64_t* const entries = node->Entries();
  image.ForEach([&](uint64_t entry) { entries[node->count_++] = entry; });
  if (BytesOf(*node) + kFirstPlaces * sizeof(Node*) > max_bytes_) {
    ::operator delete(node);
    return Drop(image.address());
  }
  if (8 * (nodes_ + 1) > 7 * table_.size()) Grow();
  Replace(PlaceOf(node->address_), node);
  MakeRoom(node->address_);
}

void ArtCache::Replace(size_t place, Node* node) {
  Node* const before = std::exchange(table_[place], node);
  AddBytes(static_cast<int64_t>(BytesOf(*node)));
  if (before == nullptr) {
    ++nodes_;
    return;
  }
  AddBytes(-static_cast<int64_t>(BytesOf(*before)));
  ::operator delete(before);
}

void ArtCache::Grow() {
  std::vector<Node*> old = std::move(table_);
  table_ = std::vector<Node*>(std::max(kFirstPlaces, old.size() + old.size() / 4));
  for (Node* const node : old) {
    if (node != nullptr) table_[PlaceOf(node->address_)] = node;
  }
  AddBytes(static_cast<int64_t>((table_.size() - old.size()) * sizeof(Node*)));
}

void ArtCache::Drop(rdma::GlobalAddress node) {
  if (table_.empty()) return;
  const size_t place = PlaceOf(node.bits());
  if (table_[place] != nullptr) EraseAt(place);
}

// Nodes behind the freed place move up if a search would not find them any more.
void ArtCache::EraseAt(size_t place) {
  AddBytes(-static_cast<int64_t>(BytesOf(*table_[place])));
  ::operator delete(table_[place]);
  --nodes_;
  for (size_t next = place;;) {
    next = next + 1 == table_.size() ? 0 : next + 1;
    if (table_[next] == nullptr) break;
    const size_t home = HomeOf(table_[next]->address_);
    const bool stays = place < next ? place < home && home <= next : place < home || home <= next;
    if (stays) continue;
    table_[place] = table_[next];
    place = next;
  }
  table_[place] = nullptr;
}

// Second chance: two rounds find a victim, if there is one.
void ArtCache::MakeRoom(uint64_t address) {
  for (size_t steps = 2 * table_.size(); bytes() > max_bytes_ && nodes_ > 1 && steps > 0; --steps) {
    if (hand_ >= table_.size()) hand_ = 0;
    const Node* const node = table_[hand_];
    if (node == nullptr || node->address_ == address || std::exchange(node->used_, uint8_t{0}) != 0) {
      ++hand_;
      continue;
    }
    EraseAt(hand_);  // another node may be there now
  }
}

void ArtCache::NoteEntry(rdma::GlobalAddress address, uint64_t entry) {
  if (table_.empty()) return;
  const size_t place = PlaceOf(address.bits());
  Node* node = table_[place];
  if (node == nullptr) return;
  const size_t at = node->LowerBound(ByteOf(entry));
  if (at < node->count_ && ByteOf(node->Entries()[at]) == ByteOf(entry)) {
    node->Entries()[at] = entry;
    return;
  }
  if (node->count_ == node->capacity_) {
    Node* const larger = NewNode(node->prefix_bytes_, node->count_ + size_t{2});
    const uint16_t capacity = larger->capacity_;
    std::memcpy(static_cast<void*>(larger), node, sizeof(Node) + (node->PrefixWords() + node->count_) * kWordBytes);
    larger->capacity_ = capacity;
    Replace(place, larger);
    node = larger;
  }
  uint64_t* const entries = node->Entries();
  std::copy_backward(entries + at, entries + node->count_, entries + node->count_ + 1);
  entries[at] = entry;
  ++node->count_;
  MakeRoom(address.bits());
}

void ArtCache::NoteNoEntry(rdma::GlobalAddress address, uint64_t entry) {
  if (table_.empty()) return;
  Node* const node = table_[PlaceOf(address.bits())];
  if (node == nullptr) return;
  const std::span<const uint64_t> all = node->entries();
  const size_t at = node->LowerBound(ByteOf(entry));
  if (at == all.size() || all[at] != entry) return;
  std::copy(all.begin() + static_cast<ptrdiff_t>(at) + 1, all.end(), node->Entries() + at);
  --node->count_;
}

}  // namespace gannet::index::dolphin
