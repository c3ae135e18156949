#include "index/rolex/model_cache.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "base/runtime.h"
#include "rdma/rpc.h"

namespace gannet::index::rolex {
namespace {

// A directory that changes while it is read shows that; but not so often.
constexpr int kMostTries = 20;

Status KeepsChanging(rdma::NodeId owner) {
  return absl::UnavailableError(
      absl::StrCat("the models of a ROLEX index of node ", owner, " cannot be read; try again"));
}

}  // namespace

std::shared_ptr<KnownModel> ModelCache::ModelFor(uint64_t key) const {
  const Reading models(view_);
  return models->ModelFor(key);
}

bool ModelCache::knows_directory() const {
  const Reading models(view_);
  return models->knows_top();
}

rdma::GlobalAddress ModelCache::queue() const {
  const Reading models(view_);
  return {owner_, models->queue()};
}

bool ModelCache::Find(uint64_t key, Lead* lead) const {
  Charge(Cost::kModelStep, 2);  // the upper model, the linear piece
  Charge(Cost::kIndexStep, 2);  // the leaf table, the synonyms
  const Reading models(view_);
  KnownModels::Lead known;
  if (!models->Find(key, &known)) return false;
  *lead = {.leaf = {owner_, known.leaf}, .line = known.line};
  return true;
}

void ModelCache::FindRun(uint64_t key, bool reverse, size_t most, std::vector<rdma::GlobalAddress>* leaves) const {
  const Reading models(view_);
  std::vector<uint64_t> offsets;
  models->FindRun(key, reverse, most, &offsets);
  for (const uint64_t offset : offsets) leaves->push_back({owner_, offset});
}

coro::Task<Status> ModelCache::Describe() {
  std::array<std::byte, 8> request;
  std::array<std::byte, 16> response;
  rdma::WireWriter writer(request);
  writer.PutU16(id_);
  const StatusOr<size_t> bytes = co_await channel_->Call(owner_, kDescribe, writer.written(), response, call_timeout_);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(response).first(*bytes));
  const uint64_t root = reader.GetU64();
  const uint64_t queue = reader.GetU64();
  GANNET_CO_RETURN_IF_ERROR(reader.Finish());
  Changing(view_)->SetPlaces(root, queue);
  co_return absl::OkStatus();
}

coro::Task<Status> ModelCache::FetchTop() {
  uint64_t root = Reading(view_)->root();
  if (root == 0) {
    const Status described = co_await Describe();
    GANNET_CO_RETURN_IF_ERROR(described);
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
    std::vector<DirectoryEntry> top = DecodeTop(block);
    if (top.empty()) continue;
    Changing(view_)->SetTop(std::move(top));
    co_return absl::OkStatus();
  }
  co_return KeepsChanging(owner_);
}

coro::Task<StatusOr<std::vector<DirectoryEntry>>> ModelCache::FetchPage(uint64_t pointer) {
  std::vector<std::byte> block(kPageBytes);
  const Status read = co_await channel_->Read({owner_, BlockPointer::Unpack(pointer).offset}, block.data(), kPageBytes);
  if (!read.ok()) co_return read;
  co_return DecodePage(block);
}

coro::Task<Status> ModelCache::FetchModel(uint64_t key, uint64_t old) {
  for (int i = 0; i < kMostTries; ++i) {
    // A cached page is good enough the first time.
    if (i > 1 || !knows_directory()) {
      const Status fetched = co_await FetchTop();
      GANNET_CO_RETURN_IF_ERROR(fetched);
    }
    DirectoryEntry page;
    DirectoryEntry entry;
    bool has_entry = false;
    {
      const Reading models(view_);
      page = models->PageFor(key);
      has_entry = i == 0 && models->FindInPage(key, &entry);
    }
    if (!has_entry) {
      StatusOr<std::vector<DirectoryEntry>> entries = co_await FetchPage(page.pointer);
      if (!entries.ok()) co_return entries.status();
      if (entries->empty() || (*entries)[0].first != page.first) continue;
      entry = (*entries)[FindEntry(*entries, key)];
      Changing(view_)->SetPage(page, *std::move(entries));
    }
    const BlockPointer pointer = BlockPointer::Unpack(entry.pointer);
    if (pointer.bytes == 0 || pointer.bytes > rdma::kMaxObjectBytes + kLineBytes) continue;
    std::vector<std::byte> block(pointer.bytes);
    const Status read =
        co_await channel_->Read({owner_, pointer.offset}, block.data(), static_cast<uint32_t>(block.size()));
    GANNET_CO_RETURN_IF_ERROR(read);
    StatusOr<Model> model = Model::Decode(block);
    if (!model.ok() || model->first() != entry.first || !model->Covers(key)) continue;
    // The retired model again: the page is old.
    if (i < kMostTries / 2 && old != 0 && model->generation() <= old) continue;
    const Changing models(view_);
    const std::shared_ptr<KnownModel> known = models->ModelFor(key);
    // Another client may have been faster, with this model or a newer one.
    if (known == nullptr || known->model.generation() < model->generation()) models->Install(*std::move(model));
    co_return absl::OkStatus();
  }
  co_return KeepsChanging(owner_);
}

