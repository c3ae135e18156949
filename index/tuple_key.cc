#include "index/tuple_key.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet::index {
namespace {

constexpr uint8_t kString = 0x02;
constexpr uint8_t kZeroInteger = 0x14;
constexpr uint8_t kDouble = 0x21;
constexpr uint8_t kFalse = 0x26;
constexpr uint8_t kTrue = 0x27;
constexpr char kEndOfString = '\0';
constexpr char kEscape = '\x01';  // then comes the byte, 0 or 1, plus 1

using Word = std::array<char, sizeof(uint64_t)>;

Word BigEndian(uint64_t word) {
  Word bytes;
  for (size_t i = bytes.size(); i-- > 0; word >>= 8) bytes[i] = static_cast<char>(word & 0xff);
  return bytes;
}
// `bytes` has at most 8 bytes.
uint64_t FromBigEndian(std::string_view bytes) {
  uint64_t word = 0;
  for (const char byte : bytes) word = word << 8 | static_cast<uint8_t>(byte);
  return word;
}

// The bits of `word` that take the lowest `bytes` bytes.
uint64_t LowBytes(uint64_t word, size_t bytes) {
  return bytes == sizeof(uint64_t) ? word : word & ((uint64_t{1} << (8 * bytes)) - 1);
}

Status NoTuple() {
  return absl::InvalidArgumentError("the bytes are not a tuple: they end within a field, or have one of no known form");
}

// The first byte of the next field.
StatusOr<uint8_t> NextCode(std::string_view rest) {
  if (rest.empty()) return absl::InvalidArgumentError("the tuple has no further field");
  return static_cast<uint8_t>(rest.front());
}

const char* NameOf(uint8_t code) {
  if (code == kString) return "a string";
  if (code >= kZeroInteger - 8 && code <= kZeroInteger + 8) return "an integer";
  if (code == kDouble) return "a double";
  return code == kFalse || code == kTrue ? "a bool" : nullptr;
}

Status OtherType(uint8_t code, const char* wanted) {
  if (NameOf(code) == nullptr) return NoTuple();
  return absl::InvalidArgumentError(absl::StrCat("the tuple's next field is ", NameOf(code), ", not ", wanted));
}

}  // namespace

void TupleKey::Append(std::string_view field) {
  bytes_.push_back(static_cast<char>(kString));
  for (const char byte : field) {
    const bool escaped = byte == kEndOfString || byte == kEscape;
    if (escaped) bytes_.push_back(kEscape);
    bytes_.push_back(static_cast<char>(byte + (escaped ? 1 : 0)));
  }
  bytes_.push_back(kEndOfString);
}

void TupleKey::Append(bool field) {
  bytes_.push_back(static_cast<char>(field ? kTrue : kFalse));
}

void TupleKey::Append(double field) {
  const auto bits = std::bit_cast<uint64_t>(field);
  const Word bytes = BigEndian((bits & kSignBit) != 0 ? ~bits : bits ^ kSignBit);
  bytes_.push_back(static_cast<char>(kDouble));
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void TupleKey::AppendInteger(bool negative, uint64_t amount) {
  const size_t size = (static_cast<size_t>(std::bit_width(amount)) + 7) / 8;
  bytes_.push_back(static_cast<char>(negative ? kZeroInteger - size : kZeroInteger + size));
  const Word bytes = BigEndian(negative ? ~amount : amount);
  bytes_.insert(bytes_.end(), bytes.end() - static_cast<ptrdiff_t>(size), bytes.end());
}

Status TupleReader::DoesNotFit() {
  return absl::InvalidArgumentError("the tuple's next field is an integer that does not fit the variable");
}

Status TupleReader::Read(std::string* field) {
  const StatusOr<uint8_t> code = NextCode(rest_);
  GANNET_RETURN_IF_ERROR(code.status());
  if (*code != kString) return OtherType(*code, "a string");
  std::string text;
  for (size_t i = 1; i < rest_.size(); ++i) {
    char byte = rest_[i];
    if (byte == kEndOfString) {
      *field = std::move(text);
      rest_.remove_prefix(i + 1);
      return absl::OkStatus();
    }
    if (byte == kEscape) {
      if (++i == rest_.size() || (rest_[i] != '\x01' && rest_[i] != '\x02')) break;
      byte = static_cast<char>(rest_[i] - 1);
    }
    text += byte;
  }
  return NoTuple();
}

Status TupleReader::Read(bool* field) {
  const StatusOr<uint8_t> code = NextCode(rest_);
  GANNET_RETURN_IF_ERROR(code.status());
  if (*code != kFalse && *code != kTrue) return OtherType(*code, "a bool");
  *field = *code == kTrue;
  rest_.remove_prefix(1);
  return absl::OkStatus();
}

Status TupleReader::Read(double* field) {
  const StatusOr<uint8_t> code = NextCode(rest_);
  GANNET_RETURN_IF_ERROR(code.status());
  if (*code != kDouble) return OtherType(*code, "a double");
  if (rest_.size() < 1 + sizeof(uint64_t)) return NoTuple();
  const uint64_t stored = FromBigEndian(rest_.substr(1, sizeof(uint64_t)));
  *field = std::bit_cast<double>((stored & kSignBit) != 0 ? stored ^ kSignBit : ~stored);
  rest_.remove_prefix(1 + sizeof(uint64_t));
  return absl::OkStatus();
}

Status TupleReader::ReadInteger(std::string_view* rest, bool* negative, uint64_t* amount) {
  const StatusOr<uint8_t> code = NextCode(*rest);
  GANNET_RETURN_IF_ERROR(code.status());
  if (*code < kZeroInteger - 8 || *code > kZeroInteger + 8) return OtherType(*code, "an integer");
  *negative = *code < kZeroInteger;
  const size_t size = *negative ? size_t{kZeroInteger} - *code : *code - size_t{kZeroInteger};
  if (rest->size() < 1 + size) return NoTuple();
  const uint64_t stored = FromBigEndian(rest->substr(1, size));
  *amount = *negative ? LowBytes(~stored, size) : stored;
  // Each number has one encoding, or equal tuples would be different keys.
  if (size > 0 && *amount >> (8 * (size - 1)) == 0) return NoTuple();
  rest->remove_prefix(1 + size);
  return absl::OkStatus();
}

}  // namespace gannet::index
