#include "log/commit/writer_set.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace gannet::log {
namespace {

constexpr uint64_t kMostBytes = uint64_t{2} << 30;  // limit of a batch's body, whose size field has 32 bits

void AddCounters(const WriterChannel& channel, LogStatistics* to) {
  to->transactions += channel.transactions.load(std::memory_order_relaxed);
  to->changes += channel.changes.load(std::memory_order_relaxed);
  to->payload_bytes += channel.payload_bytes.load(std::memory_order_relaxed);
  to->record_bytes += channel.record_bytes.load(std::memory_order_relaxed);
}

void MoveInto(RedoRing* ring, BatchBuffer* batch) {
  const uint64_t head = ring->published();
  batch->Grow(batch->body_bytes() + (head - ring->tail()));
  ring->VisitUpTo(head, [batch](std::span<const std::byte> piece) { batch->Append(piece); });
  ring->ReleaseUpTo(head);
}

uint64_t MoveLargeInto(WriterChannel* channel, BatchBuffer* batch) {
  if (!channel->has_large.load(std::memory_order_relaxed)) [[likely]]
    return 0;
  std::vector<LargeBlock> blocks;
  {
    std::lock_guard lock(channel->large_mutex);
    blocks.swap(channel->large);
    channel->has_large.store(false, std::memory_order_relaxed);
  }
  uint64_t taken = 0;
  for (LargeBlock& block : blocks) {
    batch->Grow(batch->body_bytes() + block.used);
    batch->Append({block.memory.get(), block.used});
    block.memory = nullptr;
    taken += block.taken;
  }
  return taken;
}

}  // namespace

StatusOr<std::shared_ptr<WriterChannel>> WriterSet::Open() {
  auto channel = std::make_shared<WriterChannel>(buffer_bytes_);
  std::lock_guard lock(mutex_);
  const uint64_t total = inbox_limit_ + large_limit_ + (channels_.size() + 1) * channel->ring.capacity();
  if (total > kMostBytes)
    return absl::ResourceExhaustedError(
        absl::StrCat("the log buffers of ", channels_.size() + 1,
                     " writers have more than 2 GiB: choose smaller ones (buffer_bytes, large_buffer_bytes)"));
  channels_.push_back(channel);
  return channel;
}

Status WriterSet::AppendToInbox(std::span<const std::byte> transaction) {
  std::lock_guard lock(inbox_mutex_);
  if (inbox_.size() + transaction.size() > inbox_limit_)
    return absl::ResourceExhaustedError("the log's buffer for other nodes' commits is full: try again");
  inbox_.insert(inbox_.end(), transaction.begin(), transaction.end());
  ++inbox_transactions_;
  inbox_bytes_ += transaction.size();
  return absl::OkStatus();
}

uint64_t WriterSet::OldestSlot() const {
  uint64_t oldest = SlotWord::kIdle;
  std::lock_guard lock(mutex_);
  for (const auto& channel : channels_) oldest = std::min(oldest, channel->slot.epoch.load(std::memory_order_seq_cst));
  return oldest;
}

uint64_t WriterSet::MoveAllInto(BatchBuffer* batch, uint64_t closed_epoch) {
  GANNET_CHECK(batch->empty(), "a batch of %d bytes is collected again", batch->body_bytes());
  uint64_t large = 0;
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < channels_.size();) {
    WriterChannel& channel = *channels_[i];
    const bool closed = channel.closed.load(std::memory_order_acquire);  // loaded before its last head is read
    MoveInto(&channel.ring, batch);
    large += MoveLargeInto(&channel, batch);
    if (closed) {
      AddCounters(channel, &forgotten_);
      channels_.erase(channels_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  // Recovery takes a closed epoch for complete. (What other nodes sent is their promise, so it is not checked here.)
  GANNET_CHECK(batch->content().least_epoch > closed_epoch, "a commit of epoch %d comes after epoch %d was closed",
               batch->content().least_epoch, closed_epoch);
  std::lock_guard inbox_lock(inbox_mutex_);
  batch->Grow(batch->body_bytes() + inbox_.size());
  batch->Append(inbox_);
  inbox_.clear();
  return large;
}

uint64_t WriterSet::Capacity() const {
  std::lock_guard lock(mutex_);
  uint64_t total = inbox_limit_;
  for (const auto& channel : channels_) total += channel->ring.capacity();
  return total;
}

LogStatistics WriterSet::Counters() const {
  std::lock_guard lock(mutex_);
  LogStatistics total = forgotten_;
  for (const auto& channel : channels_) AddCounters(*channel, &total);
  std::lock_guard inbox_lock(inbox_mutex_);
  total.transactions += inbox_transactions_;
  total.record_bytes += inbox_bytes_;
  return total;
}

}  // namespace gannet::log
