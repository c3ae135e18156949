#include "txn/durable/file_copy.h"

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/stop.h"

namespace gannet::txn {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

struct AlignedDelete {
  void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{log::kDiskBlockBytes}); }
};
using AlignedBuffer = std::unique_ptr<std::byte[], AlignedDelete>;

AlignedBuffer MakeBuffer() {
  return AlignedBuffer(static_cast<std::byte*>(::operator new[](kChunkBytes, std::align_val_t{log::kDiskBlockBytes})));
}

bool AllZero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

Status CopyFileBackwards(log::FileSystem& files, const std::string& from, const std::string& to,
                         const std::atomic<bool>* stop) {
  const StatusOr<std::unique_ptr<log::File>> source = files.Open(from, log::OpenMode::kRead);
  if (!source.ok()) return source.status();
  const StatusOr<uint64_t> size = (*source)->Size();
  if (!size.ok()) return size.status();
  if (*size % log::kDiskBlockBytes != 0) {
    return absl::DataLossError(absl::StrFormat("%s has %d bytes, which is not a multiple of %d: it is incomplete", from,
                                               *size, log::kDiskBlockBytes));
  }
  const StatusOr<std::unique_ptr<log::File>> target = files.Open(to, log::OpenMode::kCreate);
  if (!target.ok()) return target.status();
  if (*size != 0) GANNET_RETURN_IF_ERROR((*target)->Allocate(*size));
  const AlignedBuffer buffer = MakeBuffer();
  for (uint64_t end = *size; end > 0;) {
    GANNET_RETURN_IF_ERROR(CheckStop(stop, "files were copied"));
    const uint64_t begin = (end - 1) / kChunkBytes * kChunkBytes;
    const std::span chunk(buffer.get(), end - begin);
    const StatusOr<size_t> got = (*source)->Read(begin, chunk);
    if (!got.ok()) return got.status();
    if (*got != chunk.size())
      return absl::DataLossError(absl::StrFormat("%s became shorter while it was copied", from));
    if (!AllZero(chunk)) GANNET_RETURN_IF_ERROR((*target)->Write(begin, chunk));
    end = begin;
  }
  return (*target)->Sync();
}

Status CopyFiles(log::FileSystem& files, const std::string& from, const std::string& to) {
  const StatusOr<std::vector<std::string>> names = files.List(from);
  if (!names.ok()) return names.status();
  GANNET_RETURN_IF_ERROR(files.MakeDirectory(to));
  for (const std::string& name : *names) {
    GANNET_RETURN_IF_ERROR(CopyFileBackwards(files, absl::StrCat(from, "/", name), absl::StrCat(to, "/", name)));
  }
  return files.SyncDirectory(to);
}

Status EmptyTree(log::FileSystem& files, const std::string& directory) {
  const StatusOr<std::vector<std::string>> names = files.List(directory);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const std::string path = absl::StrCat(directory, "/", name);
    // A file cannot be listed.
    GANNET_RETURN_IF_ERROR(files.List(path).ok() ? RemoveTree(files, path) : files.Remove(path));
  }
  return absl::OkStatus();
}

Status RemoveTree(log::FileSystem& files, const std::string& directory) {
  if (absl::IsNotFound(files.List(directory).status())) return absl::OkStatus();
  GANNET_RETURN_IF_ERROR(EmptyTree(files, directory));
  return files.Remove(directory);
}

}  // namespace gannet::txn
