#include <string>
#include <utility>

#include "capi/handles.h"
#include "txn/message_terms.h"

namespace gannet::capi {
namespace {

struct Last {
  std::string message;
  gannet_code code = GANNET_OK;
};

Last& LastOfThread() {
  thread_local Last last;
  return last;
}

}  // namespace

gannet_code LastCode() {
  return LastOfThread().code;
}

void ForgetLastCode() {
  LastOfThread().code = GANNET_OK;
}

gannet_code CodeOf(const Status& status) {
  // The numbers of absl::StatusCode are those of gannet.h: both are those of gRPC, which never change.
  static_assert(static_cast<int>(absl::StatusCode::kDataLoss) == GANNET_DATA_LOSS);
  static_assert(static_cast<int>(absl::StatusCode::kAborted) == GANNET_ABORTED);
  static_assert(static_cast<int>(absl::StatusCode::kNotFound) == GANNET_NOT_FOUND);
  static_assert(static_cast<int>(absl::StatusCode::kUnavailable) == GANNET_UNAVAILABLE);
  if (status.ok()) return GANNET_OK;
  LastOfThread() = {txn::InLanguage({status.message().data(), status.message().size()}, txn::Language::kC),
                    static_cast<gannet_code>(status.code())};
  return LastOfThread().code;
}

gannet_code InvalidArgument(const std::string& message) {
  return CodeOf(absl::InvalidArgumentError(message));
}

}  // namespace gannet::capi

extern "C" {

const char* gannet_version(void) {
  return GANNET_VERSION;
}

const char* gannet_code_name(gannet_code code) {
  if (code >= GANNET_FIRST_OWN_CODE) return "OWN";
  switch (code) {
    case GANNET_OK:
      return "OK";
    case GANNET_CANCELLED:
      return "CANCELLED";
    case GANNET_UNKNOWN:
      return "UNKNOWN";
    case GANNET_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case GANNET_DEADLINE_EXCEEDED:
      return "DEADLINE_EXCEEDED";
    case GANNET_NOT_FOUND:
      return "NOT_FOUND";
    case GANNET_ALREADY_EXISTS:
      return "ALREADY_EXISTS";
    case GANNET_PERMISSION_DENIED:
      return "PERMISSION_DENIED";
    case GANNET_RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    case GANNET_FAILED_PRECONDITION:
      return "FAILED_PRECONDITION";
    case GANNET_ABORTED:
      return "ABORTED";
    case GANNET_OUT_OF_RANGE:
      return "OUT_OF_RANGE";
    case GANNET_UNIMPLEMENTED:
      return "UNIMPLEMENTED";
    case GANNET_INTERNAL:
      return "INTERNAL";
    case GANNET_UNAVAILABLE:
      return "UNAVAILABLE";
    case GANNET_DATA_LOSS:
      return "DATA_LOSS";
    default:
      return "?";
  }
}

const char* gannet_message(void) {
  return gannet::capi::LastOfThread().message.c_str();
}

}  // extern "C"
