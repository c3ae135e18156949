#include "index/rolex/model_cache.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
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

ModelCache::Entry* ModelCache::FindModel(uint64_t key) const {
  auto at = models_.upper_bound(key);
  if (at == models_.begin()) return nullptr;
  --at;
  return at->second->model.Covers(key) ? at->second.get() : nullptr;
}

uint64_t ModelCache::bytes() const {
  uint64_t entries = top_.size();
  for (const auto& page : pages_) entries += page.size();
  return bytes_ + entries * sizeof(DirectoryEntry);
}

bool ModelCache::Find(uint64_t key, Lead* lead) const {
  const Entry* const entry = FindModel(key);
  if (entry == nullptr) return false;
  const Model::Lead trained = entry->model.For(key);
  if (!entry->synonyms.empty()) {
    const auto after = entry->synonyms.upper_bound(key);
    if (after != entry->synonyms.begin() && std::prev(after)->first > entry->model.LowOf(trained.leaf)) {
      *lead = {.leaf = {owner_, std::prev(after)->second}};
      return true;
    }
  }
  *lead = {.leaf = {owner_, entry->model.OffsetOf(trained.leaf)}, .line = trained.line};
  return true;
}

void ModelCache::FindRun(uint64_t key, bool reverse, size_t most, std::vector<rdma::GlobalAddress>* leaves) const {
  const Entry* const entry = FindModel(key);
  if (entry == nullptr) return;
  const Model& model = entry->model;
  const size_t first = model.For(key).leaf;
  // The leaf table's entries and the synonyms, merged by their low fences.
  if (!reverse) {
    auto synonym = entry->synonyms.upper_bound(key);
    const bool in_synonym = synonym != entry->synonyms.begin() && std::prev(synonym)->first > model.LowOf(first);
    leaves->push_back({owner_, in_synonym ? std::prev(synonym)->second : model.OffsetOf(first)});
    size_t leaf = first + 1;
    while (leaves->size() < most && (leaf < model.leaves().size() || synonym != entry->synonyms.end())) {
      if (synonym == entry->synonyms.end() || (leaf < model.leaves().size() && model.LowOf(leaf) <= synonym->first)) {
        leaves->push_back({owner_, model.OffsetOf(leaf++)});
      } else {
        leaves->push_back({owner_, synonym->second});
        ++synonym;
      }
    }
    return;
  }
  auto synonym = entry->synonyms.upper_bound(key);
  size_t leaf = first + 1;  // one behind
  while (leaves->size() < most && (leaf > 0 || synonym != entry->synonyms.begin())) {
    if (synonym != entry->synonyms.begin() && (leaf == 0 || std::prev(synonym)->first > model.LowOf(leaf - 1))) {
      --synonym;
      leaves->push_back({owner_, synonym->second});
    } else {
      leaves->push_back({owner_, model.OffsetOf(--leaf)});
    }
  }
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
  root_ = root;
  queue_ = queue;
  co_return absl::OkStatus();
}

