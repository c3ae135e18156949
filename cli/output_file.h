// A file that is proven writable long before its contents exist.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "base/status.h"

namespace gannet::cli {

class OutputFile {
 public:
  // Opens or creates the file without touching what it holds. "-" is standard output. InvalidArgument says why that is
  // not possible.
  static StatusOr<OutputFile> Open(const std::string& path);
  // A file that Open created and nobody wrote is removed again.
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  // Replaces the contents. Once.
  Status Write(const std::string& contents);

  bool is_stdout() const { return is_stdout_; }

 private:
  OutputFile(std::string path, int file, bool created, bool is_stdout)
      : path_(std::move(path)), file_(file), created_(created), is_stdout_(is_stdout) {}

  std::string path_;
  int file_;  // -1: closed
  bool created_;
  bool is_stdout_;
};

// Where the report for people goes: standard output, unless a program reads JSON there; then standard error.
inline std::FILE* TextStream(const std::optional<OutputFile>& json) {
  return json.has_value() && json->is_stdout() ? stderr : stdout;
}

// InvalidArgument, with the reason, unless this process may make files in `directory` (empty: the working directory).
Status CheckMayMakeIn(const std::string& directory);

// InvalidArgument if `path` lies beside a MANIFEST: the file would replace a part of a database.
Status CheckNotInDatabase(const std::string& path);

// The file that flag `flag` names; nothing if `path` is empty. InvalidArgument names the flag and says what to do.
StatusOr<std::optional<OutputFile>> OpenOutput(const std::string& flag, const std::string& path);

}  // namespace gannet::cli
