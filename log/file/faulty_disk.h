// What FaultyFileSystem knows of a disk: of every file the content that is safe and what was written since, of every
// directory the names that are safe and what was changed since. No locks, no errors: faulty_file_system.cc has those.
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

// Which of the unsynced things a crash lets survive: one chance for all of them, drawn once per crash and often 0 or 1,
// so that "nothing of it", "all of it" and every mixture occur.
class Survival {
 public:
  explicit Survival(Random* random);
  bool Survives() { return random_->Below(8) < eighths_; }
  Random& random() { return *random_; }

 private:
  Random* random_;
  uint64_t eighths_;
};

// The content of one file.
class FaultyContent {
 public:
  static constexpr size_t kSectorBytes = 512;

  uint64_t size() const { return size_; }
  // Grows only; the new part is zeros.
  void Grow(uint64_t size);
  // Aligned to blocks and within the size.
  void Write(uint64_t offset, std::span<const std::byte> data);
  // The first `bytes` (a multiple of sectors) of an aligned write.
  void WritePart(uint64_t offset, std::span<const std::byte> data, size_t bytes);
  size_t Read(uint64_t offset, std::span<std::byte> out) const;
  void Sync();
  // A failed sync. Of every unsynced block, one of these: it is on disk after all; it is lost, and reads give what the
  // disk has; it is lost, but reads give the new content until the crash. In the last two the disk has a mixture of old
  // and new sectors. Nothing is unsynced any more, so that the next Sync succeeds without bringing anything back.
  void FailSync(Random& random);
  // On the medium, so that it is there before and after a crash.
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
  // All of it happens or nothing. A null node: the name is gone.
  using NameChange = std::vector<std::pair<std::string, std::shared_ptr<FaultyNode>>>;

  explicit FaultyNode(bool is_directory) : directory(is_directory) {}

  // Of a directory:
  void Change(NameChange change);
  void SyncNames();
  // A failed sync: some of the changes are on disk, the others are lost at the next crash even if a sync succeeds.
  void FailSyncNames(Random& random);

  // What a crash leaves of this and everything below.
  std::shared_ptr<FaultyNode> AfterCrash(Survival& survival) const;

  const bool directory;
  bool linked = true;     // has a name; its size counts
  FaultyContent content;  // of a file
  Names names;

 private:
  // Applies a random part of the unsynced changes. A change of a name whose earlier change did not survive does not
  // survive either: file systems may reorder what is independent, but not that.
  void ApplySome(Survival& survival, Names* to) const;

  Names durable_names_;
  std::vector<NameChange> unsynced_;
};

}  // namespace gannet::log::internal
