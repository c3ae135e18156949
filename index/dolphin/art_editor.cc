#include "index/dolphin/art_editor.h"

#include <algorithm>
#include <utility>

#include "base/cache_line.h"
#include "base/runtime.h"
#include "index/backoff.h"
#include "index/dolphin/leaf.h"
#include "index/shared_leaf/leaf/posting.h"
#include "rdma/fabric.h"

namespace gannet::index::dolphin {
namespace {

// The entry leads to a leaf with this low fence, which has the prefix of the node.
bool IsLeafWith(std::string_view low, std::string_view prefix, uint64_t entry) {
  return IsEntry(entry) && TypeOf(entry) == kLeafType && LowOf(prefix, entry).view() == low;
}

}  // namespace

bool ArtEditor::Place::Passes(rdma::GlobalAddress address) const {
  return node.address() == address ||
         std::ranges::any_of(links, [address](const Link& link) { return link.node.address == address; });
}

bool ArtEditor::MayBeNode(const NodeRef& node) const {
  if (!leaves_->is_own()) return node.address.node() == owner() && node.address.offset() % kLineBytes == 0;
  const shared_leaf::LeafBlocks& blocks = *leaves_->own_blocks();
  const size_t bytes = NodeBytes(node.type, prefix_lines_);
  return blocks.rights() == IndexRights::kClients ? blocks.IsWritable(node.address.offset(), bytes)
                                                  : blocks.IsReadOnly(node.address.offset(), bytes);
}

coro::Task<StatusOr<LeafLook>> ArtEditor::Read(NodeRef node, NodeImage* image) {
  image->Expect(node, prefix_lines_);
  if (!MayBeNode(node)) co_return LeafLook::kTorn;
  LeafLook look = LeafLook::kTorn;
  Backoff backoff;
  for (int looks = 0; looks < kMostLooks && look != LeafLook::kWhole && look != LeafLook::kDead; ++looks) {
    if (looks > 0) backoff.Pause();
    Charge(Cost::kRecordLine, image->size() / kLineBytes);
    if (const std::byte* const own = Own(node.address); own != nullptr) {
      look = LoadNode(own, image);
      continue;
    }
    const Status status =
        co_await leaves_->channel()->Read(node.address, image->data(), static_cast<uint32_t>(image->size()));
    if (absl::IsInvalidArgument(status)) co_return LeafLook::kTorn;  // it would end behind the owner's memory
    GANNET_CO_RETURN_IF_ERROR(status);
    look = image->Look();
    if (look == LeafLook::kTorn) leaves_->channel()->CountRetry();
  }
  if (watch_ != nullptr) {
    if (look == LeafLook::kWhole) {
      watch_->NoteNode(*image);
    } else {
      watch_->NoteDead(node.address);
    }
  }
  co_return look;
}

coro::Task<void> ArtEditor::ReadOnce(std::span<const NodeRef> nodes) {
  std::array<NodeImage, kMostNodes> images;
  std::array<rdma::Operation, kMostNodes> reads;
  size_t n = 0;
  for (const NodeRef& node : nodes) {
    if (!MayBeNode(node)) continue;
    NodeImage& image = images[n];
    image.Expect(node, prefix_lines_);
    Charge(Cost::kRecordLine, image.size() / kLineBytes);
    reads[n++] = rdma::Operation::Read(node.address, image.data(), static_cast<uint32_t>(image.size()));
  }
  if (n == 0) co_return;
  const Status status = co_await leaves_->channel()->Post(std::span(reads).first(n));
  for (NodeImage& image : std::span(images).first(n)) {
    if (status.ok() && watch_ != nullptr && image.Look() == LeafLook::kWhole) watch_->NoteNode(image);
  }
}

EntryHint::EntryHint(const NodeRef& node, size_t prefix_lines, uint64_t state, int slot, uint64_t entry,
                     rdma::GlobalAddress leaf)
    : node_(node),
      word_(node.address + EntryOffset(prefix_lines, slot)),
      state_(state),
      slot_(slot),
      entry_(entry),
      leaf_(leaf) {
  if (node.type == kLargestNode) return;
  found_ = std::make_unique<NodeImage>();
  found_->Expect(node, prefix_lines);
}

void EntryHint::Append(shared_leaf::Posting* posting) {
  const uint64_t pointer = ReversePointer(node_);
  posting->Add(rdma::Operation::CompareAndSwap(word_, VersionOf(state_), entry_));
  posting->Write(leaf_ + kReverseOffset, std::as_bytes(std::span(&pointer, 1)));
  if (found_ != nullptr) {
    posting->Add(rdma::Operation::Read(node_.address, found_->data(), static_cast<uint32_t>(found_->size())));
  } else {
    posting->Add(rdma::Operation::Read(word_, &found_entry_, kWordBytes));
    posting->Add(rdma::Operation::Read(node_.address, &found_state_, kWordBytes));
  }
}

bool EntryHint::IsThere() {
  if (found_ == nullptr) return found_entry_ == entry_ && found_state_ == state_;
  return found_->Look() == LeafLook::kWhole && found_->state() == state_ && found_->word(slot_) == entry_ &&
         found_->Has(ByteOf(entry_)) == 1;
}

coro::Task<ArtEditor::Swapped> ArtEditor::Swap(Link link, uint64_t desired, const Holders* holders) {
  uint64_t state = 0;
  std::array<uint64_t, 2> pointers;
  std::array<rdma::Operation, 4> operations = {rdma::Operation::CompareAndSwap(link.word, link.entry, desired)};
  size_t count = 1;
  for (size_t i = 0; holders != nullptr && i < holders->size(); ++i) {
    const Holder& holder = (*holders)[i];
    if (holder.leaf.is_null()) continue;
    pointers[i] = ReversePointer(holder.node);
    operations[count++] = rdma::Operation::Write(&pointers[i], holder.leaf + kReverseOffset, kWordBytes);
  }
  // An entry goes to any free slot, so another editor may add one for the same byte to another slot.
  const bool may_be_double = !IsEntry(link.entry) && IsEntry(desired) && link.node.type != kLargestNode;
  std::unique_ptr<NodeImage> after;
  if (may_be_double) {
    after = std::make_unique<NodeImage>();
    after->Expect(link.node, prefix_lines_);
  }
  const std::byte* const own = Own(link.node.address);
  if (own == nullptr) {
    operations[count++] =
        may_be_double ? rdma::Operation::Read(link.node.address, after->data(), static_cast<uint32_t>(after->size()))
                      : rdma::Operation::Read(link.node.address, &state, kWordBytes);
  }
  const uint64_t connection = leaves_->Connection();
  for (rdma::Operation& operation : operations) operation.connection = connection;
  const Status posted = co_await leaves_->PostHint(std::span(operations).first(count));
  if (!posted.ok()) co_return Swapped::kUncertain;
  if (operations[0].result != link.entry) co_return Swapped::kChanged;
  if (may_be_double && own != nullptr) LoadNode(own, after.get());
  if (may_be_double) {
    state = after->state();
  } else if (own != nullptr) {
    state = LoadWord(own);
  }
  if (state != link.state) co_return Swapped::kUncertain;
  // If two editors have each added an entry, at least one of them sees the other's here, and takes back its own.
  if (may_be_double && after->Has(ByteOf(desired)) > 1) {
    const Link own_entry{link.node, link.state, link.word, desired};
    const Swapped back = co_await Swap(own_entry, VersionOf(link.state));
    co_return back == Swapped::kDone ? Swapped::kChanged : Swapped::kUncertain;
  }
  if (watch_ != nullptr) {
    if (IsEntry(desired)) {
      watch_->NoteEntry(link.node.address, desired);
    } else {
      watch_->NoteNoEntry(link.node.address, link.entry);
    }
  }
  co_return Swapped::kDone;
}

// Each step leads to a node with a longer prefix.
coro::Task<ArtEditor::Outcome> ArtEditor::FindOnce(std::string_view low, std::optional<NodeRef> start, Place* place) {
  place->links.clear();
  place->has_child = false;
  StatusOr<LeafLook> look = LeafLook::kTorn;
  if (start.has_value()) look = co_await Read(*start, &place->node);
  if (!look.ok()) co_return Outcome::kFailed;
  if (*look != LeafLook::kWhole || !low.starts_with(place->node.prefix())) {
    look = co_await Read(root_, &place->node);
    if (!look.ok() || *look != LeafLook::kWhole || !place->node.prefix().empty()) co_return Outcome::kFailed;
  }
  for (;;) {
    const size_t bytes = place->node.prefix().size();
    place->byte = ByteAt(low, bytes);
    place->slot = place->node.SlotOf(place->byte);
    const uint64_t entry = place->entry();
    if (place->slot < 0 || TypeOf(entry) == kLeafType) co_return Outcome::kDone;
    look = co_await Read(ChildOf(entry, owner()), &place->child);
    if (!look.ok()) co_return Outcome::kFailed;
    const std::string_view prefix = place->child.prefix();
    const bool fits = *look == LeafLook::kWhole && place->byte > 0 && prefix.size() > bytes &&
                      prefix.size() <= kMostPrefix && CommonBytes(prefix, low) > bytes;
    const Link link = place->LinkAt(place->slot);
    if (!fits) {
      co_await Swap(link, place->node.free_word());
      co_return Outcome::kAgain;
    }
    place->has_child = !low.starts_with(prefix);
    if (place->has_child) co_return Outcome::kDone;
    place->links.push_back(link);
    place->node = place->child;
  }
}

coro::Task<bool> ArtEditor::Find(std::string_view low, std::optional<NodeRef> start, Place* place) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    const Outcome outcome = co_await FindOnce(low, start, place);
    if (outcome != Outcome::kAgain) co_return outcome == Outcome::kDone;
  }
  co_return false;
}

