#include "log/file/simulated/faulty_disk.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace gannet::log::internal {
namespace {

// Number of unsynced versions of a block that are remembered: the newest ones.
constexpr size_t kMaxVersions = 4;

void Apply(const FaultyNode::NameChange& change, FaultyNode::Names* names) {
  for (const auto& [name, node] : change) {
    if (node == nullptr) {
      names->erase(name);
    } else {
      (*names)[name] = node;
    }
  }
}

}  // namespace

Survival::Survival(Random* random) : random_(random) {
  constexpr uint64_t kChances[] = {0, 0, 1, 4, 4, 7, 8, 8};
  eighths_ = kChances[random_->Below(std::size(kChances))];
}

size_t Survival::Version(size_t versions) {
  if (outcome_ != nullptr) return outcome_->Next(versions);
  if (!Survives()) return 0;
  return random_->OneIn(2) ? versions : 1 + random_->Below(versions);
}

const FaultyContent::BlockPointer& FaultyContent::Page::seen() const {
  if (!unsynced.empty()) return unsynced.back();
  return seen_only ? *seen_only : durable;
}

void FaultyContent::Grow(uint64_t size) {
  if (size <= size_) return;
  size_ = size;
  unsynced_sizes_.push_back(size);
}

void FaultyContent::WriteBlock(uint64_t block, const std::byte* data, size_t bytes) {
  Page& page = pages_[block];
  auto next = std::make_shared<Block>();
  if (bytes < kDiskBlockBytes && page.seen() != nullptr) *next = *page.seen();
  std::memcpy(next->data(), data, bytes);
  if (page.unsynced.size() == kMaxVersions) page.unsynced.erase(page.unsynced.begin());
  page.unsynced.push_back(std::move(next));
  unsynced_pages_.insert(block);
}

void FaultyContent::Write(uint64_t offset, std::span<const std::byte> data) {
  WritePart(offset, data, data.size());
}

void FaultyContent::WritePart(uint64_t offset, std::span<const std::byte> data, size_t bytes) {
  GANNET_CHECK(offset + data.size() <= size_, "offset=%d bytes=%d size=%d", offset, data.size(), size_);
  for (size_t at = 0; at < bytes; at += kDiskBlockBytes) {
    WriteBlock((offset + at) / kDiskBlockBytes, data.data() + at, std::min(kDiskBlockBytes, bytes - at));
  }
}

size_t FaultyContent::Read(uint64_t offset, std::span<std::byte> out) const {
  if (offset >= size_) return 0;
  const size_t bytes = std::min<uint64_t>(out.size(), size_ - offset);
  for (size_t at = 0; at < bytes;) {
    const uint64_t position = offset + at;
    const size_t in_block = position % kDiskBlockBytes;
    const size_t part = std::min(bytes - at, kDiskBlockBytes - in_block);
    const auto page = pages_.find(position / kDiskBlockBytes);
    if (page == pages_.end() || page->second.seen() == nullptr) {
      std::memset(out.data() + at, 0, part);
    } else {
      std::memcpy(out.data() + at, page->second.seen()->data() + in_block, part);
    }
    at += part;
  }
  return bytes;
}

void FaultyContent::Sync() {
  for (const uint64_t block : unsynced_pages_) {
    Page& page = pages_[block];
    page.durable = page.unsynced.back();
    page.unsynced.clear();
    page.seen_only.reset();
  }
  unsynced_pages_.clear();
  durable_size_ = size_;
  unsynced_sizes_.clear();
}

void FaultyContent::FailSync(Random& random) {
  Survival survival(&random);
  for (const uint64_t block : unsynced_pages_) {
    Page& page = pages_[block];
    const BlockPointer newest = page.unsynced.back();
    const uint64_t fate = random.Below(3);
    page.durable = fate == 0 ? newest : Mixture(page, survival);
    page.seen_only.reset();
    if (fate == 2) page.seen_only = newest;
    page.unsynced.clear();
  }
  unsynced_pages_.clear();
  if (survival.Survives()) durable_size_ = size_;
  unsynced_sizes_.clear();
}

