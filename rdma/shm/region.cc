#include "rdma/shm/region.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"

namespace gannet::rdma::shm {
namespace {

constexpr auto kLongestAttach = std::chrono::seconds(10);

Status CheckOptions(const ShmOptions& options) {
  if (options.num_nodes < 1 || options.num_nodes > kMaxShmNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shm cluster has 1 to ", kMaxShmNodes, " nodes, not ", options.num_nodes));
  }
  if (options.bytes_per_node <= kHeapOffset || options.bytes_per_node > GlobalAddress::kOffsetMask / kMaxShmNodes) {
    return absl::InvalidArgumentError(absl::StrCat("a node cannot have ", options.bytes_per_node, " bytes of memory"));
  }
  return absl::OkStatus();
}

Status SystemError(const std::string& what) {
  return absl::ErrnoToStatus(errno, what);
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
  GANNET_RETURN_IF_ERROR(CheckOptions(options));
  std::shared_ptr<Region> region(new Region);
  region->geometry_ = GeometryOf(options);
  // The file gets its name only when its header is there, so whoever opens it finds it whole.
  const std::string unfinished = absl::StrCat(path, ".", getpid(), ".unfinished");
  region->fd_ = open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (region->fd_ < 0) return SystemError(absl::StrCat("cannot create the memory file ", unfinished));
  region->unlink_path_ = unfinished;
  if (ftruncate(region->fd_, static_cast<off_t>(region->geometry_.total_bytes())) != 0) {
    return SystemError(absl::StrCat("cannot make ", unfinished, " ", region->geometry_.total_bytes(), " bytes long"));
  }
  GANNET_RETURN_IF_ERROR(region->Map(MAP_SHARED | MAP_NORESERVE));
  region->WriteHeader(options);
  if (link(unfinished.c_str(), path.c_str()) != 0) {
    if (errno == EEXIST) {
      return absl::AlreadyExistsError(absl::StrCat("the memory file ", path, " exists: join it, or remove it first"));
    }
    return SystemError(absl::StrCat("cannot create the memory file ", path));
  }
  if (unlink(unfinished.c_str()) != 0) return SystemError(absl::StrCat("cannot remove ", unfinished));
  region->unlink_path_ = path;
  return region;
}

StatusOr<std::shared_ptr<Region>> Region::OpenFile(const std::string& path) {
  std::shared_ptr<Region> region(new Region);
  region->fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (region->fd_ < 0) return SystemError(absl::StrCat("cannot open the memory file ", path));
  ClusterHeader header{};
  struct stat file {};
  if (pread(region->fd_, &header, sizeof header, 0) != sizeof header || header.magic != kMagic ||
      fstat(region->fd_, &file) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a memory file of Gannet"));
  }
  region->geometry_ = {header.num_nodes, header.bytes_per_node};
  const ShmOptions described{.num_nodes = static_cast<int>(header.num_nodes), .bytes_per_node = header.bytes_per_node};
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
  if (fd_ >= 0) close(fd_);
}

Status Region::Map(int flags) {
  // Huge pages need an aligned address; mmap gives one only by luck, so ask for more and use the aligned part.
  mapping_bytes_ = geometry_.total_bytes() + kHugePageBytes;
  void* mapping = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return SystemError(absl::StrCat("cannot reserve ", mapping_bytes_, " bytes of address space"));
  }
  mapping_ = static_cast<std::byte*>(mapping);
  std::byte* aligned = mapping_ + (kHugePageBytes - reinterpret_cast<uintptr_t>(mapping_) % kHugePageBytes);
  if (mmap(aligned, geometry_.total_bytes(), PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd_, 0) == MAP_FAILED) {
    return SystemError(absl::StrCat("cannot map ", geometry_.total_bytes(), " bytes of shared memory"));
  }
  base_ = aligned;
  // Only a wish: a kernel without huge pages, or a file system that has none, works with small ones.
  (void)madvise(memory(0), geometry_.num_nodes * geometry_.memory_stride(), MADV_HUGEPAGE);
  return absl::OkStatus();
}

void Region::WriteHeader(const ShmOptions& options) {
  *reinterpret_cast<ClusterHeader*>(base_) = {.magic = kMagic,
                                              .format_version = kFormatVersion,
                                              .num_nodes = geometry_.num_nodes,
                                              .bytes_per_node = geometry_.bytes_per_node,
                                              .adversarial = options.adversarial,
                                              .seed = options.seed};
}

Status Region::Clear(NodeId node) {
  // DONTNEED of private pages and REMOVE of a file's pages both leave zeros.
  if (madvise(memory(node), geometry_.memory_stride(), in_file() ? MADV_REMOVE : MADV_DONTNEED) != 0) {
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
      return absl::UnavailableError("somebody else has been attaching a node for too long: is a process stopped?");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::unique_ptr<AttachLock>(new AttachLock(region));
}

Region::AttachLock::~AttachLock() {
  if (region_->in_file()) flock(region_->fd_, LOCK_UN);
  region_->attach_mutex_.unlock();
}

}  // namespace gannet::rdma::shm
