#include "index/rolex/model_cache.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "base/runtime.h"
#include "index/shared_leaf/change/leaf_keys.h"
#include "index/shared_leaf/leaf/schema_wire.h"
#include "rdma/rpc.h"

namespace gannet::index::rolex {

using shared_leaf::LeafLook;

namespace {

// The last slots that were taken may not be written yet. So they are READ again.
constexpr uint64_t kLateSlots = 12;
// Slots that are READ before it is known how many are used.
constexpr uint64_t kSlotsAhead = 24;
// READs of leaves that bring the synonyms of a model along, from the time on when it was behind, until as many of them
// have brought nothing.
constexpr int kLooksWhenBehind = 8;
// A directory that changes while it is read shows that; but not so often.
constexpr int kMostTries = 20;

Status KeepsChanging(rdma::NodeId owner) {
  return absl::UnavailableError(
      absl::StrCat("the models of a ROLEX index of node ", owner, " cannot be read; try again"));
}

}  // namespace

template <class Keys>
std::shared_ptr<KnownModel<Keys>> ModelCache<Keys>::ModelFor(const Point& point) const {
  const Reading models(view_);
  return models->ModelFor(point);
}

template <class Keys>
bool ModelCache<Keys>::knows_directory() const {
  const Reading models(view_);
  return models->knows_top();
}

template <class Keys>
rdma::GlobalAddress ModelCache<Keys>::queue() const {
  const Reading models(view_);
  return {owner_, models->queue()};
}

template <class Keys>
bool ModelCache<Keys>::Find(const Point& point, Prediction* prediction) const {
  Charge(Cost::kModelStep, 2);  // the upper model, the linear piece
  Charge(Cost::kIndexStep, 2);  // the leaf table, the synonyms
  const Reading models(view_);
  typename KnownModels<Keys>::Prediction known;
  if (!models->Find(point, &known)) return false;
  *prediction = {.leaf = {owner_, known.leaf}, .line = known.line};
  return true;
}

template <class Keys>
double ModelCache<Keys>::FindRun(const Point& point, bool reverse, size_t most,
                                 std::vector<rdma::GlobalAddress>* leaves) const {
  const Reading models(view_);
  std::vector<uint64_t> offsets;
  const double skipped = models->FindRun(point, reverse, most, &offsets);
  for (const uint64_t offset : offsets) leaves->push_back({owner_, offset});
  return skipped;
}

template <class Keys>
coro::Task<StatusOr<typename Keys::Schema>> ModelCache<Keys>::Describe() {
  {
    const Reading models(view_);
    if (models->schema() != nullptr) co_return *models->schema();
  }
  std::array<std::byte, 8> request;
  std::array<std::byte, 64> response;
  rdma::WireWriter writer(request);
  writer.PutU16(id_);
  const StatusOr<size_t> bytes = co_await channel_->Call(owner_, kDescribe, writer.written(), response, call_timeout_);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(response).first(*bytes));
  const uint64_t root = reader.GetU64();
  const uint64_t queue = reader.GetU64();
  const StatusOr<Schema> schema = shared_leaf::GetSchema<Keys>(reader);
  GANNET_CO_RETURN_IF_ERROR(reader.Finish());
  if (!schema.ok()) co_return schema.status();
  Changing(view_)->SetPlaces(root, queue, *schema);
  co_return *schema;
}

template <class Keys>
coro::Task<Status> ModelCache<Keys>::FetchTop() {
  uint64_t root = Reading(view_)->root();
  if (root == 0) {
    const StatusOr<Schema> described = co_await Describe();
    if (!described.ok()) co_return described.status();
    root = Reading(view_)->root();
  }
  for (int i = 0; i < kMostTries; ++i) {
    uint64_t word = 0;
    const Status read = co_await channel_->Read({owner_, root}, &word, kWordBytes);
    GANNET_CO_RETURN_IF_ERROR(read);
    const BlockPointer pointer = BlockPointer::Unpack(word);
    if (pointer.bytes == 0 || pointer.bytes > rdma::kMaxObjectBytes + kLineBytes) break;
    std::vector<std::byte> block(pointer.bytes);
    const Status got =
        co_await channel_->Read({owner_, pointer.offset}, block.data(), static_cast<uint32_t>(block.size()));
    GANNET_CO_RETURN_IF_ERROR(got);
    std::vector<Entry> top = DecodeTop<Keys>(block);
    if (top.empty()) continue;
    Changing(view_)->SetTop(std::move(top));
    co_return absl::OkStatus();
  }
  co_return KeepsChanging(owner_);
}

