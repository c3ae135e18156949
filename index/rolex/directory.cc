#include "index/rolex/directory.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "base/check.h"
#include "index/rolex/block_checksum.h"
#include "index/rolex/quiet_lines.h"
#include "index/rolex/synonyms.h"

namespace gannet::index::rolex {
namespace {

// | checksum, of a top | number of entries, and the block's mask (quiet_lines.h) |
constexpr size_t kHeaderBytes = 16;

size_t BytesOfKey(uint64_t /*key*/) {
  return sizeof(uint64_t);
}
size_t BytesOfKey(const ByteKey& key) {
  return 1 + key.size();
}
void PutKey(uint64_t key, std::byte* at) {
  std::memcpy(at, &key, sizeof(key));
}
void PutKey(const ByteKey& key, std::byte* at) {
  *at = static_cast<std::byte>(key.size());
  std::memcpy(at + 1, key.view().data(), key.size());
}
// Takes a key from the beginning of *bytes. False: there is none.
bool TakeKey(std::span<const std::byte>* bytes, uint64_t* key) {
  if (bytes->size() < sizeof(*key)) return false;
  std::memcpy(key, bytes->data(), sizeof(*key));
  *bytes = bytes->subspan(sizeof(*key));
  return true;
}
bool TakeKey(std::span<const std::byte>* bytes, ByteKey* key) {
  if (bytes->empty()) return false;
  const auto size = static_cast<size_t>((*bytes)[0]);
  if (size > kShortKeyBytes || bytes->size() < 1 + size) return false;
  *key = ByteKey(std::string_view(reinterpret_cast<const char*>(bytes->data()) + 1, size));
  *bytes = bytes->subspan(1 + size);
  return true;
}

void StoreAll(std::byte* to, std::span<const std::byte> bytes) {
  for (size_t at = 0; at < bytes.size(); at += kWordBytes) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(kWordBytes, bytes.size() - at));
    StoreWord(to + at, word);
  }
}

// A top or a page, of whole words, with 0 for the checksum.
template <class Keys>
std::vector<std::byte> EncodeEntries(std::span<const DirectoryEntry<Keys>> entries, uint64_t* mask) {
  size_t size = kHeaderBytes + entries.size() * kWordBytes;
  for (const auto& entry : entries) size += BytesOfKey(entry.first);
  std::vector<std::byte> block(RoundUp(size, kWordBytes));
  std::byte* pointer = block.data() + kHeaderBytes;
  std::byte* key = pointer + entries.size() * kWordBytes;
  for (const auto& entry : entries) {
    std::memcpy(pointer, &entry.pointer, kWordBytes);
    pointer += kWordBytes;
    PutKey(entry.first, key);
    key += BytesOfKey(entry.first);
  }
  *mask = QuietMask(block);
  ApplyMask(block, *mask);
  const uint64_t count = entries.size() | *mask;
  std::memcpy(block.data() + kWordBytes, &count, kWordBytes);
  return block;
}

// Decodes at most `most` entries, with ascending keys. *size: their bytes.
template <class Keys>
std::vector<DirectoryEntry<Keys>> DecodeEntries(std::span<const std::byte> block, size_t most, size_t* size) {
  if (block.size() < kHeaderBytes) return {};
  uint64_t count;
  std::memcpy(&count, block.data() + kWordBytes, kWordBytes);
  const uint64_t n = count & ~kMaskBits;
  if (n == 0 || n > most || block.size() < kHeaderBytes + n * kWordBytes) return {};
  std::vector<std::byte> unmasked;
  if (const uint64_t mask = count & kMaskBits; mask != 0) {
    unmasked.assign(block.begin(), block.end());
    ApplyMask(unmasked, mask);
    block = unmasked;
  }
  std::vector<DirectoryEntry<Keys>> entries(n);
  std::span<const std::byte> keys = block.subspan(kHeaderBytes + n * kWordBytes);
  for (size_t i = 0; i < n; ++i) {
    std::memcpy(&entries[i].pointer, block.data() + kHeaderBytes + i * kWordBytes, kWordBytes);
    if (!TakeKey(&keys, &entries[i].first) || (i > 0 && entries[i].first <= entries[i - 1].first)) return {};
  }
  *size = RoundUp(block.size() - keys.size(), kWordBytes);
  return entries;
}

}  // namespace