coro::Task<ArtEditor::Fresh*> ArtEditor::NewNode(NodeType type, std::string_view prefix, Nodes* nodes) {
  const StatusOr<shared_leaf::FreeBlock> block = co_await blocks_[type - kSmallestNode]->Take(leaves_->Connection());
  if (!block.ok()) co_return nullptr;
  nodes->push_back(std::make_unique<Fresh>());
  Fresh* const fresh = nodes->back().get();
  fresh->block = *block;
  fresh->image.Make({block->address, type}, prefix_lines_, block->word, prefix);
  co_return fresh;
}

coro::Task<bool> ArtEditor::Write(const Nodes& nodes) {
  std::vector<rdma::Operation> operations;
  for (const auto& node : nodes) {
    if (std::byte* const own = Own(node->image.address()); own != nullptr) {
      StoreNode(node->image, own);
      continue;
    }
    operations.push_back(
        rdma::Operation::Write(node->image.data(), node->image.address(), static_cast<uint32_t>(node->image.size())));
    operations.back().connection = node->block.connection;
  }
  if (operations.empty()) co_return true;
  const Status posted = co_await leaves_->PostHint(operations);
  co_return posted.ok();
}

// The word of a block grows, also if it is not known whether it was WRITTEN: the lines that it has then are older than
// those of the next node there.
coro::Task<void> ArtEditor::Abandon(Nodes* nodes, bool were_written) {
  for (const auto& node : *nodes) {
    shared_leaf::BlockSource* const blocks = blocks_[node->image.type() - kSmallestNode];
    if (!were_written) {
      blocks->PutBack(node->block);
      continue;
    }
    const rdma::GlobalAddress at = node->image.address();
    const NodeImage& image = node->image;
    bool is_dead = false;
    for (int tries = 0; tries < kMostLooks && !is_dead; ++tries) {
      rdma::Operation kills[] = {rdma::Operation::CompareAndSwap(at, image.state(), image.dead_state()),
                                 rdma::Operation::CompareAndSwap(at, node->block.word, image.dead_state())};
      for (rdma::Operation& kill : kills) kill.connection = node->block.connection;
      const Status posted = co_await leaves_->PostHint(kills);
      // If a try has failed, the next one finds what it did.
      is_dead = posted.ok() && (kills[0].result == kills[0].expected || kills[1].result == kills[1].expected ||
                                (tries > 0 && kills[0].result == image.dead_state()));
      if (posted.ok() || leaves_->is_dead()) break;
    }
    if (watch_ != nullptr) watch_->NoteDead(at);
    if (is_dead) co_await GiveBack(image);  // otherwise it stays lent until the connection has ended
  }
  nodes->clear();
}