template <class Keys>
coro::Task<StatusOr<std::vector<DirectoryEntry<Keys>>>> ModelCache<Keys>::FetchPage(uint64_t pointer) {
  const BlockPointer page = BlockPointer::Unpack(pointer);
  if (page.bytes == 0 || page.bytes > rdma::kMaxObjectBytes + kLineBytes) co_return std::vector<Entry>();
  std::vector<std::byte> block(page.bytes);
  const Status read = co_await channel_->Read({owner_, page.offset}, block.data(), static_cast<uint32_t>(block.size()));
  if (!read.ok()) co_return read;
  co_return DecodePage<Keys>(block);
}

template <class Keys>
coro::Task<Status> ModelCache<Keys>::FetchModel(Point point, uint64_t old) {
  for (int i = 0; i < kMostTries; ++i) {
    // A cached page is good enough the first time.
    if (i > 1 || !knows_directory()) {
      const Status fetched = co_await FetchTop();
      GANNET_CO_RETURN_IF_ERROR(fetched);
    }
    Entry page;
    Entry entry;
    bool has_entry = false;
    {
      const Reading models(view_);
      page = models->PageFor(point);
      has_entry = i == 0 && models->FindInPage(point, &entry);
    }
    if (!has_entry) {
      StatusOr<std::vector<Entry>> entries = co_await FetchPage(page.pointer);
      if (!entries.ok()) co_return entries.status();
      if (entries->empty() || (*entries)[0].first != page.first) continue;
      entry = (*entries)[FindEntry<Keys>(*entries, point)];
      Changing(view_)->SetPage(page, *std::move(entries));
    }
    const BlockPointer pointer = BlockPointer::Unpack(entry.pointer);
    if (pointer.bytes == 0 || pointer.bytes > rdma::kMaxObjectBytes + kLineBytes) continue;
    std::vector<std::byte> block(pointer.bytes);
    const Status read =
        co_await channel_->Read({owner_, pointer.offset}, block.data(), static_cast<uint32_t>(block.size()));
    GANNET_CO_RETURN_IF_ERROR(read);
    StatusOr<BasicModel<Keys>> model = BasicModel<Keys>::Decode(block);
    if (!model.ok() || model->first() != entry.first || !model->Covers(point)) continue;
    // The retired model again: the page is old.
    if (i < kMostTries / 2 && old != 0 && model->generation() <= old) continue;
    const Changing models(view_);
    const std::shared_ptr<Known> known = models->ModelFor(point);
    // Another client may have been faster, with this model or a newer one.
    if (known == nullptr || known->model.generation() < model->generation()) models->Install(*std::move(model));
    co_return absl::OkStatus();
  }
  co_return KeepsChanging(owner_);
}

template <class Keys>
rdma::Operation ModelCache<Keys>::ReadOfSlots(const Known& known, uint64_t slot, uint64_t end, SlotLines* lines) {
  lines->first = slot;
  lines->end = std::min(end, slot - slot % kSynonyms + kSynonyms);
  const size_t from = SynonymOffset(slot) / kLineBytes * kLineBytes;
  const size_t to = SynonymOffset(lines->end - 1) / kLineBytes * kLineBytes + kLineBytes;
  lines->bytes.resize(to - from);
  return rdma::Operation::Read({owner_, known.model.synonyms() + from}, lines->bytes.data(),
                               static_cast<uint32_t>(lines->bytes.size()));
}

template <class Keys>
auto ModelCache<Keys>::ReadsFor(const Known& known, SynonymReads* reads)
    -> std::array<rdma::Operation, kReadsOfSynonyms> {
  uint64_t slot = 0;
  {
    const Reading models(view_);
    slot = known.slots;
  }
  return {rdma::Operation::Read({owner_, known.model.synonyms() + kUsedOffset}, &reads->used, kWordBytes),
          ReadOfSlots(known, slot, slot + kSlotsAhead, &reads->slots)};
}

