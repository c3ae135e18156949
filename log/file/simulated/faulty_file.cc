// Files of FaultyFileSystem.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/thread.h"
#include "log/file/simulated/faulty_file_system.h"

namespace gannet::log {
namespace {

constexpr std::array<const char*, static_cast<size_t>(DiskOperation::kCount)> kOperationNames = {
    "opening",          "reading", "writing",  "syncing",  "allocating space for",
    "making directory", "listing", "removing", "renaming", "syncing directory"};

}  // namespace

class FaultyFile final : public File {
 public:
  FaultyFile(FaultyFileSystem* files, std::string path, std::shared_ptr<internal::FaultyNode> node, bool writable)
      : files_(files), path_(std::move(path)), node_(std::move(node)), writable_(writable) {
    power_cycle_ = files_->power_cycle_;
  }

  Status Write(uint64_t offset, std::span<const std::byte> data) override {
    GANNET_CHECK(offset % kDiskBlockBytes == 0 && data.size() % kDiskBlockBytes == 0 &&
                     reinterpret_cast<uintptr_t>(data.data()) % kDiskBlockBytes == 0,
                 "%s: offset=%d bytes=%d address=%p", path_, offset, data.size(), data.data());
    Guard guard(this, DiskOperation::kWrite);
    if (!guard.status.ok()) return guard.status;
    if (!writable_) return ReadOnly();
    if (guard.fault == Fault::kError) return FaultyFileSystem::InjectedError(DiskOperation::kWrite, path_);
    GANNET_RETURN_IF_ERROR(files_->Grow(node_.get(), offset + data.size(), path_));
    if (guard.fault == Fault::kShortWrite) {
      const size_t sectors = data.size() / internal::FaultyContent::kSectorBytes;
      const size_t done = files_->random_.Below(sectors + 1) * internal::FaultyContent::kSectorBytes;
      node_->content.WritePart(offset, data, done);
      return absl::DataLossError(absl::StrCat("writing ", path_, " at ", offset, ": only ", done, " of ", data.size(),
                                              " bytes were written (injected); write the data to another file"));
    }
    node_->content.Write(offset, data);
    return absl::OkStatus();
  }

  Status Sync() override {
    Guard guard(this, DiskOperation::kSync);
    if (!guard.status.ok()) return guard.status;
    if (guard.fault != Fault::kNone) {
      node_->content.FailSync(files_->random_);
      return FaultyFileSystem::InjectedError(DiskOperation::kSync, path_);
    }
    node_->content.Sync();
    return absl::OkStatus();
  }

  Status WriteDurably(uint64_t offset, std::span<const std::byte> data) override {
    GANNET_RETURN_IF_ERROR(Write(offset, data));
    return Sync();
  }

  StatusOr<size_t> Read(uint64_t offset, std::span<std::byte> out) override {
    Guard guard(this, DiskOperation::kRead);
    if (!guard.status.ok()) return guard.status;
    if (guard.fault == Fault::kError) return FaultyFileSystem::InjectedError(DiskOperation::kRead, path_);
    const size_t bytes = node_->content.Read(offset, out);
    if (guard.fault == Fault::kBitFlip && bytes > 0) {
      out[files_->random_.Below(bytes)] ^= std::byte{1} << files_->random_.Below(8);
    }
    return bytes;
  }

  Status Allocate(uint64_t bytes) override {
    Guard guard(this, DiskOperation::kAllocate);
    if (!guard.status.ok()) return guard.status;
    if (!writable_) return ReadOnly();
    GANNET_CHECK(bytes % kDiskBlockBytes == 0 && bytes >= node_->content.size(), "%s: bytes=%d size=%d", path_, bytes,
                 node_->content.size());
    if (guard.fault != Fault::kNone) return FaultyFileSystem::InjectedError(DiskOperation::kAllocate, path_);
    return files_->Grow(node_.get(), bytes, path_);
  }

  StatusOr<uint64_t> Size() override {
    const std::lock_guard lock(files_->mutex_);
    GANNET_RETURN_IF_ERROR(Alive());
    return node_->content.size();
  }

  const std::string& path() const override { return path_; }
  void Renamed(const std::string& path) override { path_ = path; }

 private:
  using Fault = FaultyFileSystem::Fault;

  // Holds the file system's lock for one operation on this file.
  struct Guard {
    Guard(FaultyFile* file, DiskOperation operation) {
      status = file->files_->Begin(operation, file->path_, &lock, &fault);
      if (status.ok()) status = file->Alive();
    }
    std::unique_lock<Mutex> lock;
    Fault fault = Fault::kNone;
    Status status;
  };

  Status Alive() const {
    if (files_->powered_ && power_cycle_ == files_->power_cycle_) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(path_, ": was open when the power went; open it again"));
  }
  Status ReadOnly() const {
    return absl::PermissionDeniedError(absl::StrCat(path_, ": is open for reading; only a new file can be written"));
  }

  FaultyFileSystem* files_;
  std::string path_;
  const std::shared_ptr<internal::FaultyNode> node_;
  const bool writable_;
  uint64_t power_cycle_ = 0;
};

std::unique_ptr<File> FaultyFileSystem::NewFile(const std::string& path, std::shared_ptr<Node> node, bool writable) {
  return std::make_unique<FaultyFile>(this, path, std::move(node), writable);
}

Status FaultyFileSystem::InjectedError(DiskOperation operation, const std::string& path) {
  return absl::DataLossError(absl::StrCat(kOperationNames[static_cast<size_t>(operation)], " ", path,
                                          ": injected I/O error; give this file up and write the data to another"));
}

}  // namespace gannet::log
