#include "cli/common/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"

namespace gannet::cli {
namespace {

Status SystemError(const std::string& path, const char* what) {
  return absl::InvalidArgumentError(absl::StrFormat("%s: cannot %s: %s", path, what, std::strerror(errno)));
}

}  // namespace

Status CheckMayMakeIn(const std::string& directory) {
  const std::string name = directory.empty() ? "." : directory;
  struct stat kind = {};
  if (stat(name.c_str(), &kind) != 0) return SystemError(name, "make a file there");
  if (S_ISDIR(kind.st_mode) && access(name.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  if (!S_ISDIR(kind.st_mode)) errno = ENOTDIR;
  return SystemError(name, "make a file there");
}

Status CheckNotInDatabase(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  if (access((directory + "MANIFEST").c_str(), F_OK) != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("%s: cannot write there: the directory holds a database", path));
}

StatusOr<OutputFile> OutputFile::Open(const std::string& path) {
  if (path == "-") {
    const int copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return SystemError("standard output", "write there");
    return OutputFile("standard output", copy, /*is_stdout=*/true);
  }
  GANNET_RETURN_IF_ERROR(CheckNotInDatabase(path));
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file >= 0) {
    close(file);
    unlink(path.c_str());
    return OutputFile(path, -1, /*is_stdout=*/false);
  }
  if (errno == EEXIST) file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return SystemError(path, "write there");
  return OutputFile(path, file, /*is_stdout=*/false);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), is_stdout_(other.is_stdout_) {}

OutputFile::~OutputFile() {
  if (file_ >= 0) close(file_);
}

Status OutputFile::Write(const std::string& contents) {
  int file = std::exchange(file_, -1);
  if (file < 0) file = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return SystemError(path_, "write there");
  struct stat kind = {};
  Status status;
  if (is_stdout_) std::fflush(stdout);  // earlier output comes first
  // A pipe or a terminal has nothing to replace, and standard output may be the end of a file that others append to.
  if (!is_stdout_ && fstat(file, &kind) == 0 && S_ISREG(kind.st_mode) && ftruncate(file, 0) != 0)
    status = SystemError(path_, "empty it");
  for (size_t done = 0; status.ok() && done < contents.size();) {
    const ssize_t n = write(file, contents.data() + done, contents.size() - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      status = SystemError(path_, "write it");
    }
  }
  if (close(file) != 0 && status.ok()) status = SystemError(path_, "finish writing it");
  return status;
}

bool IsSameOutput(const std::string& path, const std::string& other) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto named = [&error](const std::string& name) {
    return fs::absolute(name == "-" ? "/dev/stdout" : name, error);
  };
  if (path == other || fs::equivalent(named(path), named(other), error)) return true;
  const fs::path one = fs::weakly_canonical(named(path), error);
  return !error && one == fs::weakly_canonical(named(other), error);
}

StatusOr<std::optional<OutputFile>> OpenOutput(const std::string& flag, const std::string& path) {
  if (path.empty()) return std::optional<OutputFile>();
  StatusOr<OutputFile> file = OutputFile::Open(path);
  if (file.ok()) return std::optional<OutputFile>(*std::move(file));
  return absl::InvalidArgumentError(
      absl::StrFormat("%s %s; name a file in a directory that you may write to, or - for standard output", flag,
                      file.status().message()));
}

}  // namespace gannet::cli
