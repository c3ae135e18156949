#include "rdma/rpc.h"

#include "absl/strings/str_cat.h"

namespace gannet::rdma {

StatusOr<size_t> WireWriter::Finish() const {
  if (!ok_) return absl::ResourceExhaustedError(absl::StrCat("the message needs more than ", buffer_.size(), " bytes"));
  return size_;
}

Status WireReader::Finish() const {
  if (!ok_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the message of ", message_.size(), " bytes is cut off after byte ", at_));
  }
  if (remaining() > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the message of ", message_.size(), " bytes has ", remaining(), " bytes too many"));
  }
  return absl::OkStatus();
}

}  // namespace gannet::rdma
