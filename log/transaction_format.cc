// Transactions and changes of format.h.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "log/format.h"
#include "log/little_endian.h"
#include "rdma/base/check.h"

namespace gannet::log {

namespace {

namespace transaction_at {
constexpr size_t kCrc = 0;
constexpr size_t kBytes = 4;
constexpr size_t kEpoch = 8;
constexpr size_t kId = 16;
constexpr size_t kChanges = 24;
constexpr size_t kPart = 28;
}  // namespace transaction_at

namespace change_at {
constexpr size_t kKind = 0;
constexpr size_t kKeyBytes = 1;
constexpr size_t kTable = 2;
constexpr size_t kPayloadBytes = 4;
constexpr size_t kVersion = 8;
}  // namespace change_at

// Bytes of the change at the begin of `from`, or 0 if no valid one lies there.
size_t ValidChangeBytes(std::span<const std::byte> from) {
  namespace at = change_at;
  if (from.size() < kChangeHeaderBytes) return 0;
  const auto kind = static_cast<ChangeKind>(from[at::kKind]);
  const auto key_bytes = static_cast<size_t>(from[at::kKeyBytes]);
  const size_t payload_bytes = LoadLittle<uint32_t>(&from[at::kPayloadBytes]);
  if (kind != ChangeKind::kPut && kind != ChangeKind::kRemove) return 0;
  if (key_bytes > kMaxKeyBytes || (kind == ChangeKind::kRemove && payload_bytes != 0)) return 0;
  const size_t bytes = ChangeBytes(key_bytes, payload_bytes);
  if (bytes > from.size()) return 0;
  const size_t payload_begin = kChangeHeaderBytes + Padded8(key_bytes);
  const size_t payload_end = payload_begin + payload_bytes;
  if (!AllZero(from.subspan(kChangeHeaderBytes + key_bytes, Padded8(key_bytes) - key_bytes))) return 0;
  if (!AllZero(from.subspan(payload_end, bytes - payload_end))) return 0;
  return bytes;
}

}  // namespace

std::byte* TransactionEncoder::Add(ChangeKind kind, uint16_t table, uint64_t version, std::span<const std::byte> key,
                                   size_t payload_bytes) {
  namespace at = change_at;
  GANNET_CHECK(key.size() <= kMaxKeyBytes, "a key of %d bytes", key.size());
  std::byte* const key_at = at_ + kChangeHeaderBytes;
  std::byte* const payload_at = key_at + Padded8(key.size());
  at_[at::kKind] = static_cast<std::byte>(kind);
  at_[at::kKeyBytes] = static_cast<std::byte>(key.size());
  StoreLittle(at_ + at::kTable, table);
  StoreLittle(at_ + at::kPayloadBytes, static_cast<uint32_t>(payload_bytes));
  StoreLittle(at_ + at::kVersion, version);
  // The padding first: it is in the last word, which key and payload then overwrite in part.
  if (!key.empty()) {
    StoreLittle(payload_at - 8, uint64_t{0});
    if (key.size() == sizeof(uint64_t)) [[likely]] {
      std::memcpy(key_at, key.data(), sizeof(uint64_t));  // an integer: one store
    } else {
      std::memcpy(key_at, key.data(), key.size());
    }
  }
  at_ = payload_at + Padded8(payload_bytes);
  if (payload_bytes != 0) StoreLittle(at_ - 8, uint64_t{0});
  ++changes_;
  return payload_at;
}

size_t TransactionEncoder::Finish(uint64_t epoch, TransactionPart part, uint64_t id) {
  namespace at = transaction_at;
  const auto bytes = static_cast<size_t>(at_ - begin_);
  StoreLittle(begin_ + at::kBytes, static_cast<uint32_t>(bytes));
  StoreLittle(begin_ + at::kEpoch, epoch);
  StoreLittle(begin_ + at::kId, id);
  StoreLittle(begin_ + at::kChanges, changes_);
  StoreLittle(begin_ + at::kPart, static_cast<uint32_t>(part));
  StoreLittle(begin_ + at::kCrc, Crc32c({begin_ + at::kBytes, bytes - at::kBytes}));
  return bytes;
}

StatusOr<bool> TransactionDecoder::Next() {
  namespace at = transaction_at;
  current_ = {};
  if (rest_.empty()) return false;
  if (rest_.size() < kTransactionHeaderBytes) return absl::DataLossError("a transaction is cut off");
  const size_t bytes = LoadLittle<uint32_t>(&rest_[at::kBytes]);
  if (bytes < kTransactionHeaderBytes || bytes % 8 != 0 || bytes > rest_.size())
    return absl::DataLossError(absl::StrCat("a transaction says that it has ", bytes, " bytes, which cannot be"));
  if (LoadLittle<uint32_t>(&rest_[at::kCrc]) != Crc32c(rest_.subspan(at::kBytes, bytes - at::kBytes)))
    return absl::DataLossError("the checksum of a transaction does not match");
  const auto part = LoadLittle<uint32_t>(&rest_[at::kPart]);
  const auto id = LoadLittle<uint64_t>(&rest_[at::kId]);
  if (part > static_cast<uint32_t>(TransactionPart::kDecision) || (part == 0 && id != 0))
    return absl::DataLossError("a transaction is of a kind that version 1 does not know");

  const std::span<const std::byte> all = rest_.subspan(kTransactionHeaderBytes, bytes - kTransactionHeaderBytes);
  const uint32_t changes = LoadLittle<uint32_t>(&rest_[at::kChanges]);
  uint32_t found = 0;
  for (std::span<const std::byte> left = all; !left.empty(); ++found) {
    const size_t change = ValidChangeBytes(left);
    if (change == 0) return absl::DataLossError("a change within a transaction is not valid");
    left = left.subspan(change);
  }
  if (found != changes) return absl::DataLossError("a transaction has not as many changes as it says");
  epoch_ = LoadLittle<uint64_t>(&rest_[at::kEpoch]);
  id_ = id;
  part_ = static_cast<TransactionPart>(part);
  changes_ = changes;
  current_ = all;
  rest_ = rest_.subspan(bytes);
  consumed_ += bytes;
  return true;
}

bool TransactionDecoder::SkipDamaged() {
  namespace at = transaction_at;
  if (rest_.size() < kTransactionHeaderBytes) return false;
  const size_t bytes = LoadLittle<uint32_t>(&rest_[at::kBytes]);
  if (bytes < kTransactionHeaderBytes || bytes % 8 != 0 || bytes > rest_.size()) return false;
  rest_ = rest_.subspan(bytes);
  consumed_ += bytes;
  return true;
}

bool TransactionDecoder::NextChange(ChangeView* change) {
  namespace at = change_at;
  if (current_.empty()) return false;
  const auto key_bytes = static_cast<size_t>(current_[at::kKeyBytes]);
  const size_t payload_bytes = LoadLittle<uint32_t>(&current_[at::kPayloadBytes]);
  change->kind = static_cast<ChangeKind>(current_[at::kKind]);
  change->table = LoadLittle<uint16_t>(&current_[at::kTable]);
  change->version = LoadLittle<uint64_t>(&current_[at::kVersion]);
  change->key = current_.subspan(kChangeHeaderBytes, key_bytes);
  change->payload = current_.subspan(kChangeHeaderBytes + Padded8(key_bytes), payload_bytes);
  current_ = current_.subspan(ChangeBytes(key_bytes, payload_bytes));
  return true;
}

}  // namespace gannet::log