template <class Keys>
std::vector<DirectoryEntry<Keys>> DecodeTop(std::span<const std::byte> block) {
  size_t size = 0;
  std::vector<DirectoryEntry<Keys>> entries = DecodeEntries<Keys>(block, kMostPages, &size);
  if (entries.empty()) return entries;
  uint64_t checksum;
  std::memcpy(&checksum, block.data(), kWordBytes);
  if (size > block.size() || checksum != ChecksumOf(block.first(size))) entries.clear();
  return entries;
}

template <class Keys>
std::vector<DirectoryEntry<Keys>> DecodePage(std::span<const std::byte> block) {
  size_t size = 0;
  return DecodeEntries<Keys>(block, kMostModels, &size);
}

template <class Keys>
Directory<Keys>::Directory(IndexService* service, IndexRights rights)
    : service_(service),
      memory_(service->node().memory().data()),
      rights_(rights),
      synonyms_(std::make_shared<BlockPool>(rights == IndexRights::kClients ? BlockPool::Part::kWritable
                                                                            : BlockPool::Part::kReadOnly)) {}

template <class Keys>
Directory<Keys>::~Directory() {
  rdma::SlabCache slab(&service_->slab());
  if (const Top* const top = top_.load(std::memory_order_relaxed); top != nullptr) {
    for (Page* const page : top->pages) {
      for (const auto& at : page->models) {
        const Own* const model = at.load(std::memory_order_relaxed);
        models_->Release(model->block, model->model.bytes());
        synonyms_->Release(model->synonyms, kSynonymTableBytes);
        delete model;
      }
      pages_->Release(page->block, page->block_bytes);
      delete page;
    }
    pages_->Release(top->block, top->block_bytes);
    delete top;
  }
  if (root_ != nullptr) pages_->Release(root_, kLineBytes);
  pages_->Close(slab);
  models_->Close(slab);
  synonyms_->Close(slab);
}

template <class Keys>
StatusOr<std::unique_ptr<OwnModel<Keys>>> Directory<Keys>::Make(Context& context, BasicModel<Keys> model) {
  const StatusOr<std::byte*> synonyms = synonyms_->Allocate(context, kSynonymTableBytes);
  if (!synonyms.ok()) return synonyms.status();
  const StatusOr<std::byte*> block = models_->Allocate(context, model.bytes());
  if (!block.ok()) {
    synonyms_->Release(*synonyms, kSynonymTableBytes);
    return block.status();
  }
  // Clients of a model that had it before may still write into the table: a wrong hint, or a slot that stays empty.
  ClearWords(*synonyms, kSynonymTableBytes, rights_);
  auto own = std::make_unique<Own>(Own{std::move(model), *block, *synonyms});
  own->model.set_synonyms(OffsetOf(*synonyms));
  std::vector<std::byte> bytes(own->model.bytes());
  own->model.Encode(bytes);
  StoreAll(own->block, bytes);
  return own;
}

template <class Keys>
void Directory<Keys>::Discard(std::unique_ptr<Own> model) {
  models_->Release(model->block, model->model.bytes());
  synonyms_->Release(model->synonyms, kSynonymTableBytes);
}

template <class Keys>
size_t Directory<Keys>::FindFirst(std::span<const Key> firsts, const Point& point) {
  const auto after = std::partition_point(firsts.begin(), firsts.end(),
                                          [&point](const Key& first) { return Keys::IsAtMost(first, point); });
  return after == firsts.begin() ? 0 : static_cast<size_t>(after - firsts.begin() - 1);
}

template <class Keys>
const OwnModel<Keys>* Directory<Keys>::Find(const Point& point) const {
  const Top* const top = top_.load(std::memory_order_acquire);
  if (top == nullptr) return nullptr;
  const Page& page = *top->pages[FindFirst(top->firsts, point)];
  return page.models[FindFirst(page.firsts, point)].load(std::memory_order_acquire);
}

template <class Keys>
typename Directory<Keys>::Neighbours Directory<Keys>::NeighboursOf(const Own& model) const {
  const Top* const top = top_.load(std::memory_order_acquire);
  const Page& page = *top->pages[FindFirst(top->firsts, Keys::At(model.model.first()))];
  const size_t at = FindFirst(page.firsts, Keys::At(model.model.first()));
  return {.before = at > 0 ? page.models[at - 1].load(std::memory_order_acquire) : nullptr,
          .after = at + 1 < page.models.size() ? page.models[at + 1].load(std::memory_order_acquire) : nullptr};
}

