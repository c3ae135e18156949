#include "index/rolex/directory.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "base/check.h"
#include "index/rolex/quiet_lines.h"
#include "index/rolex/synonyms.h"

namespace gannet::index::rolex {
namespace {

constexpr size_t kTopHeaderBytes = 16;
constexpr size_t kEntryBytes = sizeof(DirectoryEntry);

uint64_t ChecksumOf(std::span<const std::byte> block) {
  return XXH3_64bits(block.data() + kWordBytes, block.size() - kWordBytes) >> 1;  // as in model.cc
}

void StoreAll(std::byte* to, std::span<const std::byte> bytes) {
  for (size_t at = 0; at < bytes.size(); at += kWordBytes) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(kWordBytes, bytes.size() - at));
    StoreWord(to + at, word);
  }
}

bool Ascend(std::span<const DirectoryEntry> entries) {
  return std::ranges::adjacent_find(entries, [](const DirectoryEntry& a, const DirectoryEntry& b) {
           return a.first >= b.first;
         }) == entries.end();
}

// The number of a block's entries and the block's mask (quiet_lines.h) share a word. Masks what the block has.
void PutCount(uint64_t n, size_t at, std::span<std::byte> block) {
  const uint64_t mask = QuietMask(block);
  ApplyMask(block, mask);
  const uint64_t word = n | mask;
  std::memcpy(block.data() + at, &word, kWordBytes);
}

// The entries of a block whose word of PutCount is `count`, without those that do not ascend: then it is no directory.
std::vector<DirectoryEntry> DecodeEntries(std::span<const std::byte> block, size_t header_bytes, uint64_t count) {
  const uint64_t n = count & ~kMaskBits;
  std::vector<std::byte> bytes(block.begin(), block.begin() + static_cast<ptrdiff_t>(header_bytes + n * kEntryBytes));
  ApplyMask(bytes, count & kMaskBits);
  std::vector<DirectoryEntry> entries(n);
  std::memcpy(entries.data(), bytes.data() + header_bytes, n * kEntryBytes);
  if (!Ascend(entries)) entries.clear();
  return entries;
}

}  // namespace

size_t FindEntry(std::span<const DirectoryEntry> entries, uint64_t key) {
  const auto after = std::upper_bound(entries.begin(), entries.end(), key,
                                      [](uint64_t at, const DirectoryEntry& entry) { return at < entry.first; });
  return after == entries.begin() ? 0 : static_cast<size_t>(after - entries.begin() - 1);
}

std::vector<DirectoryEntry> DecodeTop(std::span<const std::byte> block) {
  std::array<uint64_t, 2> header;
  if (block.size() < kTopHeaderBytes) return {};
  std::memcpy(header.data(), block.data(), kTopHeaderBytes);
  const uint64_t n = header[1] & ~kMaskBits;
  if (n == 0 || n > kMostPages || block.size() < kTopHeaderBytes + n * kEntryBytes) return {};
  if (header[0] != ChecksumOf(block.first(kTopHeaderBytes + n * kEntryBytes))) return {};
  return DecodeEntries(block, kTopHeaderBytes, header[1]);
}

std::vector<DirectoryEntry> DecodePage(std::span<const std::byte> block) {
  if (block.size() < kPageBytes) return {};
  uint64_t word;
  std::memcpy(&word, block.data(), kWordBytes);
  const uint64_t n = word & ~kMaskBits;
  if (n == 0 || n > kMostModels) return {};
  return DecodeEntries(block, kPageHeaderBytes, word);
}

Directory::Directory(IndexService* service) : service_(service), memory_(service->node().memory().data()) {}

