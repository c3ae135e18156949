// WriteLog: the log of the writes that a server does by its own CPU (ClusterOptions::durability), as XStore's (OSDI'20,
// 5.4): each worker appends key, value and version to a buffer of its own, and one thread writes all buffers in
// batches. It is the log of transactions (log/log.h), with one change in each.
//
//   WriteLog::Write write(log);            // null: nothing is logged, and the calls below do nothing
//   write.Reserve(value_bytes)             // before the record is locked
//   [locks the record]
//   write.Append(key, version, value)
//   [writes the record and unlocks it]
//   (the end of `write` leaves the epoch)
//
// A key's changes have the versions of its record, so a reader of the log knows which is the last. What was loaded is
// not logged. A write is durable when its epoch is; the newest durable epoch lies in a word that clients READ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "log/log.h"

namespace gannet::ycsb {

// Thread-safe.
class WriteLog {
 public:
  // Makes the log in a new directory. `files` and `durable_word`, which only this writes, must outlive it.
  static StatusOr<std::unique_ptr<WriteLog>> Create(log::FileSystem* files, const std::string& directory,
                                                    std::byte* durable_word);
  // Writes what was appended.
  ~WriteLog();
  WriteLog(const WriteLog&) = delete;
  WriteLog& operator=(const WriteLog&) = delete;

  // Opens the writers that this many threads need at a time. (Opening one while the log runs waits for it to make
  // room.)
  Status Start(int threads);
  log::Log& log() { return *log_; }

  // One write, by one thread.
  class Write {
   public:
    explicit Write(WriteLog* log) : log_(log) {}
    ~Write();
    Write(const Write&) = delete;
    Write& operator=(const Write&) = delete;

    // Waits while the buffer is full. The disk's error if it stays full, or if the disk has failed.
    Status Reserve(size_t value_bytes);
    void Append(uint64_t key, uint64_t version, std::span<const std::byte> value);
    // The epoch of the append; 0 before.
    uint64_t epoch() const { return epoch_; }

   private:
    WriteLog* const log_;
    log::LogWriter* writer_ = nullptr;
    size_t reserved_ = 0;
    uint64_t epoch_ = 0;
  };

 private:
  class DurableWord;

  WriteLog();
  StatusOr<log::LogWriter*> TakeWriter();
  void GiveBack(log::LogWriter* writer);

  std::unique_ptr<DurableWord> durable_;
  std::unique_ptr<log::Log> log_;
  Mutex mutex_;  // guards the members below
  std::vector<std::unique_ptr<log::LogWriter>> writers_;
  std::vector<log::LogWriter*> idle_writers_;
};

}  // namespace gannet::ycsb
