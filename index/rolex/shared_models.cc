#include "index/rolex/shared_models.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gannet::index::rolex {

KnownModel* KnownModels::Covering(uint64_t key) const {
  auto at = models_.upper_bound(key);
  if (at == models_.begin()) return nullptr;
  --at;
  return at->second->model.Covers(key) ? at->second.get() : nullptr;
}

std::shared_ptr<KnownModel> KnownModels::ModelFor(uint64_t key) const {
  return Covering(key) == nullptr ? nullptr : std::prev(models_.upper_bound(key))->second;
}

bool KnownModels::Find(uint64_t key, Lead* lead) const {
  const KnownModel* const known = Covering(key);
  if (known == nullptr) return false;
  // Written only where it changes, so that readers of several threads share the line.
  if (!known->used.load(std::memory_order_relaxed)) known->used.store(true, std::memory_order_relaxed);
  const Model::Lead trained = known->model.For(key);
  if (!known->synonyms.empty()) {
    const auto after = known->synonyms.upper_bound(key);
    if (after != known->synonyms.begin() && std::prev(after)->first > known->model.LowOf(trained.leaf)) {
      *lead = {.leaf = std::prev(after)->second};
      return true;
    }
  }
  *lead = {.leaf = known->model.OffsetOf(trained.leaf), .line = trained.line};
  return true;
}

void KnownModels::FindRun(uint64_t key, bool reverse, size_t most, std::vector<uint64_t>* leaves) const {
  const KnownModel* const known = Covering(key);
  if (known == nullptr) return;
  if (!known->used.load(std::memory_order_relaxed)) known->used.store(true, std::memory_order_relaxed);
  const Model& model = known->model;
  const size_t first = model.For(key).leaf;
  // The leaf table's entries and the synonyms, merged by their low fences.
  auto synonym = known->synonyms.upper_bound(key);
  if (!reverse) {
    const bool in_synonym = synonym != known->synonyms.begin() && std::prev(synonym)->first > model.LowOf(first);
    leaves->push_back(in_synonym ? std::prev(synonym)->second : model.OffsetOf(first));
    size_t leaf = first + 1;
    while (leaves->size() < most && (leaf < model.leaves().size() || synonym != known->synonyms.end())) {
      if (synonym == known->synonyms.end() || (leaf < model.leaves().size() && model.LowOf(leaf) <= synonym->first)) {
        leaves->push_back(model.OffsetOf(leaf++));
      } else {
        leaves->push_back(synonym->second);
        ++synonym;
      }
    }
    return;
  }
  size_t leaf = first + 1;  // one behind
  while (leaves->size() < most && (leaf > 0 || synonym != known->synonyms.begin())) {
    if (synonym != known->synonyms.begin() && (leaf == 0 || std::prev(synonym)->first > model.LowOf(leaf - 1))) {
      --synonym;
      leaves->push_back(synonym->second);
    } else {
      leaves->push_back(model.OffsetOf(--leaf));
    }
  }
}

KnownModels::Models::iterator KnownModels::Erase(Models::iterator at) {
  const uint64_t bytes = at->second->bytes();
  model_bytes_ -= bytes;
  Count(0, bytes);
  return models_.erase(at);
}

void KnownModels::Install(Model model) {
  auto at = models_.upper_bound(model.first());
  if (at != models_.begin() && std::prev(at)->second->model.last() >= model.first()) --at;
  while (at != models_.end() && at->first <= model.last()) at = Erase(at);
  const uint64_t first = model.first();
  auto known = std::make_shared<KnownModel>();
  known->model = std::move(model);
  model_bytes_ += known->bytes();
  Count(known->bytes(), 0);
  models_[first] = std::move(known);
  Evict(first);
}

void KnownModels::Evict(uint64_t keep) {
  while (model_bytes_ > max_bytes_ && models_.size() > 1) {
    auto at = models_.lower_bound(hand_);
    if (at == models_.end()) at = models_.begin();
    hand_ = at->first + 1;  // 0 behind the last key there is
    if (at->first == keep) continue;
    // Each model loses its mark once, so there is one without it.
    if (at->second->used.exchange(false, std::memory_order_relaxed)) continue;
    Erase(at);
  }
}

void KnownModels::NoteLeaf(const Synonym& leaf) {
  KnownModel* const known = Covering(leaf.low);
  if (known == nullptr || leaf.leaf == known->model.OffsetOf(known->model.For(leaf.low).leaf)) return;
  AddSynonyms(known, std::span(&leaf, 1), 0);
}

void KnownModels::AddSynonyms(KnownModel* model, std::span<const Synonym> synonyms, uint64_t slots) {
  const uint64_t first = model->model.first();
  const auto at = models_.find(first);
  const bool is_here = at != models_.end() && at->second.get() == model;  // or it was replaced, or evicted
  for (const Synonym& synonym : synonyms) {
    // A slot that is not written yet comes to light when somebody follows right links.
    if (synonym.leaf == 0 || synonym.leaf % kLineBytes != 0 || !model->model.Covers(synonym.low)) continue;
    if (!model->synonyms.insert_or_assign(synonym.low, synonym.leaf).second || !is_here) continue;
    model_bytes_ += KnownModel::kSynonymBytes;
    Count(KnownModel::kSynonymBytes, 0);
  }
  model->slots = std::max(model->slots, slots);
  if (is_here) Evict(first);
}

void KnownModels::DropSynonyms(uint64_t key) {
  KnownModel* const known = Covering(key);
  if (known == nullptr) return;
  const uint64_t bytes = known->synonyms.size() * KnownModel::kSynonymBytes;
  model_bytes_ -= bytes;
  Count(0, bytes);
  known->synonyms.clear();
}

void KnownModels::SetTop(std::vector<DirectoryEntry> top) {
  uint64_t before = top_.size();
  for (const auto& page : pages_) before += page.size();
  std::vector<std::vector<DirectoryEntry>> pages(top.size());
  uint64_t after = top.size();
  size_t old = 0;
  for (size_t at = 0; at < top.size(); ++at) {
    while (old < top_.size() && top_[old].first < top[at].first) ++old;
    if (old < top_.size() && top_[old].first == top[at].first && top_[old].pointer == top[at].pointer) {
      pages[at] = std::move(pages_[old]);
      after += pages[at].size();
    }
  }
  top_ = std::move(top);
  pages_ = std::move(pages);
  Count(after * sizeof(DirectoryEntry), before * sizeof(DirectoryEntry));
}

bool KnownModels::FindInPage(uint64_t key, DirectoryEntry* entry) const {
  const std::vector<DirectoryEntry>& page = pages_[FindEntry(top_, key)];
  if (page.empty()) return false;
  *entry = page[FindEntry(page, key)];
  return true;
}

void KnownModels::SetPage(const DirectoryEntry& page, std::vector<DirectoryEntry> entries) {
  const size_t at = FindEntry(top_, page.first);
  if (top_[at].first != page.first || top_[at].pointer != page.pointer) return;
  Count(entries.size() * sizeof(DirectoryEntry), pages_[at].size() * sizeof(DirectoryEntry));
  pages_[at] = std::move(entries);
}

}  // namespace gannet::index::rolex