template <class Keys>
std::vector<const OwnModel<Keys>*> Directory<Keys>::All() const {
  std::vector<const Own*> all;
  const Top* const top = top_.load(std::memory_order_acquire);
  if (top == nullptr) return all;
  for (const Page* const page : top->pages) {
    for (const auto& model : page->models) all.push_back(model.load(std::memory_order_acquire));
  }
  return all;
}

template <class Keys>
StatusOr<std::unique_ptr<typename Directory<Keys>::Page>> Directory<Keys>::MakePage(
    Context& context, std::span<const Own* const> models) {
  std::vector<DirectoryEntry<Keys>> entries;
  for (const Own* const model : models) entries.push_back({model->model.first(), PointerTo(*model)});
  uint64_t mask = 0;
  const std::vector<std::byte> bytes = EncodeEntries<Keys>(entries, &mask);
  const StatusOr<std::byte*> block = pages_->Allocate(context, bytes.size());
  if (!block.ok()) return block.status();
  auto page = std::make_unique<Page>(models.size());
  page->block = *block;
  page->block_bytes = bytes.size();
  page->mask = mask;
  for (size_t i = 0; i < models.size(); ++i) {
    page->firsts[i] = entries[i].first;
    page->models[i].store(models[i], std::memory_order_relaxed);
  }
  StoreAll(page->block, bytes);
  return page;
}

template <class Keys>
Status Directory<Keys>::Publish(Context& context, std::vector<Page*> pages) {
  auto top = std::make_unique<Top>();
  std::vector<DirectoryEntry<Keys>> entries;
  for (const Page* const page : pages) {
    entries.push_back({page->firsts[0], BlockPointer::Pack(OffsetOf(page->block), page->block_bytes)});
    top->firsts.push_back(page->firsts[0]);
  }
  uint64_t mask = 0;
  std::vector<std::byte> bytes = EncodeEntries<Keys>(entries, &mask);
  if (pages.size() > kMostPages || bytes.size() > rdma::kMaxObjectBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("an index has at most ", kMostPages * kMostModels, " models, or fewer if their keys are long"));
  }
  if (root_ == nullptr) {
    const StatusOr<std::byte*> root = pages_->Allocate(context, kLineBytes);
    if (!root.ok()) return root.status();
    root_ = *root;
  }
  top->block_bytes = bytes.size();
  const StatusOr<std::byte*> block = pages_->Allocate(context, top->block_bytes);
  if (!block.ok()) return block.status();
  top->block = *block;
  const uint64_t checksum = ChecksumOf(bytes);
  std::memcpy(bytes.data(), &checksum, kWordBytes);
  top->pages = std::move(pages);
  StoreAll(top->block, bytes);
  StoreWord(root_, BlockPointer::Pack(OffsetOf(top->block), top->block_bytes));
  const Top* const old = top_.exchange(top.release(), std::memory_order_acq_rel);
  if (old != nullptr) {
    context.epoch->RetireWith([pool = pages_, old] {
      pool->Release(old->block, old->block_bytes);
      delete old;
    });
  }
  return absl::OkStatus();
}

template <class Keys>
void Directory<Keys>::RetireModel(Context& context, const Own* model) {
  context.epoch->RetireWith([models = models_, synonyms = synonyms_, model] {
    models->Release(model->block, model->model.bytes());
    synonyms->Release(model->synonyms, kSynonymTableBytes);
    delete model;
  });
}

template <class Keys>
void Directory<Keys>::RetirePage(Context& context, Page* page) {
  context.epoch->RetireWith([pool = pages_, page] {
    pool->Release(page->block, page->block_bytes);
    delete page;
  });
}

