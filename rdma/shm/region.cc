#include "rdma/shm/region.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "rdma/heap_parts.h"

namespace gannet::rdma::shm {
namespace {

constexpr auto kLongestAttach = std::chrono::seconds(10);

Status CheckOptions(const ShmOptions& options) {
  if (options.num_nodes < 1 || options.num_nodes > kMaxShmNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shm cluster has 1 to ", kMaxShmNodes, " nodes, not ", options.num_nodes));
  }
  if (options.bytes_per_node <= kHeapOffset || options.bytes_per_node > GlobalAddress::kOffsetMask / kMaxShmNodes) {
    return absl::InvalidArgumentError(absl::StrCat("a node cannot have ", options.bytes_per_node,
                                                   " bytes of memory; it has from ", kHeapOffset + 1, " to ",
                                                   GlobalAddress::kOffsetMask / kMaxShmNodes));
  }
  return CheckReadOnlyPercent(options.read_only_percent);
}

Status SystemError(const std::string& what) {
  return absl::ErrnoToStatus(errno, what);
}

// Each process that maps a memory file holds a read lock on its first byte, so the holder of the write lock knows that
// no other process maps it. The lock belongs to the open file, not to the process: the kernel drops it when the last
// copy of `fd` is closed, at the latest when the process ends.
struct flock UseLock(int type) {
  struct flock lock {};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return lock;
}

// Does not wait. If it fails, a held read lock stays as it was.
bool LockUse(int fd, int type) {
  struct flock lock = UseLock(type);
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool OthersUse(int fd) {
  struct flock lock = UseLock(F_WRLCK);
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// True if `path` still names the open file.
bool IsAt(int fd, const std::string& path) {
  struct stat open_file {};
  struct stat named {};
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 && open_file.st_dev == named.st_dev &&
         open_file.st_ino == named.st_ino;
}

Geometry GeometryOf(const ShmOptions& options) {
  return {static_cast<uint64_t>(options.num_nodes), RoundUp(options.bytes_per_node, kPageBytes)};
}

}  // namespace

StatusOr<std::shared_ptr<Region>> Region::Anonymous(const ShmOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckOptions(options));
  std::shared_ptr<Region> region(new Region);
  region->geometry_ = GeometryOf(options);
  GANNET_RETURN_IF_ERROR(region->Map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE));
  region->WriteHeader(options);
  return region;
}

StatusOr<std::shared_ptr<Region>> Region::CreateFile(const std::string& path, const ShmOptions& options) {
  StatusOr<std::shared_ptr<Region>> region = Make(path, options, /*used_together=*/false);
  if (!absl::IsAborted(region.status())) return region;
  return absl::AlreadyExistsError(absl::StrCat("the memory file ", path, " exists: join it, or remove it first"));
}

StatusOr<std::shared_ptr<Region>> Region::Make(const std::string& path, const ShmOptions& options, bool used_together) {
  GANNET_RETURN_IF_ERROR(CheckOptions(options));
  std::shared_ptr<Region> region(new Region);
  region->geometry_ = GeometryOf(options);
  // The file gets its name after its header is written, so a process that opens it finds it complete.
  static std::atomic<uint64_t> made{0};  // number of files made by this process
  const std::string unfinished = absl::StrCat(path, ".", getpid(), ".", ++made, ".unfinished");
  region->fd_ = open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (region->fd_ < 0) return SystemError(absl::StrCat("cannot create the memory file ", unfinished));
  region->unlink_path_ = unfinished;
  if (!LockUse(region->fd_, F_RDLCK)) return SystemError(absl::StrCat("cannot lock the memory file ", unfinished));
  if (ftruncate(region->fd_, static_cast<off_t>(region->geometry_.total_bytes())) != 0) {
    return SystemError(absl::StrCat("cannot make ", unfinished, " ", region->geometry_.total_bytes(), " bytes long"));
  }
  GANNET_RETURN_IF_ERROR(region->Map(MAP_SHARED | MAP_NORESERVE));
  region->WriteHeader(options);
  if (link(unfinished.c_str(), path.c_str()) != 0) {
    if (errno == EEXIST) return absl::AbortedError("it exists");
    return SystemError(absl::StrCat("cannot create the memory file ", path));
  }
  if (unlink(unfinished.c_str()) != 0) return SystemError(absl::StrCat("cannot remove ", unfinished));
  region->unlink_path_ = used_together ? "" : path;
  region->shared_path_ = used_together ? path : "";
  return region;
}

StatusOr<std::shared_ptr<Region>> Region::OpenFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return SystemError(absl::StrCat("cannot open the memory file ", path));
  StatusOr<std::shared_ptr<Region>> region = Adopt(fd, path);
  if (region.ok() && !LockUse(fd, F_RDLCK)) {
    return absl::UnavailableError(absl::StrCat("the memory file ", path, " is being removed"));
  }
  return region;
}

