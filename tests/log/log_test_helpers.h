// Shared by the tests of the log: transactions that name their writer, and the content of a log after a crash.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "log/commit/log_writer.h"
#include "log/file/simulated/faulty_file_system.h"
#include "log/format/transaction_format.h"
#include "log/log.h"
#include "log/segment/log_reader.h"
#include "tests/log/log_directory.h"

namespace gannet::log {

inline constexpr absl::Duration kLongEnough = absl::Seconds(60);

// The name of a transaction: its writer, and its number among that writer's transactions.
using Name = std::pair<uint64_t, uint64_t>;

// Appends a transaction with this name and a payload of `payload_bytes`, in the sequence of a commit, and returns its
// epoch. Waits for room in the buffer.
inline StatusOr<uint64_t> Commit(LogWriter* writer, Name name, size_t payload_bytes) {
  const size_t bytes = kTransactionOverheadBytes + MaxChangeBytes(sizeof(uint64_t), payload_bytes);
  bool wait = true;
  Status reserved;
  while (!(reserved = writer->Reserve(bytes, &wait)).ok() && wait) absl::SleepFor(absl::Microseconds(50));
  GANNET_RETURN_IF_ERROR(reserved);
  const uint64_t epoch = writer->Enter();
  TransactionEncoder encoder(writer->Room(bytes));
  std::byte* payload = encoder.Add(ChangeKind::kPut, static_cast<uint16_t>(name.first), name.second,
                                   std::as_bytes(std::span(&name.second, 1)), payload_bytes);
  for (size_t i = 0; i < payload_bytes; ++i) payload[i] = static_cast<std::byte>(name.second + i);
  writer->Append(epoch, encoder.Finish(epoch), 1, payload_bytes);
  writer->Leave(epoch);
  writer->Release(bytes);
  return epoch;
}

inline void MakeLogDirectory(FileSystem* files) {
  ASSERT_TRUE(files->MakeDirectory(kLogDirectory).ok());
  ASSERT_TRUE(files->SyncDirectory("/").ok());
}

// Options so small that buffers and segments are used up often.
inline LogOptions SmallLog() {
  return {.group_commit = absl::Microseconds(100),
          .segment_bytes = 256 << 10,
          .buffer_bytes = 16 << 10,
          .large_buffer_bytes = 64 << 10,
          .retry_every = absl::Milliseconds(1)};
}

inline std::unique_ptr<Log> StartLog(FileSystem* files, const LogEnd& end, const LogOptions& options,
                                     PeerEpochs* peers = nullptr) {
  StatusOr<std::unique_ptr<Log>> log = Log::Create(files, kLogDirectory, end, options);
  EXPECT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE((*log)->Start(peers).ok());
  return std::move(*log);
}

// The content of a log: the epoch of each transaction found in it, and its end.
struct Recovered {
  LogEnd end;
  std::map<Name, uint64_t> epochs;
  // True if the transaction counts: its epoch was closed.
  bool Has(Name name) const {
    const auto at = epochs.find(name);
    return at != epochs.end() && at->second <= end.recovered_epoch;
  }
};

inline Recovered Recover(FileSystem& files, uint64_t from_segment = 0, const std::string& directory = kLogDirectory) {
  Recovered recovered;
  const auto visit = [&](int, const TransactionView& transaction) {
    for (const ChangeView& change : transaction.changes) {
      const Name name(change.table, change.version);
      EXPECT_TRUE(recovered.epochs.emplace(name, transaction.epoch).second) << "twice";
      for (size_t i = 0; i < change.payload.size(); ++i)
        EXPECT_EQ(change.payload[i], static_cast<std::byte>(name.second + i));
    }
    return absl::OkStatus();
  };
  StatusOr<LogSummary> summary = ReadLog(files, directory, {.from_segment = from_segment}, visit);
  EXPECT_TRUE(summary.ok()) << summary.status();
  if (summary.ok()) recovered.end = summary->end;
  return recovered;
}

}  // namespace gannet::log
