#include "txn/store/options.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/usable_memory.h"
#include "log/format/utf8.h"

namespace gannet::txn {
namespace {

constexpr int kMostThreads = 1024;
constexpr absl::Duration kMostPrecedence = absl::Seconds(65);  // of a ticket (precedence.h)
constexpr uint64_t kMostLogBytes = uint64_t{1} << 44;          // 16 TiB: the largest file of ext4

// Checks the durations and counts that a program may have computed wrongly, by name, before anything is done.
Status CheckNumbers(const DatabaseOptions& options) {
  const auto wrong = [](absl::string_view name, absl::string_view is, absl::string_view must_be) {
    return absl::InvalidArgumentError(absl::StrCat("DatabaseOptions::", name, " is ", is, "; it must be ", must_be));
  };
  const auto text = [](absl::Duration duration) { return absl::FormatDuration(duration); };
  if (options.group_commit < absl::Microseconds(1) || options.group_commit > kMaxGroupCommit) {
    return wrong("group_commit", text(options.group_commit),
                 absl::StrCat("from 1us to ", absl::FormatDuration(kMaxGroupCommit)));
  }
  if (options.call_timeout <= absl::ZeroDuration())
    return wrong("call_timeout", text(options.call_timeout), "positive");
  if (options.durable_within <= absl::ZeroDuration()) {
    return wrong("durable_within", text(options.durable_within), "positive");
  }
  if (options.checkpoint_every < absl::ZeroDuration()) {
    return wrong("checkpoint_every", text(options.checkpoint_every), "positive, or 0 for never");
  }
  const auto number = [](auto value) { return absl::StrCat(value); };
  if (!(options.checkpoint_log_multiple >= 0) || std::isinf(options.checkpoint_log_multiple)) {
    return wrong("checkpoint_log_multiple", number(options.checkpoint_log_multiple), "positive, or 0 for never");
  }
  if (options.recovery_threads < 1 || options.recovery_threads > kMostThreads) {
    return wrong("recovery_threads", number(options.recovery_threads), absl::StrCat("from 1 to ", kMostThreads));
  }
  if (options.server_threads < 0 || options.server_threads > kMostThreads) {
    return wrong("server_threads", number(options.server_threads), absl::StrCat("from 0 to ", kMostThreads));
  }
  if (options.precedence_limit < absl::ZeroDuration() || options.precedence_limit > kMostPrecedence) {
    return wrong("precedence_limit", text(options.precedence_limit),
                 absl::StrCat("from 0 to ", absl::FormatDuration(kMostPrecedence)));
  }
  if (options.precedence_after < absl::ZeroDuration() || options.precedence_after > kMostPrecedence) {
    return wrong("precedence_after", text(options.precedence_after),
                 absl::StrCat("from 0 to ", absl::FormatDuration(kMostPrecedence)));
  }
  if (options.log_segment_bytes > kMostLogBytes) {
    return wrong("log_segment_bytes", number(options.log_segment_bytes), absl::StrCat("at most ", kMostLogBytes));
  }
  if (options.log_large_buffer_bytes > kMaxLogLargeBuffer) {
    return wrong("log_large_buffer_bytes", number(options.log_large_buffer_bytes),
                 absl::StrCat("at most ", kMaxLogLargeBuffer));
  }
  if (options.log_preallocate_bytes > kMostLogBytes) {
    return wrong("log_preallocate_bytes", number(options.log_preallocate_bytes),
                 absl::StrCat("at most ", kMostLogBytes));
  }
  if (options.checkpoint_bytes_per_second != 0 && options.checkpoint_bytes_per_second < kLeastCheckpointRate) {
    return wrong("checkpoint_bytes_per_second", number(options.checkpoint_bytes_per_second),
                 absl::StrCat("at least ", kLeastCheckpointRate, ", or 0 for as fast as the disk"));
  }
  if (options.log_buffer_bytes < kMinLogBuffer || options.log_buffer_bytes > kMaxLogBuffer) {
    return wrong("log_buffer_bytes", number(options.log_buffer_bytes),
                 absl::StrCat("from ", kMinLogBuffer, " to ", kMaxLogBuffer));
  }
  // The tables of the page cache are as large as it may become, and its first pages lie all over them.
  if (const uint64_t usable = UsableMemoryBytes();
      options.page_cache_bytes > std::max<uint64_t>(usable, DatabaseOptions().page_cache_bytes)) {
    return wrong("page_cache_bytes", number(options.page_cache_bytes),
                 absl::StrCat("at most ", usable, ", the memory of this machine"));
  }
  // The file system would take the part before the zero byte as the name, and make a database there.
  if (options.directory.find('\0') != std::string::npos) {
    return wrong("directory", absl::StrCat("'", absl::CHexEscape(options.directory), "'"), "without a zero byte");
  }
  // A number that was cast to an enum, possibly of a newer version.
  if (options.read_path > ReadPathPolicy::kOrderedByCall) {
    return wrong("read_path", number(static_cast<int>(options.read_path)), "a ReadPathPolicy");
  }
  if (options.durability > DurabilityMode::kSync) {
    return wrong("durability", number(static_cast<int>(options.durability)), "a DurabilityMode");
  }
  if (options.medium > LogMedium::kPmem) {
    return wrong("medium", number(static_cast<int>(options.medium)), "a LogMedium");
  }
  return absl::OkStatus();
}

}  // namespace

Status CheckOptions(const DatabaseOptions& options, rdma::NodeId node, int num_nodes) {
  if (options.data_nodes < 0 || options.data_nodes > num_nodes) {
    return absl::InvalidArgumentError(absl::StrCat("DatabaseOptions::data_nodes is ", options.data_nodes,
                                                   "; the fabric has ", num_nodes, " nodes, so choose 0 to ",
                                                   num_nodes));
  }
  if (options.run_sessions < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("DatabaseOptions::run_sessions is ", options.run_sessions, ", at least 1"));
  }
  if (!log::IsUtf8(options.application) || options.application.size() > kMaxApplicationBytes) {
    return absl::InvalidArgumentError(absl::StrCat("DatabaseOptions::application has ", options.application.size(),
                                                   " bytes: give at most ", kMaxApplicationBytes, ", of UTF-8"));
  }
  if (options.data_nodes != 0 && options.data_nodes < num_nodes && !options.directory.empty()) {
    return absl::UnimplementedError(absl::StrCat("node ", node, ": a cluster with client nodes keeps no log; leave ",
                                                 "DatabaseOptions::directory empty, or make all nodes data nodes"));
  }
  return CheckNumbers(options);
}

}  // namespace gannet::txn