coro::Task<Status> ModelCache::FetchTop() {
  if (root_ == 0) {
    const Status described = co_await Describe();
    GANNET_CO_RETURN_IF_ERROR(described);
  }
  for (int i = 0; i < kMostTries; ++i) {
    uint64_t word = 0;
    const Status read = co_await channel_->Read({owner_, root_}, &word, kWordBytes);
    GANNET_CO_RETURN_IF_ERROR(read);
    const BlockPointer pointer = BlockPointer::Unpack(word);
    if (pointer.bytes == 0 || pointer.bytes > rdma::kMaxObjectBytes + kLineBytes) break;
    std::vector<std::byte> block(pointer.bytes);
    const Status got =
        co_await channel_->Read({owner_, pointer.offset}, block.data(), static_cast<uint32_t>(block.size()));
    GANNET_CO_RETURN_IF_ERROR(got);
    std::vector<DirectoryEntry> top = DecodeTop(block);
    if (top.empty()) continue;
    // Pages that are the same stay.
    std::vector<std::vector<DirectoryEntry>> pages(top.size());
    size_t old = 0;
    for (size_t at = 0; at < top.size(); ++at) {
      while (old < top_.size() && top_[old].first < top[at].first) ++old;
      if (old < top_.size() && top_[old].first == top[at].first && top_[old].pointer == top[at].pointer) {
        pages[at] = std::move(pages_[old]);
      }
    }
    top_ = std::move(top);
    pages_ = std::move(pages);
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

coro::Task<Status> ModelCache::FetchModel(uint64_t key) {
  for (int i = 0; i < kMostTries; ++i) {
    // A cached page is good enough the first time.
    if (i > 1 || top_.empty()) {
      const Status fetched = co_await FetchTop();
      GANNET_CO_RETURN_IF_ERROR(fetched);
    }
    const DirectoryEntry page = top_[FindEntry(top_, key)];
    std::vector<DirectoryEntry> entries;
    if (i == 0) entries = pages_[FindEntry(top_, key)];
    if (entries.empty()) {
      StatusOr<std::vector<DirectoryEntry>> fetched = co_await FetchPage(page.pointer);
      if (!fetched.ok()) co_return fetched.status();
      entries = *std::move(fetched);
      if (entries.empty() || entries[0].first != page.first) continue;
      // Others may have fetched a newer top meanwhile.
      const size_t at = FindEntry(top_, key);
      if (top_[at].pointer == page.pointer) pages_[at] = entries;
    }
    const DirectoryEntry entry = entries[FindEntry(entries, key)];
    const BlockPointer pointer = BlockPointer::Unpack(entry.pointer);
    if (pointer.bytes == 0 || pointer.bytes > rdma::kMaxObjectBytes + kLineBytes) continue;
    std::vector<std::byte> block(pointer.bytes);
    const Status read =
        co_await channel_->Read({owner_, pointer.offset}, block.data(), static_cast<uint32_t>(block.size()));
    GANNET_CO_RETURN_IF_ERROR(read);
    StatusOr<Model> model = Model::Decode(block);
    if (!model.ok() || model->first() != entry.first || !model->Covers(key)) continue;
    const Entry* const known = FindModel(key);
    // The same model again, although it is retired: the page is old.
    if (i < kMostTries / 2 && known != nullptr && known->model.generation() >= model->generation()) continue;
    Install(*std::move(model), entry.pointer);
    co_return absl::OkStatus();
  }
  co_return KeepsChanging(owner_);
}

void ModelCache::Install(Model model, uint64_t pointer) {
  auto fresh = std::make_shared<Entry>();
  // What it replaces: all models that share keys with it.
  auto at = models_.upper_bound(model.first());
  if (at != models_.begin() && std::prev(at)->second->model.last() >= model.first()) --at;
  while (at != models_.end() && at->first <= model.last()) {
    bytes_ -= at->second->model.bytes() + at->second->synonyms.size() * 16;
    at = models_.erase(at);
  }
  fresh->pointer = pointer;
  bytes_ += model.bytes();
  const uint64_t first = model.first();
  fresh->model = std::move(model);
  models_[first] = std::move(fresh);
}

coro::Task<Status> ModelCache::FetchSynonyms(std::shared_ptr<Entry> entry, uint64_t used) {
  if (used <= entry->used) co_return absl::OkStatus();
  const size_t begin = SynonymOffset(entry->used) / kLineBytes * kLineBytes;
  const size_t end = SynonymOffset(used - 1) / kLineBytes * kLineBytes + kLineBytes;
  std::vector<std::byte> lines(end - begin);
  const Status read = co_await channel_->Read({owner_, entry->model.synonyms() + begin}, lines.data(),
                                              static_cast<uint32_t>(lines.size()));
  GANNET_CO_RETURN_IF_ERROR(read);
  for (uint64_t slot = entry->used; slot < used; ++slot) {
    const std::byte* const at = lines.data() + (SynonymOffset(slot) - begin);
    const Synonym synonym{.low = LoadWord(at), .leaf = LoadWord(at + kWordBytes)};
    // A slot that is not written yet comes to light when somebody follows right links.
    if (synonym.leaf == 0 || synonym.leaf % kLineBytes != 0 || !entry->model.Covers(synonym.low)) continue;
    bytes_ += entry->synonyms.insert_or_assign(synonym.low, synonym.leaf).second ? 16 : 0;
  }
  entry->used = std::max(entry->used, used);
  co_return absl::OkStatus();
}

coro::Task<Status> ModelCache::Refresh(uint64_t key) {
  if (FindModel(key) == nullptr) {
    const Status fetched = co_await FetchModel(key);
    co_return fetched;
  }
  const std::shared_ptr<Entry> entry = std::prev(models_.upper_bound(key))->second;
  uint64_t used = 0;
  const Status read = co_await channel_->Read({owner_, entry->model.synonyms() + kUsedOffset}, &used, kWordBytes);
  GANNET_CO_RETURN_IF_ERROR(read);
  if ((used & kRetiredBit) != 0) {
    const Status fetched = co_await FetchModel(key);
    co_return fetched;
  }
  const Status fetched = co_await FetchSynonyms(entry, UsedSlots(used));
  co_return fetched;
}

coro::Task<StatusOr<rdma::GlobalAddress>> ModelCache::LeadTo(uint64_t key, int attempt) {
  if (attempt == 1 || FindModel(key) == nullptr) {
    const Status refreshed = co_await Refresh(key);
    if (!refreshed.ok()) co_return refreshed;
  }
  Lead lead;
  if (attempt < 2) {
    if (!Find(key, &lead)) co_return KeepsChanging(owner_);
    co_return lead.leaf;
  }
  // The leaf that the hint named is dead, or begins behind the key: that is so also for synonyms.
  if (Entry* const entry = FindModel(key); attempt == 2 && entry != nullptr) {
    bytes_ -= entry->synonyms.size() * 16;
    entry->synonyms.clear();
  }
  uint64_t left = StepsLeft(attempt);
  for (;;) {
    if (FindModel(key) == nullptr) {
      const Status fetched = co_await FetchModel(key);
      if (!fetched.ok()) co_return fetched;
    }
    const Entry* const entry = FindModel(key);
    if (entry == nullptr) co_return KeepsChanging(owner_);
    const size_t leaf = entry->model.For(key).leaf;
    if (left <= leaf) co_return rdma::GlobalAddress(owner_, entry->model.OffsetOf(leaf - left));
    if (entry->model.first() == 0) co_return rdma::GlobalAddress(owner_, entry->model.OffsetOf(0));
    left -= leaf + 1;
    key = entry->model.first() - 1;
  }
}

void ModelCache::NoteLeaf(const Synonym& leaf) {
  Entry* const entry = FindModel(leaf.low);
  if (entry == nullptr || leaf.leaf == entry->model.OffsetOf(entry->model.For(leaf.low).leaf)) return;
  bytes_ += entry->synonyms.insert_or_assign(leaf.low, leaf.leaf).second ? 16 : 0;
}

coro::Task<StatusOr<rdma::GlobalAddress>> ModelCache::SynonymsFor(uint64_t key) {
  if (FindModel(key) == nullptr) {
    const Status fetched = co_await FetchModel(key);
    if (!fetched.ok()) co_return fetched;
  }
  const Entry* const entry = FindModel(key);
  if (entry == nullptr) co_return KeepsChanging(owner_);
  co_return rdma::GlobalAddress(owner_, entry->model.synonyms());
}

}  // namespace gannet::index::rolex
