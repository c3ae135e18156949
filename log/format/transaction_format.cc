#include "log/format/transaction_format.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "log/format/crc32c.h"

namespace gannet::log {

namespace {

using Bytes = std::span<const std::byte>;

namespace transaction_at {
constexpr size_t kCrc = 0;
constexpr size_t kBytes = 4;
constexpr size_t kEpoch = 8;
constexpr size_t kId = 16;
constexpr size_t kChanges = 24;
constexpr size_t kPart = 28;
}  // namespace transaction_at

// Layout of a change in versions 1 and 2.
namespace padded_change_at {
constexpr size_t kKind = 0;
constexpr size_t kKeyBytes = 1;
constexpr size_t kTable = 2;
constexpr size_t kPayloadBytes = 4;
constexpr size_t kVersion = 8;
constexpr size_t kKey = 16;
}  // namespace padded_change_at

uint64_t BigEndian(const std::byte* from) {
  return __builtin_bswap64(LoadLittle<uint64_t>(from));
}

bool TakeBytes(Bytes* from, size_t bytes, Bytes* taken) {
  if (from->size() < bytes) return false;
  *taken = from->first(bytes);
  *from = from->subspan(bytes);
  return true;
}

// A number of at most 8 bytes, the last of which is not 0: so each number has only one encoding.
bool TakeNumber(Bytes* from, size_t bytes, uint64_t* number) {
  Bytes taken;
  if (bytes > sizeof *number || !TakeBytes(from, bytes, &taken)) return false;
  *number = 0;
  std::memcpy(number, taken.data(), bytes);
  return internal::SignificantBytes(*number) == bytes;
}

// The padding to a multiple of 8 in versions 1 and 2.
bool TakeZeros(Bytes* from, size_t behind) {
  Bytes zeros;
  return TakeBytes(from, Padded8(behind) - behind, &zeros) && AllZero(zeros);
}

bool TakePadded(Bytes* from, ChangeView* change) {
  namespace at = padded_change_at;
  Bytes header;
  if (!TakeBytes(from, at::kKey, &header)) return false;
  change->kind = static_cast<ChangeKind>(header[at::kKind]);
  change->table = LoadLittle<uint16_t>(&header[at::kTable]);
  change->version = LoadLittle<uint64_t>(&header[at::kVersion]);
  change->key_is_short = false;
  const auto key_bytes = static_cast<size_t>(header[at::kKeyBytes]);
  const size_t payload_bytes = LoadLittle<uint32_t>(&header[at::kPayloadBytes]);
  if (change->kind != ChangeKind::kPut && change->kind != ChangeKind::kRemove) return false;
  if (key_bytes > kShortKeyBytes || (change->kind == ChangeKind::kRemove && payload_bytes != 0)) return false;
  return TakeBytes(from, key_bytes, &change->long_key) && TakeZeros(from, key_bytes) &&
         TakeBytes(from, payload_bytes, &change->payload) && TakeZeros(from, payload_bytes);
}

bool TakeKey(Bytes* from, size_t code, ChangeView* change) {
  change->key_is_short = code < internal::kByteKey;
  if (change->key_is_short) {
    uint64_t key;
    if (!TakeNumber(from, code, &key)) return false;
    StoreLittle(change->short_key.data(), __builtin_bswap64(key));
    return true;
  }
  Bytes length;
  if (code == internal::kByteKey) {
    if (!TakeBytes(from, sizeof(uint8_t), &length)) return false;
    const auto key_bytes = static_cast<size_t>(length[0]);
    return key_bytes <= kShortKeyBytes && key_bytes != kIntegerKeyBytes &&
           TakeBytes(from, key_bytes, &change->long_key);
  }
  if (code != internal::kLongByteKey || !TakeBytes(from, sizeof(uint16_t), &length)) return false;
  const size_t key_bytes = LoadLittle<uint16_t>(length.data());
  return key_bytes > kShortKeyBytes && key_bytes <= kMaxKeyBytes && TakeBytes(from, key_bytes, &change->long_key);
}

// The lowest `bytes` bytes of a word, for each number of bytes that fits into four bits. More than 8 are not valid.
constexpr std::array<uint64_t, 16> kLowBytes = [] {
  std::array<uint64_t, 16> masks{};
  for (size_t bytes = 1; bytes <= sizeof(uint64_t); ++bytes) masks[bytes] = ~uint64_t{0} >> (64 - 8 * bytes);
  return masks;
}();
// The least number whose length takes as many bytes as the code says.
constexpr std::array<uint32_t, 4> kLeastLength = {0, 1, 0x100, 0x10000};
// All that TakeCompact may read before it knows how long the numbers of a change are.
constexpr size_t kMostNumberBytes = 2 + 2 + 4 + 8 + 8;

// True if a number that was read as `bytes` bytes needs all of them.
bool NeedsAll(uint64_t number, size_t bytes) {
  return bytes == 0 || number >> (8 * (bytes - 1)) != 0;
}

// Does what TakeCompactAtEnd does, where kMostNumberBytes follow, so that each number is one load and a mask.
bool TakeCompact(Bytes* from, ChangeView* change) {
  const std::byte* at = from->data();
  const size_t control = LoadLittle<uint16_t>(at);
  const size_t version_bytes = control & 15;
  const size_t key_code = control >> 4 & 15;
  const size_t length_code = control >> 8 & 3;
  const bool wide_table = (control >> 10 & 1) != 0;
  const bool removed = (control >> 11 & 1) != 0;
  if (control >> 12 != 0 || version_bytes > sizeof(uint64_t) || (removed && length_code != 0)) return false;
  change->kind = removed ? ChangeKind::kRemove : ChangeKind::kPut;
  at += sizeof(uint16_t);
  change->table = static_cast<uint16_t>(LoadLittle<uint16_t>(at) & (wide_table ? 0xffff : 0xff));
  if (wide_table != (change->table >= 0x100)) return false;
  at += size_t{1} + wide_table;
  const size_t length_bytes = internal::kLengthBytes[length_code];
  const auto payload_bytes = static_cast<uint32_t>(LoadLittle<uint32_t>(at) & kLowBytes[length_bytes]);
  if (payload_bytes < kLeastLength[length_code]) return false;
  at += length_bytes;
  change->version = LoadLittle<uint64_t>(at) & kLowBytes[version_bytes];
  if (!NeedsAll(change->version, version_bytes)) return false;
  at += version_bytes;
  if (key_code < internal::kByteKey) {
    const uint64_t key = LoadLittle<uint64_t>(at) & kLowBytes[key_code];
    if (!NeedsAll(key, key_code)) return false;
    change->key_is_short = true;
    StoreLittle(change->short_key.data(), __builtin_bswap64(key));
    *from = from->subspan(static_cast<size_t>(at - from->data()) + key_code);
  } else {
    *from = from->subspan(static_cast<size_t>(at - from->data()));
    if (!TakeKey(from, key_code, change)) return false;
  }
  return TakeBytes(from, payload_bytes, &change->payload);
}

bool TakeCompactAtEnd(Bytes* from, ChangeView* change) {
  Bytes control_bytes;
  Bytes number;
  if (!TakeBytes(from, sizeof(uint16_t), &control_bytes)) return false;
  const size_t control = LoadLittle<uint16_t>(control_bytes.data());
  const size_t version_bytes = control & 15;
  const size_t key_code = control >> 4 & 15;
  const size_t length_code = control >> 8 & 3;
  const bool wide_table = (control >> 10 & 1) != 0;
  change->kind = (control >> 11 & 1) != 0 ? ChangeKind::kRemove : ChangeKind::kPut;
  if (control >> 12 != 0 || (change->kind == ChangeKind::kRemove && length_code != 0)) return false;
  if (!TakeBytes(from, size_t{1} + wide_table, &number)) return false;
  change->table = wide_table ? LoadLittle<uint16_t>(number.data()) : static_cast<uint16_t>(number[0]);
  if (wide_table != (change->table >= 0x100)) return false;
  uint32_t payload_bytes = 0;
  if (!TakeBytes(from, internal::kLengthBytes[length_code], &number)) return false;
  std::memcpy(&payload_bytes, number.data(), number.size());
  if (internal::LengthCode(payload_bytes) != length_code) return false;
  return TakeNumber(from, version_bytes, &change->version) && TakeKey(from, key_code, change) &&
         TakeBytes(from, payload_bytes, &change->payload);
}

}  // namespace

std::byte* TransactionEncoder::Add(ChangeKind kind, uint16_t table, uint64_t version, Bytes key, size_t payload_bytes) {
  if (key.size() == kIntegerKeyBytes) return Add(kind, table, version, BigEndian(key.data()), payload_bytes);
  GANNET_CHECK(key.size() <= kMaxKeyBytes, "a key of %d bytes", key.size());
  CheckPayload(kind, table, payload_bytes);
  const bool is_long = key.size() > kShortKeyBytes;
  const size_t code = is_long ? internal::kLongByteKey : internal::kByteKey;
  std::byte* at = PutNumbers(at_, kind, table, version, code, payload_bytes);
  StoreLittle(at, static_cast<uint16_t>(key.size()));
  at += is_long ? sizeof(uint16_t) : sizeof(uint8_t);  // the key overwrites an unneeded byte
  if (!key.empty()) std::memcpy(at, key.data(), key.size());
  return PassPayload(at + key.size(), payload_bytes);
}

size_t TransactionEncoder::Finish(uint64_t epoch, TransactionPart part, uint64_t id) {
  namespace at = transaction_at;
  StoreLittle(at_, uint64_t{0});  // up to a multiple of 8
  const size_t bytes = Padded8(static_cast<size_t>(at_ - begin_));
  GANNET_CHECK(bytes <= UINT32_MAX && (part != TransactionPart::kWhole || id == 0),
               "a transaction of %d bytes, of part %d with id %x", bytes, static_cast<int>(part), id);
  StoreLittle(begin_ + at::kBytes, static_cast<uint32_t>(bytes));
  StoreLittle(begin_ + at::kEpoch, epoch);
  StoreLittle(begin_ + at::kId, id);
  StoreLittle(begin_ + at::kChanges, changes_);
  StoreLittle(begin_ + at::kPart, static_cast<uint32_t>(part));
  StoreLittle(begin_ + at::kCrc, Crc32c({begin_ + at::kBytes, bytes - at::kBytes}));
  return bytes;
}

StatusOr<bool> TransactionDecoder::Next(std::vector<ChangeView>* decoded) {
  namespace at = transaction_at;
  if (rest_.empty()) return false;
  if (rest_.size() < kTransactionHeaderBytes) return absl::DataLossError("a transaction is cut off");
  const size_t bytes = LoadLittle<uint32_t>(&rest_[at::kBytes]);
  if (bytes < kTransactionHeaderBytes || bytes % 8 != 0 || bytes > rest_.size())
    return absl::DataLossError(absl::StrCat("a transaction says that it has ", bytes, " bytes, which is impossible"));
  if (LoadLittle<uint32_t>(&rest_[at::kCrc]) != Crc32c(rest_.subspan(at::kBytes, bytes - at::kBytes)))
    return absl::DataLossError("the checksum of a transaction does not match");
  const auto part = LoadLittle<uint32_t>(&rest_[at::kPart]);
  const auto id = LoadLittle<uint64_t>(&rest_[at::kId]);
  if (part > static_cast<uint32_t>(TransactionPart::kDecision) || (part == 0 && id != 0))
    return absl::DataLossError("a transaction is of a kind that this program does not know");

  const Bytes all = rest_.subspan(kTransactionHeaderBytes, bytes - kTransactionHeaderBytes);
  const uint32_t changes = LoadLittle<uint32_t>(&rest_[at::kChanges]);
  const size_t before = decoded == nullptr ? 0 : decoded->size();
  if (Status taken = TakeAll(all, changes, decoded); !taken.ok()) {
    if (decoded != nullptr) decoded->resize(before);
    return taken;
  }
  epoch_ = LoadLittle<uint64_t>(&rest_[at::kEpoch]);
  id_ = id;
  part_ = static_cast<TransactionPart>(part);
  changes_ = changes;
  rest_ = rest_.subspan(bytes);
  consumed_ += bytes;
  return true;
}

// Checks the changes that lie in `all`, and appends them to *decoded, which may be null.
Status TransactionDecoder::TakeAll(Bytes all, uint32_t changes, std::vector<ChangeView>* decoded) const {
  Bytes left = all;
  ChangeView change;
  for (uint32_t i = 0; i < changes; ++i) {
    if (!Take(&left, &change)) return absl::DataLossError("a change within a transaction is not valid");
    if (decoded != nullptr) decoded->push_back(change);
  }
  if (left.size() >= 8 || !AllZero(left))
    return absl::DataLossError("a transaction holds more than the changes that it announces");
  return absl::OkStatus();
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

bool TransactionDecoder::Take(Bytes* from, ChangeView* change) const {
  if (!compact_) [[unlikely]]
    return TakePadded(from, change);
  return from->size() >= kMostNumberBytes ? TakeCompact(from, change) : TakeCompactAtEnd(from, change);
}

}  // namespace gannet::log
