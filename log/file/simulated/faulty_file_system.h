// A disk in memory that fails in every way a disk does; for tests and simulation. It keeps the contract of
// file_system.h and nothing more: data that the contract does not promise to survive a crash is lost at random.
//
//   FaultyFileSystem disk(seed);
//   ... run something on it, with faults ...
//   disk.Crash();                          the power goes and comes back; open files and locks are dead
//   auto other = disk.CrashedCopy(seed);   or: one of the disks that a crash at this moment might leave
//
// Faults:
//   power cut         of unsynced writes any set of 512-byte sectors survives, in any order: torn and reordered writes,
//                     a file's length without its content and the other way round. A file's name survives when its
//                     directory was synced, whether or not the file was; unsynced removals and renames may come undone.
//   write error       DataLoss; none of the data is written.
//   short write       DataLoss; a random number of sectors is written.
//   read error        DataLoss.
//   sync error        DataLoss; every unsynced block is lost or not, reads may show the new content or the old, and the
//                     next Sync succeeds all the same (as Linux has it: a failed fsync leaves the pages clean).
//                     The same holds for directories.
//   full disk         ResourceExhausted, when files would take more than `capacity_bytes`.
//   read bit flip     one bit of what was read is wrong; the medium is sound.
//   bit rot           FlipBit: one bit on the medium is wrong from now on.
//   slow disk         `before` is called before every operation and may sleep, or block until a test releases it.
//
// All randomness comes from one seed: with one thread the same calls give the same faults. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "base/thread.h"
#include "log/file/file_system.h"
#include "log/file/simulated/faulty_disk.h"

namespace gannet::log {

// WriteDurably counts as a write and then a sync.
enum class DiskOperation : uint8_t {
  kOpen,
  kRead,
  kWrite,
  kSync,
  kAllocate,
  kMakeDirectory,
  kList,
  kRemove,
  kRename,
  kSyncDirectory,
  kCount,
};

struct FaultOptions {
  uint64_t capacity_bytes = std::numeric_limits<uint64_t>::max();
  // One in this many operations fails, at random. 0: none; 1: all.
  uint64_t write_error_one_in = 0;
  uint64_t short_write_one_in = 0;
  uint64_t read_error_one_in = 0;
  uint64_t read_bit_flip_one_in = 0;
  uint64_t sync_error_one_in = 0;  // of files and directories
  // Called outside the file system's own lock, by the thread that performs the operation.
  std::function<void(DiskOperation operation, const std::string& path)> before = nullptr;
};

// A failure of a certain operation.
struct ScheduledFault {
  DiskOperation operation = DiskOperation::kWrite;
  uint64_t after = 0;           // this many operations, from now on, pass first
  uint64_t times = 1;           // then this many fail
  std::string path_contains{};  // only operations whose path contains this count
  bool short_write = false;     // for writes: part of the data is written
};

class FaultyFileSystem final : public FileSystem {
 public:
  explicit FaultyFileSystem(uint64_t seed, FaultOptions options = {});
  ~FaultyFileSystem() override;

  // The root directory "/" exists from the start; paths begin with it.
  StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  Status MakeDirectory(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& directory) override;
  Status Remove(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status SyncDirectory(const std::string& path) override;
  StatusOr<uint64_t> FreeBytes(const std::string& directory) override;
  StatusOr<std::shared_ptr<void>> Lock(const std::string& directory) override;
  std::string Description() const override;

  void SetOptions(FaultOptions options);
  void SetCapacity(uint64_t bytes);
  void Schedule(ScheduledFault fault);
  // Removes scheduled faults and resets the options so that they cause none, except for the capacity.
  void Heal();

  // Every operation fails with Unavailable until PowerOn, which decides what has survived. Files and locks that are
  // open now fail permanently. In between, the program that used the disk can be torn down without changing the disk.
  void PowerOff();
  void PowerOn();
  void Crash() {
    PowerOff();
    PowerOn();
  }
  // Kills the programs that use the disk, while the power stays on: files and locks that are open now fail permanently,
  // and no data is lost.
  void KillPrograms();
  // Returns a disk without faults, as a crash now might leave it. This disk continues.
  std::unique_ptr<FaultyFileSystem> CrashedCopy(uint64_t seed) const;
  // All disks that a crash now might leave: each combination of unsynced sectors, lengths and names. If there are more
  // than `most`, that many at random, from `seed` on.
  std::vector<std::unique_ptr<FaultyFileSystem>> CrashedCopies(size_t most, uint64_t seed) const;

  // Flips a bit (0..7) on the medium. NotFound: no such file. OutOfRange: beyond its end.
  Status FlipBit(const std::string& path, uint64_t offset, int bit);
  // Flips a random bit of [begin, end); returns the offset of its byte.
  StatusOr<uint64_t> FlipRandomBit(const std::string& path, uint64_t begin, uint64_t end);

  // Number of operations begun, including failed ones.
  uint64_t operations(DiskOperation operation) const;
  // Number of faults so far, without full disks.
  uint64_t faults() const;

 private:
  friend class FaultyFile;
  using Node = internal::FaultyNode;
  enum class Fault : uint8_t { kNone, kError, kShortWrite, kBitFlip };
  struct Place {  // target of a path
    std::shared_ptr<Node> parent;
    std::string name;
    std::shared_ptr<Node> node;  // null: no such name
  };

  // Work before every operation: the callback, the lock, the check of the power, and the choice of a fault.
  Status Begin(DiskOperation operation, const std::string& path, std::unique_lock<Mutex>* lock, Fault* fault);
  Fault DrawFault(DiskOperation operation, const std::string& path);
  bool Chance(uint64_t one_in) { return one_in != 0 && random_.OneIn(one_in); }
  StatusOr<Place> Find(const std::string& path) const;
  StatusOr<std::shared_ptr<Node>> FindDirectory(const std::string& path) const;
  // The caller holds the lock.
  std::unique_ptr<File> NewFile(const std::string& path, std::shared_ptr<Node> node, bool writable);
  static Status InjectedError(DiskOperation operation, const std::string& path);
  // Makes the file at least `bytes` long, if there is room.
  Status Grow(Node* node, uint64_t bytes, const std::string& path);
  void Unlink(const std::shared_ptr<Node>& node);

  mutable Mutex mutex_;
  Random random_;
  FaultOptions options_;
  std::vector<ScheduledFault> scheduled_;
  std::shared_ptr<Node> root_;
  std::shared_ptr<std::set<std::string>> locked_;
  uint64_t used_bytes_ = 0;
  uint64_t power_cycle_ = 0;  // files of an earlier cycle are dead
  bool powered_ = true;
  uint64_t faults_ = 0;
  std::array<uint64_t, static_cast<size_t>(DiskOperation::kCount)> operations_{};
};

}  // namespace gannet::log
