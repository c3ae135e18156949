// A file that is proven writable long before its contents exist.
#pragma once

#include <optional>
#include <string>

#include "rdma/base/status.h"

namespace gannet::cli {

class OutputFile {
 public:
  // Opens or creates the file without touching what it holds. InvalidArgument says why that is not possible.
  static StatusOr<OutputFile> Open(const std::string& path);
  // A file that Open created and nobody wrote is removed again.
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  // Replaces the contents. Once.
  Status Write(const std::string& contents);

 private:
  OutputFile(std::string path, int file, bool created) : path_(std::move(path)), file_(file), created_(created) {}

  std::string path_;
  int file_;  // -1: closed
  bool created_;
};

// The file that flag `flag` names; nothing if `path` is empty. InvalidArgument names the flag and says what to do.
StatusOr<std::optional<OutputFile>> OpenOutput(const std::string& flag, const std::string& path);

}  // namespace gannet::cli