template <class Keys>
coro::Task<StatusOr<bool>> ModelCache<Keys>::TakeSynonyms(std::shared_ptr<Known> known, Point point,
                                                          SynonymReads* reads) {
  const uint64_t used = reads->used;
  if ((used & kRetiredBit) != 0) {
    const Status fetched = co_await FetchModel(point, known->model.generation());
    if (!fetched.ok()) co_return fetched;
    co_return true;
  }
  const uint64_t sure = used < kLateSlots ? 0 : used - kLateSlots;
  std::vector<uint64_t> seen;
  bool is_behind = false;
  {
    const Reading models(view_);
    seen = known->late;
    is_behind = known->slots < sure;
  }
  std::vector<Synonym> synonyms;
  std::vector<uint64_t> late;
  for (SlotLines* const lines = &reads->slots;;) {
    const size_t begin = SynonymOffset(lines->first) / kLineBytes * kLineBytes;
    const uint64_t end = std::min(lines->end, used);
    for (uint64_t slot = std::max(lines->first, OldestSlot(used)); slot < end; ++slot) {
      const std::byte* const at = lines->bytes.data() + (SynonymOffset(slot) - begin);
      const Synonym synonym{.low = LoadWord(at), .leaf = LoadWord(at + kWordBytes)};
      if (synonym.leaf == 0) continue;
      if (slot >= sure) late.push_back(synonym.leaf);
      if (std::ranges::find(seen, synonym.leaf) == seen.end()) synonyms.push_back(synonym);
    }
    if (lines->end >= used) break;
    rdma::Operation rest[] = {ReadOfSlots(*known, std::max(lines->end, OldestSlot(used)), used, lines)};
    const Status read = co_await channel_->Post(rest);
    if (!read.ok()) co_return read;
  }
  if (synonyms.empty() && !is_behind) co_return false;
  const StatusOr<std::vector<NewLeaf<Keys>>> leaves = co_await LowsOf(std::move(synonyms));
  if (!leaves.ok()) co_return leaves.status();
  co_return Changing(view_)->AddSynonyms(known.get(), *leaves, sure, std::move(late)) > 0;
}

template <class Keys>
coro::Task<Status> ModelCache<Keys>::Refresh(Point point) {
  const std::shared_ptr<Known> known = ModelFor(point);
  if (known == nullptr) {
    const Status fetched = co_await FetchModel(point, 0);
    co_return fetched;
  }
  SynonymReads reads;
  auto operations = ReadsFor(*known, &reads);
  const Status read = co_await channel_->Post(operations);
  GANNET_CO_RETURN_IF_ERROR(read);
  const StatusOr<bool> taken = co_await TakeSynonyms(known, point, &reads);
  co_return taken.status();
}

template <class Keys>
coro::Task<StatusOr<LeafLook>> ModelCache<Keys>::ReadLeaf(Key key, rdma::GlobalAddress leaf, bool is_first,
                                                          Image* image) {
  const Point point = Keys::At(key);
  const std::shared_ptr<Known> known = ModelFor(point);
  if (known == nullptr || known->looks_left.load(std::memory_order_relaxed) <= 0) {
    const StatusOr<LeafLook> look = co_await leaves_->Read(leaf, image);
    if (known != nullptr && !is_first && look.ok() && *look == LeafLook::kWhole && Keys::EndsBefore(*image, point)) {
      known->looks_left.store(kLooksWhenBehind, std::memory_order_relaxed);
    }
    co_return look;
  }
  SynonymReads reads;
  const auto along = ReadsFor(*known, &reads);
  const StatusOr<LeafLook> look = co_await leaves_->Read(leaf, image, along);
  if (!look.ok()) co_return look;
  // If that fails, the leaf was READ nevertheless.
  const StatusOr<bool> is_new = co_await TakeSynonyms(known, point, &reads);
  const bool is_behind = *look == LeafLook::kWhole && Keys::EndsBefore(*image, point);
  if (is_new.ok() && !*is_new && !is_behind) known->looks_left.fetch_sub(1, std::memory_order_relaxed);
  co_return look;
}

