// Small files that are replaced as a whole. On disk:
//
//   content | "\ngannet-crc32c <8 hex digits> <bytes of the content>\n" | zeros to a multiple of kDiskBlockBytes
//
// The content may be any bytes. The line is readable text, so a text file stays readable.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"
#include "log/file/file_system.h"

namespace gannet::log {

// The content is written to `path`.tmp and synced, the file is renamed, and the directory is synced.
Status ReplaceWholeFile(FileSystem& files, const std::string& path, std::span<const std::byte> content);
// DataLoss, naming the file, if the checksum does not match.
StatusOr<std::string> ReadWholeFile(FileSystem& files, const std::string& path);

}  // namespace gannet::log