coro::Task<void> ArtEditor::GiveBack(const NodeImage& dead) {
  co_await blocks_[dead.type() - kSmallestNode]->Return(
      {.address = dead.address(), .word = dead.dead_state(), .connection = leaves_->Connection()});
}

coro::Task<bool> ArtEditor::Kill(const NodeImage& node, NodeImage* late) {
  late->Expect(node.ref(), prefix_lines_);
  const std::byte* const own = Own(node.address());
  for (int tries = 0; tries < kMostLooks && !leaves_->is_dead(); ++tries) {
    std::array<rdma::Operation, 2> operations = {
        rdma::Operation::CompareAndSwap(node.address(), node.state(), node.dead_state()),
        rdma::Operation::Read(node.address(), late->data(), static_cast<uint32_t>(late->size()))};
    for (rdma::Operation& operation : operations) operation.connection = leaves_->Connection();
    const Status posted = co_await leaves_->PostHint(std::span(operations).first(own == nullptr ? 2 : 1));
    if (!posted.ok()) continue;
    if (own != nullptr) LoadNode(own, late);
    if (watch_ != nullptr) watch_->NoteDead(node.address());
    // If a try has failed, the next one finds what it did. A block that is given back twice is taken once.
    co_return operations[0].result == node.state() || (tries > 0 && operations[0].result == node.dead_state());
  }
  late->Expect({}, prefix_lines_);
  co_return false;
}

