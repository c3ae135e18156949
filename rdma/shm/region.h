// Region: this process's mapping of the memory that a shm cluster shares.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/status.h"
#include "rdma/heap_parts.h"
#include "rdma/shm/layout.h"

namespace gannet::rdma::shm {

class Region {
 public:
  // Makes memory that is private to this process, in huge pages where the kernel grants them.
  static StatusOr<std::shared_ptr<Region>> Anonymous(const ShmOptions& options);
  // A new file, which is removed with the returned object; AlreadyExists if the path does.
  static StatusOr<std::shared_ptr<Region>> CreateFile(const std::string& path, const ShmOptions& options);
  static StatusOr<std::shared_ptr<Region>> OpenFile(const std::string& path);
  // Opens the file as ShmFabric::Share does. A file is in use if a process holds its lock; the kernel releases the lock
  // of a process that ends.
  static StatusOr<std::shared_ptr<Region>> ShareFile(const std::string& path, const ShmOptions& options);

  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  const ClusterHeader& header() const { return *reinterpret_cast<const ClusterHeader*>(base_); }
  int num_nodes() const { return static_cast<int>(geometry_.num_nodes); }
  uint64_t bytes_per_node() const { return geometry_.bytes_per_node; }
  uint64_t writable_offset() const {
    return WritableOffset(kHeapOffset, bytes_per_node(), static_cast<uint32_t>(header().read_only_percent));
  }
  NodeControl& control(NodeId node) const {
    return reinterpret_cast<NodeControl*>(base_ + geometry_.controls_offset())[node];
  }
  ChannelArea& channel(NodeId node, int index) const {
    return reinterpret_cast<ChannelArea*>(base_ + geometry_.channels_offset())[node * kShmChannelSlots + index];
  }
  std::byte* memory(NodeId node) const { return base_ + geometry_.memory_offset() + node * geometry_.memory_stride(); }

  uint64_t memory_stride() const { return geometry_.memory_stride(); }

  bool in_file() const { return fd_ >= 0; }

  // Zeroes a node's memory and returns its pages to the kernel.
  Status Clear(NodeId node);
  // Zeroes whole pages of a node's memory and returns them. False: nothing has changed.
  bool GiveBack(std::span<std::byte> pages);

  // Held while a node is attached, or its torn lines are finished, by one thread of one process at a time.
  class AttachLock {
   public:
    // Unavailable: another process (one that was stopped in Attach) has held it for many seconds.
    static StatusOr<std::unique_ptr<AttachLock>> Take(Region* region);
    // Null if it is held.
    static std::unique_ptr<AttachLock> TryTake(Region* region);
    ~AttachLock();
    AttachLock(const AttachLock&) = delete;
    AttachLock& operator=(const AttachLock&) = delete;

   private:
    explicit AttachLock(Region* region) : region_(region) {}
    Region* region_;
  };

 private:
  Region() = default;
  // `used_together`: the last process that has it removes it, not the first; Aborted if the path exists.
  static StatusOr<std::shared_ptr<Region>> Make(const std::string& path, const ShmOptions& options, bool used_together);
  // Takes over `fd`, which is open on `path`.
  static StatusOr<std::shared_ptr<Region>> Adopt(int fd, const std::string& path);
  // One attempt of ShareFile. Aborted: another process tries at the same time.
  static StatusOr<std::shared_ptr<Region>> TryToShare(const std::string& path, const ShmOptions& options);
  Status MustAgree(const std::string& path, const ShmOptions& options) const;
  bool TryLock();
  Status Map(int flags);
  void WriteHeader(const ShmOptions& options);

  Geometry geometry_{};
  std::byte* base_ = nullptr;
  std::byte* mapping_ = nullptr;  // base_ may be some way into it, for alignment
  size_t mapping_bytes_ = 0;
  int fd_ = -1;
  std::string unlink_path_;
  std::string shared_path_;  // unlinked by the last process
  std::mutex attach_mutex_;
};

}  // namespace gannet::rdma::shm