Directory::~Directory() {
  rdma::SlabCache slab(&service_->slab());
  if (const Top* const top = top_.load(std::memory_order_relaxed); top != nullptr) {
    for (Page* const page : top->pages) {
      for (const auto& at : page->models) {
        const OwnModel* const model = at.load(std::memory_order_relaxed);
        models_->Release(model->block, model->model.bytes());
        synonyms_->Release(model->synonyms, kSynonymTableBytes);
        delete model;
      }
      pages_->Release(page->block, kPageBytes);
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

StatusOr<std::unique_ptr<OwnModel>> Directory::Make(Context& context, Model model) {
  const StatusOr<std::byte*> synonyms = synonyms_->Allocate(context, kSynonymTableBytes);
  if (!synonyms.ok()) return synonyms.status();
  const StatusOr<std::byte*> block = models_->Allocate(context, model.bytes());
  if (!block.ok()) {
    synonyms_->Release(*synonyms, kSynonymTableBytes);
    return block.status();
  }
  // Clients of a model that had it before may still write into the table: a wrong hint, or a slot that stays empty.
  for (size_t at = 0; at < kSynonymTableBytes; at += kWordBytes) {
    if (at % kLineBytes != 0) StoreWord(*synonyms + at, 0);
  }
  auto own = std::make_unique<OwnModel>(OwnModel{std::move(model), *block, *synonyms});
  own->model.set_synonyms(OffsetOf(*synonyms));
  std::vector<std::byte> bytes(own->model.bytes());
  own->model.Encode(bytes);
  StoreAll(own->block, bytes);
  return own;
}

void Directory::Discard(std::unique_ptr<OwnModel> model) {
  models_->Release(model->block, model->model.bytes());
  synonyms_->Release(model->synonyms, kSynonymTableBytes);
}

size_t Directory::FindFirst(std::span<const uint64_t> firsts, uint64_t key) {
  const auto after = std::upper_bound(firsts.begin(), firsts.end(), key);
  return after == firsts.begin() ? 0 : static_cast<size_t>(after - firsts.begin() - 1);
}

const OwnModel* Directory::Find(uint64_t key) const {
  const Top* const top = top_.load(std::memory_order_acquire);
  if (top == nullptr) return nullptr;
  const Page& page = *top->pages[FindFirst(top->firsts, key)];
  return page.models[FindFirst(page.firsts, key)].load(std::memory_order_acquire);
}

Directory::Neighbours Directory::NeighboursOf(const OwnModel& model) const {
  const Top* const top = top_.load(std::memory_order_acquire);
  const Page& page = *top->pages[FindFirst(top->firsts, model.model.first())];
  const size_t at = FindFirst(page.firsts, model.model.first());
  return {.before = at > 0 ? page.models[at - 1].load(std::memory_order_acquire) : nullptr,
          .after = at + 1 < page.models.size() ? page.models[at + 1].load(std::memory_order_acquire) : nullptr};
}

std::vector<const OwnModel*> Directory::All() const {
  std::vector<const OwnModel*> all;
  const Top* const top = top_.load(std::memory_order_acquire);
  if (top == nullptr) return all;
  for (const Page* const page : top->pages) {
    for (const auto& model : page->models) all.push_back(model.load(std::memory_order_acquire));
  }
  return all;
}

StatusOr<std::unique_ptr<Directory::Page>> Directory::MakePage(Context& context,
                                                               std::span<const OwnModel* const> models) {
  const StatusOr<std::byte*> block = pages_->Allocate(context, kPageBytes);
  if (!block.ok()) return block.status();
  auto page = std::make_unique<Page>(models.size());
  page->block = *block;
  std::vector<std::byte> bytes(kPageBytes);
  for (size_t i = 0; i < models.size(); ++i) {
    const DirectoryEntry entry{models[i]->model.first(), PointerTo(*models[i])};
    std::memcpy(bytes.data() + kPageHeaderBytes + i * kEntryBytes, &entry, kEntryBytes);
    page->firsts[i] = entry.first;
    page->models[i].store(models[i], std::memory_order_relaxed);
  }
  PutCount(models.size(), 0, bytes);
  StoreAll(page->block, bytes);
  return page;
}

Status Directory::Publish(Context& context, std::vector<Page*> pages) {
  if (pages.size() > kMostPages) {
    return absl::ResourceExhaustedError(absl::StrCat("an index has at most ", kMostPages * kMostModels, " models"));
  }
  if (root_ == nullptr) {
    const StatusOr<std::byte*> root = pages_->Allocate(context, kLineBytes);
    if (!root.ok()) return root.status();
    root_ = *root;
  }
  auto top = std::make_unique<Top>();
  top->block_bytes = kTopHeaderBytes + pages.size() * kEntryBytes;
  const StatusOr<std::byte*> block = pages_->Allocate(context, top->block_bytes);
  if (!block.ok()) return block.status();
  top->block = *block;
  std::vector<std::byte> bytes(top->block_bytes);
  for (size_t i = 0; i < pages.size(); ++i) {
    const DirectoryEntry entry{pages[i]->firsts[0], BlockPointer::Pack(OffsetOf(pages[i]->block), kPageBytes)};
    std::memcpy(bytes.data() + kTopHeaderBytes + i * kEntryBytes, &entry, kEntryBytes);
    top->firsts.push_back(entry.first);
  }
  PutCount(pages.size(), kWordBytes, bytes);
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

void Directory::RetireModel(Context& context, const OwnModel* model) {
  context.epoch->RetireWith([models = models_, synonyms = synonyms_, model] {
    models->Release(model->block, model->model.bytes());
    synonyms->Release(model->synonyms, kSynonymTableBytes);
    delete model;
  });
}

void Directory::RetirePage(Context& context, Page* page) {
  context.epoch->RetireWith([pool = pages_, page] {
    pool->Release(page->block, kPageBytes);
    delete page;
  });
}

Status Directory::Fill(Context& context, std::vector<std::unique_ptr<OwnModel>> models) {
  std::vector<const OwnModel*> all;
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
    for (const auto& page : made) pages_->Release(page->block, kPageBytes);
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

Status Directory::Replace(Context& context, std::span<const OwnModel* const> old,
                          std::vector<std::unique_ptr<OwnModel>> fresh) {
  const Top* const top = top_.load(std::memory_order_relaxed);
  const size_t page_at = FindFirst(top->firsts, old[0]->model.first());
  Page* const page = top->pages[page_at];
  const size_t at = FindFirst(page->firsts, old[0]->model.first());
  if (old.size() == 1 && fresh.size() == 1) {
    const OwnModel* const model = fresh[0].release();
    page->models[at].store(model, std::memory_order_release);
    StoreWord(page->block + kPageHeaderBytes + at * kEntryBytes + kWordBytes, PointerTo(*model));
    RetireModel(context, old[0]);
    return absl::OkStatus();
  }
  std::vector<const OwnModel*> models;
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
    for (const auto& one : made) pages_->Release(one->block, kPageBytes);
    for (auto& model : fresh) Discard(std::move(model));
    return status;
  }
  for (auto& one : made) static_cast<void>(one.release());
  for (auto& model : fresh) static_cast<void>(model.release());
  // A client with the old page learns from the retired synonym tables that it is old.
  RetirePage(context, page);
  for (const OwnModel* const model : old) RetireModel(context, model);
  return absl::OkStatus();
}

}  // namespace gannet::index::rolex