// An editor that has found the node empty may have declared it dead before. It gives back the block.
coro::Task<void> ArtEditor::Retire(const NodeImage& node, NodeImage* copy) {
  auto late = std::make_unique<NodeImage>();
  const bool killed = co_await Kill(node, late.get());
  if (late->ref() == node.ref() && late->state() == node.dead_state()) co_await CarryOver(node, *late, copy);
  if (killed) co_await GiveBack(node);
}

coro::Task<void> ArtEditor::CarryOver(const NodeImage& before, const NodeImage& after, NodeImage* copy) {
  for (int slot = 0; slot < before.slots(); ++slot) {
    const uint64_t from = before.word(slot);
    const uint64_t to = after.word(slot);
    // If the node has two entries for a byte, its copy has the first. But the second may be the one that stays (Swap).
    const bool was_copied = IsEntry(from) && before.SlotOf(ByteOf(from)) == slot;
    if (from == to && (was_copied || !IsEntry(from))) continue;
    const int in_copy = was_copied ? copy->SlotOf(ByteOf(from)) : -1;
    if (in_copy >= 0 && copy->word(in_copy) == from) {
      const bool stays = IsEntry(to) && ByteOf(to) == ByteOf(from);
      const Link link{copy->ref(), copy->state(), copy->AddressOf(in_copy), from};
      const uint64_t word = stays ? to : copy->free_word();
      const Swapped swapped = co_await Swap(link, word);
      copy->set_word(in_copy, word);
      if (stays && swapped == Swapped::kDone) continue;
    }
    const bool added = !IsEntry(to) || co_await AddToCopy(to, copy);
    if (!added) co_await Lose(to, before.prefix());
  }
}

