#include "index/rolex/shared_models.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "index/shared_leaf/change/leaf_keys.h"

namespace gannet::index::rolex {

template <class Keys>
KnownModel<Keys>* KnownModels<Keys>::Covering(const Point& point) const {
  if constexpr (!Keys::kKeysElsewhere) {
    // Models do not overlap: one that covers the key is the one.
    Known* const quick = quick_.Find(point);
    if (quick != nullptr && quick->model.Covers(point)) return quick;
  }
  auto at = shared_leaf::FirstRightOf<Keys>(models_, point);
  if (at == models_.begin()) return nullptr;
  --at;
  return at->second->model.Covers(point) ? at->second.get() : nullptr;
}

template <class Keys>
std::shared_ptr<KnownModel<Keys>> KnownModels<Keys>::ModelFor(const Point& point) const {
  return Covering(point) == nullptr ? nullptr : std::prev(shared_leaf::FirstRightOf<Keys>(models_, point))->second;
}

template <class Keys>
bool KnownModels<Keys>::Find(const Point& point, Prediction* prediction) const {
  const Known* const known = Covering(point);
  if (known == nullptr) return false;
  // The flag is written only where it changes, so that readers of several threads share the line.
  if (!known->used.load(std::memory_order_relaxed)) known->used.store(true, std::memory_order_relaxed);
  const typename BasicModel<Keys>::Prediction trained = known->model.For(point);
  if (!known->synonyms.empty()) {
    const auto after = shared_leaf::FirstRightOf<Keys>(known->synonyms, point);
    if (after != known->synonyms.begin() && std::prev(after)->first > known->model.LowOf(trained.leaf)) {
      *prediction = {.leaf = std::prev(after)->second};
      return true;
    }
  }
  *prediction = {.leaf = known->model.OffsetOf(trained.leaf), .line = trained.line};
  return true;
}

template <class Keys>
double KnownModels<Keys>::FindRun(const Point& point, bool reverse, size_t most, std::vector<uint64_t>* leaves) const {
  const Known* const known = Covering(point);
  if (known == nullptr) return 1;
  if (!known->used.load(std::memory_order_relaxed)) known->used.store(true, std::memory_order_relaxed);
  const BasicModel<Keys>& model = known->model;
  const size_t first = model.For(point).leaf;
  double before = reverse ? 0 : 1;  // the share of the first leaf that lies before the point, if that is known
  if constexpr (!Keys::kKeysElsewhere) before = model.ShareBefore(first, point);
  // The leaf table's entries and the synonyms, merged by their low fences.
  auto synonym = shared_leaf::FirstRightOf<Keys>(known->synonyms, point);
  if (!reverse) {
    const bool in_synonym = synonym != known->synonyms.begin() && std::prev(synonym)->first > model.LowOf(first);
    leaves->push_back(in_synonym ? std::prev(synonym)->second : model.OffsetOf(first));
    size_t leaf = first + 1;
    while (leaves->size() < most && (leaf < model.leaves() || synonym != known->synonyms.end())) {
      if (synonym == known->synonyms.end() || (leaf < model.leaves() && model.LowOf(leaf) <= synonym->first)) {
        leaves->push_back(model.OffsetOf(leaf++));
      } else {
        leaves->push_back(synonym->second);
        ++synonym;
      }
    }
    return in_synonym ? 1 : before;
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
  return !leaves->empty() && leaves->front() == model.OffsetOf(first) ? 1 - before : 1;
}

template <class Keys>
typename KnownModels<Keys>::Models::iterator KnownModels<Keys>::Erase(typename Models::iterator at) {
  const uint64_t bytes = at->second->bytes();
  model_bytes_ -= bytes;
  Count(0, bytes);
  if constexpr (!Keys::kKeysElsewhere) quick_.Remove(at->first, at->second.get());
  return models_.erase(at);
}

template <class Keys>
void KnownModels<Keys>::Install(BasicModel<Keys> model) {
  auto at = models_.upper_bound(model.first());
  if (at != models_.begin() && std::prev(at)->second->model.CoversKey(model.first())) --at;
  while (at != models_.end() && (!model.next().has_value() || at->first < *model.next())) at = Erase(at);
  const Key first = model.first();
  auto known = std::make_shared<Known>();
  known->model = std::move(model);
  model_bytes_ += known->bytes();
  Count(known->bytes(), 0);
  Known* const installed = known.get();
  models_[first] = std::move(known);
  if constexpr (!Keys::kKeysElsewhere) {
    if (quick_.Add(first, installed, models_.size())) {
      const uint64_t before = quick_.bytes();
      quick_.Build(models_);
      Count(quick_.bytes(), before);
    }
  }
  Evict(first);
}

template <class Keys>
void KnownModels<Keys>::Evict(const Key& keep) {
  while (model_bytes_ > max_bytes_ && models_.size() > 1) {
    auto at = hand_.has_value() ? models_.upper_bound(*hand_) : models_.begin();
    if (at == models_.end()) at = models_.begin();
    hand_ = at->first;
    if (at->first == keep) continue;
    // Each model loses its mark once, so there is one without it.
    if (at->second->used.exchange(false, std::memory_order_relaxed)) continue;
    Erase(at);
  }
}

template <class Keys>
void KnownModels<Keys>::NoteLeaf(const NewLeaf<Keys>& leaf) {
  const Point point = Keys::At(leaf.low);
  Known* const known = Covering(point);
  if (known == nullptr || leaf.leaf == known->model.OffsetOf(known->model.For(point).leaf)) return;
  AddLeaves(known, std::span(&leaf, 1));
}

template <class Keys>
size_t KnownModels<Keys>::AddSynonyms(Known* model, std::span<const NewLeaf<Keys>> leaves, uint64_t slots,
                                      std::vector<uint64_t> late) {
  // Another client may have READ more.
  if (slots >= model->slots) {
    model->slots = slots;
    model->late = std::move(late);
  }
  return AddLeaves(model, leaves);
}

template <class Keys>
size_t KnownModels<Keys>::AddLeaves(Known* model, std::span<const NewLeaf<Keys>> leaves) {
  const Key& first = model->model.first();
  const auto at = models_.find(first);
  const bool is_here = at != models_.end() && at->second.get() == model;  // or it was replaced, or evicted
  size_t added = 0;
  for (const NewLeaf<Keys>& one : leaves) {
    if (one.leaf == 0 || one.leaf % kLineBytes != 0 || !model->model.CoversKey(one.low)) continue;
    if (!model->synonyms.insert_or_assign(one.low, one.leaf).second) continue;
    ++added;
    if (!is_here) continue;
    model_bytes_ += Known::kSynonymBytes;
    Count(Known::kSynonymBytes, 0);
  }
  if (is_here) Evict(first);
  return added;
}

template <class Keys>
void KnownModels<Keys>::DropSynonyms(const Point& point) {
  Known* const known = Covering(point);
  if (known == nullptr) return;
  const uint64_t bytes = known->synonyms.size() * Known::kSynonymBytes;
  model_bytes_ -= bytes;
  Count(0, bytes);
  known->synonyms.clear();
}

template <class Keys>
void KnownModels<Keys>::SetTop(std::vector<Entry> top) {
  uint64_t before = top_.size();
  for (const auto& page : pages_) before += page.size();
  std::vector<std::vector<Entry>> pages(top.size());
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
  Count(after * sizeof(Entry), before * sizeof(Entry));
}

template <class Keys>
bool KnownModels<Keys>::FindInPage(const Point& point, Entry* entry) const {
  const std::vector<Entry>& page = pages_[FindEntry<Keys>(top_, point)];
  if (page.empty()) return false;
  *entry = page[FindEntry<Keys>(page, point)];
  return true;
}

template <class Keys>
void KnownModels<Keys>::SetPage(const Entry& page, std::vector<Entry> entries) {
  const size_t at = FindEntry<Keys>(top_, Keys::At(page.first));
  if (top_[at].first != page.first || top_[at].pointer != page.pointer) return;
  Count(entries.size() * sizeof(Entry), pages_[at].size() * sizeof(Entry));
  pages_[at] = std::move(entries);
}

template class KnownModels<IntegerKeys>;
template class KnownModels<ByteKeys>;

}  // namespace gannet::index::rolex
