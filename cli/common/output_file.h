// An output file that is known to be writable long before its content exists.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "base/status.h"

namespace gannet::cli {

class OutputFile {
 public:
  // Finds out that the file can be written, without changing it, or making it if there is none: a process that is
  // killed leaves no empty file. "-" is standard output. InvalidArgument says why the file cannot be written.
  static StatusOr<OutputFile> Open(const std::string& path);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  // Replaces the content. Call it once.
  Status Write(const std::string& contents);

  bool is_stdout() const { return is_stdout_; }

 private:
  OutputFile(std::string path, int file, bool is_stdout) : path_(std::move(path)), file_(file), is_stdout_(is_stdout) {}

  std::string path_;
  int file_;  // -1: Write makes it
  bool is_stdout_;
};

// Stream of the text report: standard output, unless `file` goes there; then standard error.
inline std::FILE* TextStream(const std::optional<OutputFile>& file) {
  return file.has_value() && file->is_stdout() ? stderr : stdout;
}

// InvalidArgument, with the reason, if this process may not make files in `directory` (empty: the working directory).
Status CheckMayMakeIn(const std::string& directory);

// InvalidArgument if `path` is next to a MANIFEST: the file could replace a part of a database.
Status CheckNotInDatabase(const std::string& path);

// True if both paths are names of one file, or will be. "-" is standard output.
bool IsSameOutput(const std::string& path, const std::string& other);

// Opens the file for the flag `flag`; nullopt if `path` is empty. InvalidArgument names the flag and says what to do.
StatusOr<std::optional<OutputFile>> OpenOutput(const std::string& flag, const std::string& path);

}  // namespace gannet::cli