coro::Task<bool> ArtEditor::AddToCopy(uint64_t entry, NodeImage* copy) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    const int there = copy->SlotOf(ByteOf(entry));
    if (there >= 0) co_return copy->word(there) == entry;
    const int slot = copy->FreeSlot(ByteOf(entry));
    if (slot < 0) co_return false;
    const Link link{copy->ref(), copy->state(), copy->AddressOf(slot), copy->word(slot)};
    const Swapped swapped = co_await Swap(link, entry);
    if (swapped == Swapped::kDone) {
      copy->set_word(slot, entry);
      co_return true;
    }
    const NodeRef ref = copy->ref();
    const StatusOr<LeafLook> look = co_await Read(ref, copy);
    if (!look.ok() || *look != LeafLook::kWhole) co_return false;
  }
  co_return false;
}

coro::Task<void> ArtEditor::Lose(uint64_t entry, std::string_view prefix) {
  std::vector<std::pair<uint64_t, ByteKey>> open = {{entry, ByteKey(prefix)}};
  auto image = std::make_unique<NodeImage>();
  auto late = std::make_unique<NodeImage>();
  for (int nodes = 0; !open.empty() && lost_.size() < kMostLost;) {
    const auto [next, above] = open.back();
    open.pop_back();
    if (TypeOf(next) == kLeafType) {
      lost_.emplace_back(LowOf(above.view(), next), ChildOf(next, owner()).address);
      continue;
    }
    if (++nodes > kMostTries) co_return;
    const StatusOr<LeafLook> look = co_await Read(ChildOf(next, owner()), image.get());
    if (!look.ok() || *look != LeafLook::kWhole || !image->prefix().starts_with(above.view())) continue;
    const ByteKey of(image->prefix());
    const Outcome linked = co_await IsOnWay(of.view(), image->address());
    if (linked != Outcome::kAgain) continue;
    const bool killed = co_await Kill(*image, late.get());
    if (!killed) continue;
    late->ForEachSlot([&](uint64_t below) { open.emplace_back(below, of); });
    co_await GiveBack(*image);
  }
}

coro::Task<bool> ArtEditor::Plan(std::string_view low, rdma::GlobalAddress leaf, const Place& place, Nodes* nodes,
                                 uint64_t* entry, Holders* holders) {
  const std::string_view prefix = place.node.prefix();
  *holders = {};
  Holder& holder = holders->front();
  holder = {.node = place.node.ref(), .leaf = leaf};
  const uint64_t there = place.entry();
  Fresh* fork = nullptr;
  size_t above = prefix.size();  // bytes of the prefix of the node that has the entry for `low`, or for `last`
  if (there != 0 && !IsLeafWith(low, prefix, there)) {
    const ByteKey other = place.has_child ? ByteKey(place.child.prefix()) : LowOf(prefix, there);
    above = CommonBytes(other.view(), low);
    fork = co_await NewNode(kSmallestNode, low.substr(0, above), nodes);
    if (fork == nullptr) co_return false;
    const rdma::GlobalAddress to = ChildOf(there, owner()).address;
    fork->image.Add(place.has_child ? NodeEntry(place.child, ByteAt(other.view(), above))
                                    : LeafEntry(to, other.view(), above));
    holder.node = fork->image.ref();
    if (!place.has_child && leaves_->CheckAddress(to).ok()) holders->back() = {.node = holder.node, .leaf = to};
  }
  uint64_t to_low = LeafEntry(leaf, low, above);
  if (low.size() > above + kEntryBytes) {
    const size_t bytes = low.size() - kEntryBytes;
    Fresh* const last = co_await NewNode(kSmallestNode, low.substr(0, bytes), nodes);
    if (last == nullptr) co_return false;
    last->image.Add(LeafEntry(leaf, low, bytes));
    to_low = NodeEntry(last->image, ByteAt(low, above));
    holder.node = last->image.ref();
  }
  *entry = to_low;
  if (fork == nullptr) co_return true;
  fork->image.Add(to_low);
  *entry = NodeEntry(fork->image, place.byte);
  co_return true;
}