StatusOr<std::shared_ptr<Region>> Region::ShareFile(const std::string& path, const ShmOptions& options) {
  const auto deadline = std::chrono::steady_clock::now() + kLongestAttach;
  for (;;) {
    StatusOr<std::shared_ptr<Region>> region = TryToShare(path, options);
    if (!absl::IsAborted(region.status())) return region;
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::UnavailableError(
          absl::StrCat("the memory file ", path, " comes and goes: other processes start and end all the time"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

StatusOr<std::shared_ptr<Region>> Region::TryToShare(const std::string& path, const ShmOptions& options) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return Make(path, options, /*used_together=*/true);
  if (fd < 0) return SystemError(absl::StrCat("cannot open the memory file ", path));
  StatusOr<std::shared_ptr<Region>> region = Adopt(fd, path);
  if (!region.ok()) return region.status();
  if (LockUse(fd, F_WRLCK)) {  // no process maps it, and none can begin to
    if (IsAt(fd, path) && unlink(path.c_str()) != 0) return SystemError(absl::StrCat("cannot remove ", path));
    return absl::AbortedError("it was left over");
  }
  // It may have been removed, or have lost its last user, before we had the lock.
  if (!LockUse(fd, F_RDLCK) || !IsAt(fd, path) || !OthersUse(fd)) return absl::AbortedError("it is being removed");
  GANNET_RETURN_IF_ERROR((*region)->MustAgree(path, options));
  (*region)->shared_path_ = path;
  return region;
}

Status Region::MustAgree(const std::string& path, const ShmOptions& options) const {
  const auto differ = [&](absl::string_view what, uint64_t there, uint64_t here) {
    return absl::FailedPreconditionError(absl::StrCat("the processes that use the memory file ", path, " have ", what,
                                                      " ", there, ", this one has ", here));
  };
  const ClusterHeader& there = header();
  const Geometry here = GeometryOf(options);
  if (there.protocol != options.protocol) return differ("protocol version", there.protocol, options.protocol);
  if (there.num_nodes != here.num_nodes) return differ("a cluster of nodes:", there.num_nodes, here.num_nodes);
  if (there.bytes_per_node != here.bytes_per_node) {
    return differ("bytes of memory per node:", there.bytes_per_node, here.bytes_per_node);
  }
  if (there.read_only_percent != options.read_only_percent) {
    return differ("percent of read-only memory:", there.read_only_percent, options.read_only_percent);
  }
  if (there.configuration != options.configuration) {
    return differ("a configuration with hash", there.configuration, options.configuration);
  }
  return absl::OkStatus();
}

StatusOr<std::shared_ptr<Region>> Region::Adopt(int fd, const std::string& path) {
  std::shared_ptr<Region> region(new Region);
  region->fd_ = fd;
  ClusterHeader header{};
  struct stat file {};
  if (pread(region->fd_, &header, sizeof header, 0) != sizeof header || header.magic != kMagic ||
      fstat(region->fd_, &file) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a memory file of Gannet"));
  }
  region->geometry_ = {header.num_nodes, header.bytes_per_node};
  const ShmOptions described{.num_nodes = static_cast<int>(header.num_nodes),
                             .bytes_per_node = header.bytes_per_node,
                             .read_only_percent = static_cast<uint32_t>(header.read_only_percent)};
  if (header.format_version != kFormatVersion || header.num_nodes > kMaxShmNodes || !CheckOptions(described).ok() ||
      static_cast<uint64_t>(file.st_size) != region->geometry_.total_bytes()) {
    return absl::FailedPreconditionError(absl::StrCat(path, " has format ", header.format_version,
                                                      " of Gannet's memory file; this program needs format ",
                                                      kFormatVersion, " and the size that goes with it"));
  }
  GANNET_RETURN_IF_ERROR(region->Map(MAP_SHARED | MAP_NORESERVE));
  return region;
}

Region::~Region() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
  if (!unlink_path_.empty()) unlink(unlink_path_.c_str());
  // Drop the read lock first: if two processes leave at once, each would find the other's lock, and neither would
  // remove the file.
  if (!shared_path_.empty() && LockUse(fd_, F_UNLCK) && LockUse(fd_, F_WRLCK) && IsAt(fd_, shared_path_)) {
    unlink(shared_path_.c_str());
  }
  if (fd_ >= 0) close(fd_);
}

Status Region::Map(int flags) {
  // Huge pages need an aligned address, which mmap does not guarantee. Reserve more, and use the aligned part.
  mapping_bytes_ = geometry_.total_bytes() + kHugePageBytes;
  void* mapping = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    if (errno != ENOMEM) return SystemError(absl::StrCat("cannot reserve ", mapping_bytes_, " bytes of address space"));
    return absl::ResourceExhaustedError(
        absl::StrCat("no address space for the ", mapping_bytes_,
                     " bytes of the nodes; raise the limit of this process (ulimit -v), or give nodes less memory"));
  }
  mapping_ = static_cast<std::byte*>(mapping);
  std::byte* aligned = mapping_ + (kHugePageBytes - reinterpret_cast<uintptr_t>(mapping_) % kHugePageBytes);
  if (mmap(aligned, geometry_.total_bytes(), PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd_, 0) == MAP_FAILED) {
    return SystemError(absl::StrCat("cannot map ", geometry_.total_bytes(), " bytes of shared memory"));
  }
  base_ = aligned;
  // This is only advice: without huge pages in the kernel or the file system, small pages work, too.
  (void)madvise(memory(0), geometry_.num_nodes * geometry_.memory_stride(), MADV_HUGEPAGE);
  return absl::OkStatus();
}

void Region::WriteHeader(const ShmOptions& options) {
  *reinterpret_cast<ClusterHeader*>(base_) = {.magic = kMagic,
                                              .format_version = kFormatVersion,
                                              .num_nodes = geometry_.num_nodes,
                                              .bytes_per_node = geometry_.bytes_per_node,
                                              .read_only_percent = options.read_only_percent,
                                              .adversarial = options.adversarial,
                                              .seed = options.seed,
                                              .protocol = options.protocol,
                                              .configuration = options.configuration};
}

// Both DONTNEED for private pages and REMOVE for a file's pages leave zeros.
bool Region::GiveBack(std::span<std::byte> pages) {
  return madvise(pages.data(), pages.size(), in_file() ? MADV_REMOVE : MADV_DONTNEED) == 0;
}

Status Region::Clear(NodeId node) {
  if (!GiveBack({memory(node), geometry_.memory_stride()})) {
    return SystemError(absl::StrCat("cannot clear the memory of node ", node));
  }
  return absl::OkStatus();
}

bool Region::TryLock() {
  if (!attach_mutex_.try_lock()) return false;
  if (!in_file() || flock(fd_, LOCK_EX | LOCK_NB) == 0) return true;
  attach_mutex_.unlock();
  return false;
}

StatusOr<std::unique_ptr<Region::AttachLock>> Region::AttachLock::Take(Region* region) {
  const auto deadline = std::chrono::steady_clock::now() + kLongestAttach;
  while (!region->TryLock()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::UnavailableError("another process has been attaching a node for too long: is one of them stopped?");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::unique_ptr<AttachLock>(new AttachLock(region));
}

std::unique_ptr<Region::AttachLock> Region::AttachLock::TryTake(Region* region) {
  return region->TryLock() ? std::unique_ptr<AttachLock>(new AttachLock(region)) : nullptr;
}

Region::AttachLock::~AttachLock() {
  if (region_->in_file()) flock(region_->fd_, LOCK_UN);
  region_->attach_mutex_.unlock();
}

}  // namespace gannet::rdma::shm
