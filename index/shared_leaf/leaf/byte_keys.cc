#include "index/shared_leaf/leaf/byte_keys.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "index/shared_leaf/leaf/integer_keys.h"

namespace gannet::index::shared_leaf {

uint64_t NumberFrom(std::string_view bytes) {
  uint64_t number = 0;
  const size_t size = std::min(bytes.size(), sizeof(number));
  for (size_t i = 0; i < size; ++i) number |= uint64_t{static_cast<uint8_t>(bytes[i])} << (56 - 8 * i);
  return number;
}

Status ByteKeys::CheckLength(const Schema& schema, const index::Key& key) {
  if (key.size() <= schema.max_key_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a key of ", key.size(), " bytes in an index of keys of at most ", schema.max_key_bytes));
}

ByteKeys::Cut ByteKeys::CutFrom(FewWords words) {
  std::array<char, kShortKeyBytes> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(words[i / 8] >> (56 - i % 8 * 8));
  const size_t size = std::min<uint64_t>(words[8] / 2, kShortKeyBytes);
  return {ByteKey(std::string_view(bytes.data(), size)), words[8] % 2 != 0};
}

void ByteKeys::PutCut(const Cut& cut, FewWordsOut words) {
  std::ranges::fill(words, 0);
  for (size_t i = 0; i < cut.key.size(); ++i) {
    words[i / 8] |= uint64_t{static_cast<uint8_t>(cut.key.view()[i])} << (56 - i % 8 * 8);
  }
  words[8] = 2 * cut.key.size() + (cut.after ? 1 : 0);
}

double ByteKeys::ShareBefore(const Key& low, const Point& point, const Key& high) {
  const std::string_view from = low.view();
  const std::string_view key = point.key.view();
  const std::string_view to = high.view();
  const size_t common = CommonBytes(from, to);
  if (key.substr(0, common) != from.substr(0, common)) return key < from ? 0 : 1;
  const auto number = [common](std::string_view bytes) { return NumberFrom(bytes.substr(common)); };
  return IntegerKeys::ShareBefore(number(from), number(key), number(to));
}

}  // namespace gannet::index::shared_leaf