coro::Task<ArtEditor::Outcome> ArtEditor::AddAt(const ByteKey& low, rdma::GlobalAddress leaf, bool replaces,
                                                Place* place) {
  const std::string_view prefix = place->node.prefix();
  if (IsLeafWith(low.view(), prefix, place->entry()) &&
      (!replaces || ChildOf(place->entry(), owner()).address == leaf)) {
    co_return Outcome::kDone;
  }
  const int slot = place->slot >= 0 ? place->slot : place->node.FreeSlot(place->byte);
  const bool grows = slot < 0;
  if (grows && place->links.empty()) co_return Outcome::kAgain;  // the way began in the middle
  Nodes nodes;
  uint64_t entry = 0;
  Holders holders;
  bool has_nodes = co_await Plan(low.view(), leaf, *place, &nodes, &entry, &holders);
  Fresh* copy = nullptr;
  if (has_nodes && grows) {
    const NodeImage& node = place->node;
    const auto type = static_cast<NodeType>(node.type() + 1);
    copy = co_await NewNode(type, node.prefix(), &nodes);
    has_nodes = copy != nullptr;
    if (has_nodes) {
      copy->image.AddAll(node);
      copy->image.Add(entry);
      if (holders.front().node == node.ref()) holders.front().node = copy->image.ref();
    }
  }
  if (!has_nodes) {
    co_await Abandon(&nodes, /*were_written=*/false);
    co_return Outcome::kFailed;
  }
  const bool written = nodes.empty() || co_await Write(nodes);
  if (!written) {
    co_await Abandon(&nodes, /*were_written=*/true);
    co_return Outcome::kFailed;
  }
  Link link = grows ? place->links.back() : place->LinkAt(slot);
  if (grows) entry = NodeEntry(copy->image, ByteOf(link.entry));
  Swapped swapped = co_await Swap(link, entry, &holders);
  // The node was replaced, and the entry is in its copy, or gets there soon. An entry for a leaf is made again. One for
  // new nodes is put there now, if it still fits, because new nodes that were given up could be linked later.
  const uint64_t there = grows ? link.entry : place->entry();
  auto now = std::make_unique<Place>();
  for (int looks = 0; swapped == Swapped::kUncertain && !nodes.empty() && looks < kMostLooks; ++looks) {
    const bool found = co_await Find(low.view(), std::nullopt, now.get());
    if (!found) co_return Outcome::kFailed;  // new nodes may be linked; otherwise they stay lent
    if (now->Passes(ChildOf(entry, owner()).address)) {
      swapped = Swapped::kDone;
    } else if (grows && now->node.address() == place->node.address() && !now->links.empty()) {
      link = now->links.back();
      if (link.entry == there) swapped = co_await Swap(link, entry, &holders);
    } else if (!grows && now->node.prefix() == prefix && now->entry() == there) {
      const int at = now->slot >= 0 ? now->slot : now->node.FreeSlot(now->byte);
      if (at < 0) break;
      link = now->LinkAt(at);
      swapped = co_await Swap(link, entry, &holders);
    }
    // It may have been carried over just now.
    if (swapped == Swapped::kChanged) swapped = Swapped::kUncertain;
  }
  if (swapped != Swapped::kDone) {
    co_await Abandon(&nodes, /*were_written=*/true);
    co_return Outcome::kAgain;
  }
  if (watch_ != nullptr) {
    for (const auto& node : nodes) watch_->NoteNode(node->image);
  }
  if (grows) co_await Retire(place->node, &copy->image);
  co_return Outcome::kDone;
}

coro::Task<ArtEditor::Outcome> ArtEditor::IsOnWay(std::string_view low, rdma::GlobalAddress node) {
  auto now = std::make_unique<Place>();
  const bool found = co_await Find(low, std::nullopt, now.get());
  if (!found) co_return Outcome::kFailed;
  co_return now->Passes(node) ? Outcome::kDone : Outcome::kAgain;
}

