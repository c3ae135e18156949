#include "ycsb/write_log.h"

#include <cstring>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "base/clock.h"
#include "base/runtime.h"
#include "log/format/transaction_format.h"
#include "ycsb/record.h"

namespace gannet::ycsb {
namespace {

// The log is made as soon as the log needs it, in memory: hence not the default of 64 MiB.
constexpr uint64_t kSegmentBytes = uint64_t{16} << 20;
// What a worker appends in three group commits at a million writes per second.
constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr uint64_t kLookForRoomEveryNanos = 20'000;
constexpr uint64_t kPatienceNanos = 10'000'000'000;

}  // namespace

// There are no other nodes whose epochs count: a write changes one server. The log tells this which epoch is durable
// before it tells any waiter.
class WriteLog::DurableWord final : public log::PeerEpochs {
 public:
  explicit DurableWord(std::byte* word) : word_(word) { StoreWord(word_, 0); }

  void Announce(uint64_t) override {}
  void AnnounceDirty(uint64_t) override {}
  StatusOr<log::NodeEpochs> Exchange(const log::NodeEpochs& own) override {
    StoreWord(word_, own.flushed);
    return own;
  }

 private:
  std::byte* const word_;
};

WriteLog::WriteLog() = default;

WriteLog::~WriteLog() {
  writers_.clear();
  log_.reset();
}

StatusOr<std::unique_ptr<WriteLog>> WriteLog::Create(log::FileSystem* files, const std::string& directory,
                                                     std::byte* durable_word) {
  GANNET_RETURN_IF_ERROR(files->MakeDirectory(directory));
  std::unique_ptr<WriteLog> made(new WriteLog);
  made->durable_ = std::make_unique<DurableWord>(durable_word);
  log::LogOptions options{.segment_bytes = kSegmentBytes, .buffer_bytes = kBufferBytes};
  options.large_buffer_bytes = 0;  // a write is small
  auto log = log::Log::Create(files, directory, {}, options);
  if (!log.ok()) return log.status();
  made->log_ = *std::move(log);
  return made;
}

Status WriteLog::Start(int threads) {
  for (int i = 0; i < threads; ++i) {
    StatusOr<std::unique_ptr<log::LogWriter>> writer = log_->OpenWriter();
    if (!writer.ok()) return writer.status();
    writers_.push_back(*std::move(writer));
    idle_writers_.push_back(writers_.back().get());
  }
  return log_->Start(durable_.get());
}

StatusOr<log::LogWriter*> WriteLog::TakeWriter() {
  const std::lock_guard lock(mutex_);
  if (idle_writers_.empty()) {
    StatusOr<std::unique_ptr<log::LogWriter>> writer = log_->OpenWriter();
    if (!writer.ok()) return writer.status();
    writers_.push_back(*std::move(writer));
    return writers_.back().get();
  }
  log::LogWriter* const writer = idle_writers_.back();
  idle_writers_.pop_back();
  return writer;
}

void WriteLog::GiveBack(log::LogWriter* writer) {
  const std::lock_guard lock(mutex_);
  idle_writers_.push_back(writer);
}

Status WriteLog::Write::Reserve(size_t value_bytes) {
  if (log_ == nullptr) return absl::OkStatus();
  const StatusOr<log::LogWriter*> taken = log_->TakeWriter();
  if (!taken.ok()) return taken.status();
  writer_ = *taken;
  const size_t bytes = log::kTransactionOverheadBytes + log::MaxChangeBytes(index::kIntegerKeyBytes, value_bytes);
  uint64_t end = 0;
  while (true) {
    bool wait = false;
    Status reserved = writer_->Reserve(bytes, &wait);
    if (reserved.ok()) break;
    const uint64_t now = NowNanos();
    if (end == 0) end = now + kPatienceNanos;
    if (!wait || now > end) return reserved;
    SleepForNanos(kLookForRoomEveryNanos);
  }
  reserved_ = bytes;
  return absl::OkStatus();
}

void WriteLog::Write::Append(uint64_t key, uint64_t version, std::span<const std::byte> value) {
  if (log_ == nullptr) return;
  epoch_ = writer_->Enter();
  log::TransactionEncoder encoder(writer_->Room(reserved_));
  std::byte* const payload = encoder.Add(log::ChangeKind::kPut, kTable, version, key, value.size());
  std::memcpy(payload, value.data(), value.size());
  const size_t bytes = encoder.Finish(epoch_);
  Charge(Cost::kLogByte, bytes);
  writer_->Append(epoch_, bytes, 1, value.size());
}

WriteLog::Write::~Write() {
  if (writer_ == nullptr) return;
  if (epoch_ != 0) writer_->Leave(epoch_);
  if (reserved_ != 0) writer_->Release(reserved_);
  log_->GiveBack(writer_);
}

}  // namespace gannet::ycsb
