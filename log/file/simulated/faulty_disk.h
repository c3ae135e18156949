// The disk of a FaultyFileSystem: for every file the safe content and the writes since; for every directory the safe
// names and the changes since. It neither locks nor fails: faulty_file_system.cc does that.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "log/file/file_system.h"

namespace gannet::log::internal {

// The outcomes of a crash, one after the other: a list of choices that counts like an odometer. A choice that a crash
// does not come to (the name of a file is lost, so its content does not matter) is not in the list.
class CrashOutcome {
 public:
  // A number from 0 to `most`; 0 for a choice that was not met before.
  size_t Next(size_t most) {
    if (at_ == choices_.size()) choices_.push_back({0, most});
    return choices_[at_++].chosen;
  }
  // Goes to the next outcome; false: that was the last.
  bool Advance() {
    while (!choices_.empty() && choices_.back().chosen == choices_.back().most) choices_.pop_back();
    if (!choices_.empty()) ++choices_.back().chosen;
    at_ = 0;
    return !choices_.empty();
  }

 private:
  struct Choice {
    size_t chosen;
    size_t most;
  };
  std::vector<Choice> choices_;
  size_t at_ = 0;
};

// Decides which unsynced changes survive a crash: at random, or as an outcome says. At random, all have the same
// chance, drawn once per crash and often 0 or 1, so that no change, all changes and every mixture occur.
class Survival {
 public:
  explicit Survival(Random* random);
  explicit Survival(CrashOutcome* outcome) : outcome_(outcome) {}

  bool Survives() { return outcome_ != nullptr ? outcome_->Next(1) == 1 : random_->Below(8) < eighths_; }
  // The version that survives of `versions`, from the oldest (1) to the newest; 0: none of them.
  size_t Version(size_t versions);
  // True if all outcomes are wanted once, and not each with its probability.
  bool enumerates() const { return outcome_ != nullptr; }

 private:
  Random* random_ = nullptr;
  uint64_t eighths_ = 0;
  CrashOutcome* outcome_ = nullptr;
};

// The content of one file.
class FaultyContent {
 public:
  static constexpr size_t kSectorBytes = 512;

  uint64_t size() const { return size_; }
  // Grows only; the new part is zeros.
  void Grow(uint64_t size);
  // The write is aligned to blocks and within the size.
  void Write(uint64_t offset, std::span<const std::byte> data);
  // The first `bytes` (a multiple of sectors) of an aligned write.
  void WritePart(uint64_t offset, std::span<const std::byte> data, size_t bytes);
  size_t Read(uint64_t offset, std::span<std::byte> out) const;
  void Sync();
  // A failed sync. Each unsynced block has one of three fates: it is on disk after all; it is lost, and reads return
  // what the disk has; or it is lost, but reads return the new content until the crash. In the last two cases the disk
  // has a mixture of old and new sectors. No block counts as unsynced any more, so the next Sync succeeds without
  // recovering any.
  void FailSync(Random& random);
  // Flips a bit on the medium, so that the change is visible before and after a crash.
  void FlipBit(uint64_t offset, int bit);
  FaultyContent AfterCrash(Survival& survival) const;

 private:
  using Block = std::array<std::byte, kDiskBlockBytes>;
  using BlockPointer = std::shared_ptr<const Block>;  // null: zeros

  struct Page {
    BlockPointer durable;
    std::vector<BlockPointer> unsynced;     // written since the last sync, oldest first
    std::optional<BlockPointer> seen_only;  // what reads see after a failed sync, though the disk has `durable`
    const BlockPointer& seen() const;
  };

  void WriteBlock(uint64_t block, const std::byte* data, size_t bytes);
  static BlockPointer Mixture(const Page& page, Survival& survival);

  std::map<uint64_t, Page> pages_;
  std::set<uint64_t> unsynced_pages_;
  uint64_t size_ = 0;
  uint64_t durable_size_ = 0;
  std::vector<uint64_t> unsynced_sizes_;
};

// A file or a directory.
struct FaultyNode {
  using Names = std::map<std::string, std::shared_ptr<FaultyNode>>;
  // Changes that happen all or not at all. A null node: the name is removed.
  using NameChange = std::vector<std::pair<std::string, std::shared_ptr<FaultyNode>>>;

  explicit FaultyNode(bool is_directory) : directory(is_directory) {}

  // The functions below are for a directory.
  void Change(NameChange change);
  void SyncNames();
  // A failed sync: some changes are on disk; the others are lost at the next crash, even if a later sync succeeds.
  void FailSyncNames(Random& random);

  // Returns what a crash leaves of this node and all nodes below it.
  std::shared_ptr<FaultyNode> AfterCrash(Survival& survival) const;

  const bool directory;
  bool linked = true;     // has a name; its size counts
  FaultyContent content;  // of a file
  Names names;

 private:
  // Applies a random part of the unsynced changes. If a change of a name does not survive, later changes of that name
  // do not survive either: file systems may reorder independent changes only.
  void ApplySome(Survival& survival, Names* to) const;

  Names durable_names_;
  std::vector<NameChange> unsynced_;
};

}  // namespace gannet::log::internal