coro::Task<bool> ArtEditor::AddOne(ByteKey low, rdma::GlobalAddress leaf, bool replaces, std::optional<NodeRef> start) {
  auto place = std::make_unique<Place>();
  for (int tries = 0; tries < kMostTries; ++tries) {
    const bool found = co_await Find(low.view(), start, place.get());
    if (!found) co_return false;
    const Outcome outcome = co_await AddAt(low, leaf, replaces, place.get());
    if (outcome != Outcome::kAgain) co_return outcome == Outcome::kDone;
    start.reset();
  }
  co_return false;
}

// Few entries are lost while this is done.
coro::Task<void> ArtEditor::AddLost() {
  for (size_t tries = 0; !lost_.empty() && tries < kMostLost; ++tries) {
    const auto [low, leaf] = lost_.back();
    lost_.pop_back();
    co_await AddOne(low, leaf, /*replaces=*/false, std::nullopt);
  }
}

coro::Task<bool> ArtEditor::AddLeaf(ByteKey low, rdma::GlobalAddress leaf, std::optional<NodeRef> start) {
  const bool added = co_await AddOne(low, leaf, /*replaces=*/true, start);
  co_await AddLost();
  co_return added;
}

coro::Task<bool> ArtEditor::RemoveLeaf(ByteKey low, rdma::GlobalAddress leaf, std::optional<NodeRef> start) {
  auto place = std::make_unique<Place>();
  for (int tries = 0; tries < kMostTries; ++tries) {
    const bool found = co_await Find(low.view(), start, place.get());
    if (!found) co_return false;
    const uint64_t entry = place->entry();
    const bool is_there = IsLeafWith(low.view(), place->node.prefix(), entry);
    if (!is_there || ChildOf(entry, owner()).address != leaf) co_return true;
    const Swapped swapped = co_await Swap(place->LinkAt(place->slot), place->node.free_word());
    if (swapped == Swapped::kDone) {
      place->node.set_word(place->slot, place->node.free_word());
      co_await DropEmpty(low.view(), place.get());
      co_await AddLost();
      co_return true;
    }
    start.reset();
  }
  co_return false;
}

coro::Task<void> ArtEditor::DropEmpty(std::string_view low, Place* place) {
  auto late = std::make_unique<NodeImage>();
  auto dead = std::make_unique<NodeImage>();
  while (place->node.count() == 0 && place->node.address() != root_.address) {
    if (place->links.empty()) {  // the way began in the middle
      const rdma::GlobalAddress empty = place->node.address();
      const bool found = co_await Find(low, std::nullopt, place);
      if (!found || place->node.address() != empty || place->links.empty()) co_return;
      continue;
    }
    const Link link = place->links.back();
    place->links.pop_back();
    const bool killed = co_await Kill(place->node, late.get());
    if (!killed) co_return;
    *dead = place->node;
    const uint64_t free_word = VersionOf(link.state);
    const Swapped swapped = co_await Swap(link, free_word);
    // If others have moved the entry, the way meets it, and takes it away.
    if (swapped != Swapped::kDone) co_await Find(low, std::nullopt, place);
    // Entries that others have added in the meantime are added again.
    std::vector<uint64_t> entries;
    late->ForEachSlot([&entries](uint64_t entry) { entries.push_back(entry); });
    for (const uint64_t entry : entries) co_await Lose(entry, dead->prefix());
    co_await GiveBack(*dead);
    if (swapped != Swapped::kDone) co_return;
    const StatusOr<LeafLook> look = co_await Read(link.node, &place->node);
    if (!look.ok() || *look != LeafLook::kWhole) co_return;
  }
}

coro::Task<bool> ArtEditor::RemoveEntry(NodeRef node, uint64_t entry) {
  auto image = std::make_unique<NodeImage>();
  const StatusOr<LeafLook> look = co_await Read(node, image.get());
  if (!look.ok() || *look != LeafLook::kWhole) co_return false;
  const int slot = image->SlotOf(ByteOf(entry));
  if (slot < 0 || image->word(slot) != entry) co_return false;
  const Link link{node, image->state(), image->AddressOf(slot), entry};
  const Swapped swapped = co_await Swap(link, image->free_word());
  co_return swapped == Swapped::kDone;
}

}  // namespace gannet::index::dolphin
