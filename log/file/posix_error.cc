#include "log/file/posix_error.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gannet::log::internal {
namespace {

struct Meaning {
  absl::StatusCode code;
  std::string advice;
};

std::string AdviceOnFileSize() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return "the file system allows no more";
  }
  return absl::StrCat("the process may write files of at most ", limit.rlim_cur,
                      " bytes; raise that limit (ulimit -f)");
}

Meaning MeaningOf(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return {absl::StatusCode::kResourceExhausted, "make room on that disk, or raise the quota"};
    case EFBIG:
      return {absl::StatusCode::kResourceExhausted, AdviceOnFileSize()};
    case ENOENT:
    case ENOTDIR:
      return {absl::StatusCode::kNotFound, "check the path"};
    case EISDIR:
      return {absl::StatusCode::kInvalidArgument, "remove the directory, or choose another name"};
    case ELOOP:
      return {absl::StatusCode::kInvalidArgument, "a symbolic link leads to itself; remove it"};
    case ENAMETOOLONG:
      return {absl::StatusCode::kInvalidArgument, "choose a shorter path"};
    case EEXIST:
      return {absl::StatusCode::kAlreadyExists, "remove it first, or choose another name"};
    case EACCES:
    case EPERM:
    case EROFS:
      return {absl::StatusCode::kPermissionDenied, "check the owner, the permissions and how the disk is mounted"};
    case ENOTEMPTY:
      return {absl::StatusCode::kFailedPrecondition, "remove the directory's content first"};
    case EMFILE:
    case ENFILE:
      return {absl::StatusCode::kUnavailable, "raise the limit of open files (ulimit -n)"};
    case ECANCELED:
      return {absl::StatusCode::kResourceExhausted,
              "the kernel needs a thread for it and may make none; raise the limit of threads (ulimit -u)"};
    case EIO:
    case ENXIO:
    case ENODEV:
      return {absl::StatusCode::kDataLoss, "the device failed; look into the kernel's log, and do not trust this file"};
    default:
      return {absl::StatusCode::kInternal, "unexpected; look into the kernel's log"};
  }
}

}  // namespace

Status PosixError(int error, std::string_view what) {
  const Meaning meaning = MeaningOf(error);
  return Status(meaning.code, absl::StrCat(absl::string_view(what.data(), what.size()), ": ", std::strerror(error),
                                           "; ", meaning.advice));
}

Status SyncError(int error, std::string_view what) {
  return absl::DataLossError(
      absl::StrCat(absl::string_view(what.data(), what.size()), ": ", std::strerror(error),
                   "; it is unknown which part of the file is on disk: write the data to another file"));
}

}  // namespace gannet::log::internal
