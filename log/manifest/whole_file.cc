#include "log/manifest/whole_file.h"

#include <cstring>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "log/file/aligned_buffer.h"
#include "log/file/kill_point.h"
#include "log/format/crc32c.h"
#include "log/format/segment_format.h"

namespace gannet::log {
namespace {

constexpr std::string_view kMark = "\ngannet-crc32c ";

std::string Trailer(std::span<const std::byte> content) {
  return absl::StrFormat("%s%08x %d\n", absl::string_view(kMark.data(), kMark.size()), Crc32c(content), content.size());
}

Status Damaged(const std::string& path, const std::string& what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what, "; the file is damaged, restore it from a backup"));
}

Status WriteNew(FileSystem& files, const std::string& path, std::span<const std::byte> content) {
  const std::string trailer = Trailer(content);
  AlignedBuffer buffer(content.size() + trailer.size());
  if (!content.empty()) std::memcpy(buffer.data(), content.data(), content.size());
  std::memcpy(buffer.data() + content.size(), trailer.data(), trailer.size());
  StatusOr<std::unique_ptr<File>> file = files.Open(path, OpenMode::kCreate);
  if (!file.ok()) return file.status();
  return (*file)->WriteDurably(0, buffer.span());
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Status ReplaceWholeFile(FileSystem& files, const std::string& path, std::span<const std::byte> content) {
  const std::string temporary = path + ".tmp";
  // A crash may have left one.
  if (Status removed = files.Remove(temporary); !removed.ok() && !absl::IsNotFound(removed)) return removed;
  if (Status written = WriteNew(files, temporary, content); !written.ok()) {
    // The caller may need the space most. If this fails, the next replacement removes the file.
    files.Remove(temporary).IgnoreError();
    return written;
  }
  MayDieHere(KillPoint::kManifestWritten);
  GANNET_RETURN_IF_ERROR(files.Rename(temporary, path));
  MayDieHere(KillPoint::kManifestRenamed);
  return files.SyncDirectory(DirectoryOf(path));
}

StatusOr<std::string> ReadWholeFile(FileSystem& files, const std::string& path) {
  StatusOr<std::unique_ptr<File>> file = files.Open(path, OpenMode::kRead);
  if (!file.ok()) return file.status();
  const StatusOr<uint64_t> size = (*file)->Size();
  if (!size.ok()) return size.status();
  std::string text(*size, '\0');
  const StatusOr<size_t> read = (*file)->Read(0, std::as_writable_bytes(std::span(text)));
  if (!read.ok()) return read.status();
  text.resize(*read);
  text.resize(text.find_last_not_of('\0') + 1);  // npos + 1 is 0: all zeros

  const size_t mark = text.rfind(kMark);
  if (mark == std::string::npos) return Damaged(path, "the line with the checksum is missing at the end");
  const auto content = std::as_bytes(std::span(text)).first(mark);
  if (std::string_view(text).substr(mark) != Trailer(content)) return Damaged(path, "the checksum does not match");
  text.resize(mark);
  return text;
}

}  // namespace gannet::log