// Each sector gets its old content or one of the newer ones. To enumerate, those that are the same count once.
FaultyContent::BlockPointer FaultyContent::Mixture(const Page& page, Survival& survival) {
  static constexpr Block kZeros{};
  auto mixture = std::make_shared<Block>();
  std::vector<const std::byte*> versions;
  for (size_t sector = 0; sector < kDiskBlockBytes; sector += kSectorBytes) {
    versions.assign(1, (page.durable == nullptr ? kZeros : *page.durable).data() + sector);
    for (const BlockPointer& version : page.unsynced) {
      const std::byte* const bytes = version->data() + sector;
      const bool is_new = std::ranges::none_of(
          versions, [&](const std::byte* known) { return std::memcmp(known, bytes, kSectorBytes) == 0; });
      if (is_new || !survival.enumerates()) versions.push_back(bytes);
    }
    const size_t chosen = versions.size() == 1 ? 0 : survival.Version(versions.size() - 1);
    std::memcpy(mixture->data() + sector, versions[chosen], kSectorBytes);
  }
  return mixture;
}

void FaultyContent::FlipBit(uint64_t offset, int bit) {
  GANNET_CHECK(offset < size_, "offset=%d size=%d", offset, size_);
  const auto flip = [&](BlockPointer* block) {
    auto changed = *block == nullptr ? std::make_shared<Block>() : std::make_shared<Block>(**block);
    (*changed)[offset % kDiskBlockBytes] ^= std::byte{1} << bit;
    *block = std::move(changed);
  };
  Page& page = pages_[offset / kDiskBlockBytes];
  flip(&page.durable);
  for (BlockPointer& version : page.unsynced) flip(&version);
  if (page.seen_only) flip(&*page.seen_only);
}

FaultyContent FaultyContent::AfterCrash(Survival& survival) const {
  FaultyContent after;
  after.size_ = durable_size_;
  if (!unsynced_sizes_.empty()) {
    const size_t chosen = survival.Version(unsynced_sizes_.size());
    if (chosen != 0) after.size_ = unsynced_sizes_[chosen - 1];
  }
  after.durable_size_ = after.size_;
  for (const auto& [block, page] : pages_) {
    if (block * kDiskBlockBytes >= after.size_) break;
    after.pages_[block].durable = page.unsynced.empty() ? page.durable : Mixture(page, survival);
  }
  return after;
}

void FaultyNode::Change(NameChange change) {
  Apply(change, &names);
  unsynced_.push_back(std::move(change));
}

void FaultyNode::SyncNames() {
  for (const NameChange& change : unsynced_) Apply(change, &durable_names_);
  unsynced_.clear();
}

void FaultyNode::FailSyncNames(Random& random) {
  Survival survival(&random);
  ApplySome(survival, &durable_names_);
  unsynced_.clear();
}

void FaultyNode::ApplySome(Survival& survival, Names* to) const {
  std::set<std::string> lost;
  for (const NameChange& change : unsynced_) {
    const bool depends =
        std::any_of(change.begin(), change.end(), [&](const auto& effect) { return lost.contains(effect.first); });
    if (!depends && survival.Survives()) {
      Apply(change, to);
    } else {
      for (const auto& effect : change) lost.insert(effect.first);
    }
  }
}

std::shared_ptr<FaultyNode> FaultyNode::AfterCrash(Survival& survival) const {
  auto after = std::make_shared<FaultyNode>(directory);
  after->content = content.AfterCrash(survival);
  Names survivors = durable_names_;
  ApplySome(survival, &survivors);
  for (const auto& [name, node] : survivors) after->names[name] = node->AfterCrash(survival);
  after->durable_names_ = after->names;
  return after;
}

}  // namespace gannet::log::internal