template <class Keys>
Status Directory<Keys>::Fill(Context& context, std::vector<std::unique_ptr<Own>> models) {
  std::vector<const Own*> all;
  for (const auto& model : models) all.push_back(model.get());
  // Pages that are not full leave room for models that become several.
  constexpr size_t kEach = kMostModels * 3 / 4;
  std::vector<std::unique_ptr<Page>> made;
  std::vector<Page*> pages;
  Status status;
  for (size_t from = 0; status.ok() && from < all.size(); from += kEach) {
    auto page = MakePage(context, std::span(all).subspan(from, std::min(kEach, all.size() - from)));
    status = page.status();
    if (!page.ok()) break;
    pages.push_back(page->get());
    made.push_back(*std::move(page));
  }
  const Top* const old = top_.load(std::memory_order_relaxed);
  if (status.ok()) status = Publish(context, pages);
  if (!status.ok()) {
    for (const auto& page : made) pages_->Release(page->block, page->block_bytes);
    for (auto& model : models) Discard(std::move(model));
    return status;
  }
  for (auto& page : made) static_cast<void>(page.release());
  for (auto& model : models) static_cast<void>(model.release());
  if (old != nullptr) {
    for (Page* const page : old->pages) {
      for (const auto& model : page->models) RetireModel(context, model.load(std::memory_order_relaxed));
      RetirePage(context, page);
    }
  }
  return absl::OkStatus();
}

template <class Keys>
Status Directory<Keys>::Replace(Context& context, std::span<const Own* const> old,
                                std::vector<std::unique_ptr<Own>> fresh) {
  const Top* const top = top_.load(std::memory_order_relaxed);
  const size_t page_at = FindFirst(top->firsts, Keys::At(old[0]->model.first()));
  Page* const page = top->pages[page_at];
  const size_t at = FindFirst(page->firsts, Keys::At(old[0]->model.first()));
  for (size_t i = 0; i < old.size(); ++i) {
    GANNET_CHECK(at + i < page->models.size() && page->models[at + i].load(std::memory_order_relaxed) == old[i],
                 "model %d of %d to be replaced is not in the directory", i, old.size());
  }
  if (old.size() == 1 && fresh.size() == 1) {
    const Own* const model = fresh[0].release();
    page->models[at].store(model, std::memory_order_release);
    const size_t place = kHeaderBytes + at * kWordBytes;
    StoreWord(page->block + place, PointerTo(*model) ^ (place % kLineBytes == 0 ? page->mask : 0));
    RetireModel(context, old[0]);
    return absl::OkStatus();
  }
  std::vector<const Own*> models;
  for (size_t i = 0; i < at; ++i) models.push_back(page->models[i].load(std::memory_order_relaxed));
  for (const auto& model : fresh) models.push_back(model.get());
  for (size_t i = at + old.size(); i < page->models.size(); ++i) {
    models.push_back(page->models[i].load(std::memory_order_relaxed));
  }
  const size_t parts = (models.size() + kMostModels - 1) / kMostModels;
  std::vector<std::unique_ptr<Page>> made;
  Status status;
  for (size_t part = 0; part < parts; ++part) {
    const size_t from = models.size() * part / parts;
    const size_t to = models.size() * (part + 1) / parts;
    auto one = MakePage(context, std::span(models).subspan(from, to - from));
    status = one.status();
    if (!one.ok()) break;
    made.push_back(*std::move(one));
  }
  if (status.ok()) {
    std::vector<Page*> pages(top->pages.begin(), top->pages.begin() + static_cast<ptrdiff_t>(page_at));
    for (const auto& one : made) pages.push_back(one.get());
    pages.insert(pages.end(), top->pages.begin() + static_cast<ptrdiff_t>(page_at) + 1, top->pages.end());
    status = Publish(context, std::move(pages));
  }
  if (!status.ok()) {
    for (const auto& one : made) pages_->Release(one->block, one->block_bytes);
    for (auto& model : fresh) Discard(std::move(model));
    return status;
  }
  for (auto& one : made) static_cast<void>(one.release());
  for (auto& model : fresh) static_cast<void>(model.release());
  // A client with the old page learns from the retired synonym tables that it is old.
  RetirePage(context, page);
  for (const Own* const model : old) RetireModel(context, model);
  return absl::OkStatus();
}

template std::vector<DirectoryEntry<IntegerKeys>> DecodeTop(std::span<const std::byte> block);
template std::vector<DirectoryEntry<ByteKeys>> DecodeTop(std::span<const std::byte> block);
template std::vector<DirectoryEntry<IntegerKeys>> DecodePage(std::span<const std::byte> block);
template std::vector<DirectoryEntry<ByteKeys>> DecodePage(std::span<const std::byte> block);
template class Directory<IntegerKeys>;
template class Directory<ByteKeys>;

}  // namespace gannet::index::rolex
