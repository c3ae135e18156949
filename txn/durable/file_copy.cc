#include "txn/durable/file_copy.h"

#include <memory>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/stop.h"
#include "log/file/aligned_buffer.h"
#include "log/format/little_endian.h"

namespace gannet::txn {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

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
  log::AlignedBuffer buffer(kChunkBytes);
  for (uint64_t end = *size; end > 0;) {
    GANNET_RETURN_IF_ERROR(CheckStop(stop, "files were copied"));
    const uint64_t begin = (end - 1) / kChunkBytes * kChunkBytes;
    const std::span chunk = buffer.span().first(end - begin);
    const StatusOr<size_t> got = (*source)->Read(begin, chunk);
    if (!got.ok()) return got.status();
    if (*got != chunk.size())
      return absl::DataLossError(absl::StrFormat("%s became shorter while it was copied", from));
    if (!log::AllZero(chunk)) GANNET_RETURN_IF_ERROR((*target)->Write(begin, chunk));
    end = begin;
  }
  return (*target)->Sync();
}

Status EmptyTree(log::FileSystem& files, const std::string& directory) {
  const StatusOr<std::vector<std::string>> names = files.List(directory);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const std::string path = absl::StrCat(directory, "/", name);
    // A file cannot be listed.
    if (files.List(path).ok()) GANNET_RETURN_IF_ERROR(EmptyTree(files, path));
    GANNET_RETURN_IF_ERROR(files.Remove(path));
  }
  return absl::OkStatus();
}

}  // namespace gannet::txn