coro::Task<Status> ModelCache::FetchSynonyms(std::shared_ptr<KnownModel> known, uint64_t used) {
  uint64_t slot = 0;
  {
    const Reading models(view_);
    slot = known->slots;
  }
  if (used <= slot) co_return absl::OkStatus();
  const size_t begin = SynonymOffset(slot) / kLineBytes * kLineBytes;
  const size_t end = SynonymOffset(used - 1) / kLineBytes * kLineBytes + kLineBytes;
  std::vector<std::byte> lines(end - begin);
  const Status read = co_await channel_->Read({owner_, known->model.synonyms() + begin}, lines.data(),
                                              static_cast<uint32_t>(lines.size()));
  GANNET_CO_RETURN_IF_ERROR(read);
  std::vector<Synonym> synonyms;
  for (; slot < used; ++slot) {
    const std::byte* const at = lines.data() + (SynonymOffset(slot) - begin);
    synonyms.push_back({.low = LoadWord(at), .leaf = LoadWord(at + kWordBytes)});
  }
  Changing(view_)->AddSynonyms(known.get(), synonyms, used);
  co_return absl::OkStatus();
}

coro::Task<Status> ModelCache::Refresh(uint64_t key) {
  const std::shared_ptr<KnownModel> known = ModelFor(key);
  if (known == nullptr) {
    const Status fetched = co_await FetchModel(key, 0);
    co_return fetched;
  }
  uint64_t used = 0;
  const Status read = co_await channel_->Read({owner_, known->model.synonyms() + kUsedOffset}, &used, kWordBytes);
  GANNET_CO_RETURN_IF_ERROR(read);
  if ((used & kRetiredBit) != 0) {
    const Status fetched = co_await FetchModel(key, known->model.generation());
    co_return fetched;
  }
  const Status fetched = co_await FetchSynonyms(known, UsedSlots(used));
  co_return fetched;
}

coro::Task<StatusOr<rdma::GlobalAddress>> ModelCache::LeadTo(uint64_t key, int attempt) {
  if (attempt == 1) {
    const Status refreshed = co_await Refresh(key);
    if (!refreshed.ok()) co_return refreshed;
  }
  // The leaf that the hint named is dead, or begins behind the key: that is so also for synonyms.
  if (attempt == 2) Changing(view_)->DropSynonyms(key);
  uint64_t left = StepsLeft(attempt);
  // A model that was fetched may make room for others before it is used.
  for (int i = 0; i < kMostTries;) {
    Lead lead;
    if (attempt < 2 && Find(key, &lead)) co_return lead.leaf;
    const std::shared_ptr<KnownModel> known = attempt < 2 ? nullptr : ModelFor(key);
    if (known == nullptr) {
      ++i;
      const Status fetched = co_await FetchModel(key, 0);
      if (!fetched.ok()) co_return fetched;
      continue;
    }
    const size_t leaf = known->model.For(key).leaf;
    if (left <= leaf) co_return rdma::GlobalAddress(owner_, known->model.OffsetOf(leaf - left));
    if (known->model.first() == 0) co_return rdma::GlobalAddress(owner_, known->model.OffsetOf(0));
    left -= leaf + 1;
    key = known->model.first() - 1;
  }
  co_return KeepsChanging(owner_);
}

void ModelCache::NoteLeaf(const Synonym& leaf) {
  Changing(view_)->NoteLeaf(leaf);
}

coro::Task<StatusOr<rdma::GlobalAddress>> ModelCache::SynonymsFor(uint64_t key) {
  for (int i = 0; i < kMostTries; ++i) {
    const std::shared_ptr<KnownModel> known = ModelFor(key);
    if (known != nullptr) co_return rdma::GlobalAddress(owner_, known->model.synonyms());
    const Status fetched = co_await FetchModel(key, 0);
    if (!fetched.ok()) co_return fetched;
  }
  co_return KeepsChanging(owner_);
}

}  // namespace gannet::index::rolex