template <class Keys>
coro::Task<StatusOr<rdma::GlobalAddress>> ModelCache<Keys>::StartOf(Point point, int attempt) {
  if (attempt == 1) {
    const Status refreshed = co_await Refresh(point);
    if (!refreshed.ok()) co_return refreshed;
  }
  // The leaf that the hint named is dead, or begins behind the key: that is so also for synonyms.
  if (attempt == 2) Changing(view_)->DropSynonyms(point);
  uint64_t left = StepsLeft(attempt);
  bool is_below = false;  // of the model whose first key is last_first
  typename Keys::Key last_first{};
  // A model that was fetched may make room for others before it is used.
  for (int i = 0; i < kMostTries;) {
    Prediction prediction;
    if (attempt < 2 && Find(point, &prediction)) co_return prediction.leaf;
    const std::shared_ptr<Known> known = attempt < 2 ? nullptr : ModelFor(point);
    if (known == nullptr) {
      ++i;
      const Status fetched = co_await FetchModel(point, 0);
      if (!fetched.ok()) co_return fetched;
      continue;
    }
    // Models that were trained on leaves that a client has damaged need not lie one behind the other.
    if (is_below && !(known->model.first() < last_first)) co_return KeepsChanging(owner_);
    const size_t leaf = known->model.For(point).leaf;
    if (left <= leaf) co_return rdma::GlobalAddress(owner_, known->model.OffsetOf(leaf - left));
    if (known->model.first() == Keys::kLeast) co_return rdma::GlobalAddress(owner_, known->model.OffsetOf(0));
    left -= leaf + 1;
    is_below = true;
    last_first = known->model.first();
    point = shared_leaf::PointBelow<Keys>(known->model.first());
  }
  co_return KeepsChanging(owner_);
}

template <class Keys>
void ModelCache<Keys>::NoteLeaf(const NewLeaf<Keys>& leaf) {
  Changing(view_)->NoteLeaf(leaf);
}

template <class Keys>
std::optional<typename Guide<Keys>::Synonyms> ModelCache<Keys>::KnownSynonyms(const Key& key) const {
  const std::shared_ptr<Known> known = ModelFor(Keys::At(key));
  if (known == nullptr) return std::nullopt;
  return
      typename Guide<Keys>::Synonyms{.table = {owner_, known->model.synonyms()}, .number = known->model.NumberOf(key)};
}

template <class Keys>
coro::Task<StatusOr<typename Guide<Keys>::Synonyms>> ModelCache<Keys>::SynonymsFor(Key key) {
  for (int i = 0; i < kMostTries; ++i) {
    const auto known = KnownSynonyms(key);
    if (known.has_value()) co_return *known;
    const Status fetched = co_await FetchModel(Keys::At(key), 0);
    if (!fetched.ok()) co_return fetched;
  }
  co_return KeepsChanging(owner_);
}

template <class Keys>
coro::Task<StatusOr<std::vector<NewLeaf<Keys>>>> ModelCache<Keys>::LowsOf(std::vector<Synonym> synonyms) {
  std::vector<NewLeaf<Keys>> leaves;
  if constexpr (Keys::kKeysElsewhere) {
    const StatusOr<Schema> schema = co_await Describe();
    if (!schema.ok()) co_return schema.status();
    for (size_t first = 0; first < synonyms.size(); first += Keys::kSlots) {
      const std::span<const Synonym> some =
          std::span(synonyms).subspan(first, std::min<size_t>(Keys::kSlots, synonyms.size() - first));
      // The leaves as the children of an inner node for all keys.
      shared_leaf::TaggedCopy node{{owner_, 0}, {}};
      node.image.head.slots = shared_leaf::LeafSlots{.level = 1}.Pack();
      node.image.head.set_fence_lines(leaves_->fence_lines());
      shared_leaf::StoreFence(&node.image, shared_leaf::Fence::kLow, ByteKey());
      shared_leaf::StoreFence(&node.image, shared_leaf::Fence::kHigh, std::nullopt);
      for (size_t i = 0; i < some.size(); ++i) {
        node.image.set_entry(static_cast<int>(i), shared_leaf::TaggedEntry::Of(0, some[i].leaf));
      }
      const uint64_t slots = (uint64_t{1} << some.size()) - 1;
      const Status read = co_await shared_leaf::ReadKeys(leaves_, *schema, &node, slots, /*sure=*/true);
      if (!read.ok()) co_return read;
      for (size_t i = 0; i < some.size(); ++i) {
        if ((node.keys.known >> i & 1) == 0) continue;  // dead by now, or about to change
        leaves.push_back({node.keys.of[i], shared_leaf::TaggedEntry::Of(0, some[i].leaf).offset()});
      }
    }
  } else {
    for (const Synonym& synonym : synonyms) leaves.push_back({synonym.low, synonym.leaf});
  }
  co_return leaves;
}

template class ModelCache<IntegerKeys>;
template class ModelCache<ByteKeys>;

}  // namespace gannet::index::rolex
