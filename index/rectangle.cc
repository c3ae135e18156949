#include "index/rectangle.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet::index {
namespace {

Status Wrong(const Rectangle& box, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("rectangle ", box.ToString(), ": ", what));
}

}  // namespace

std::string Rectangle::ToString() const {
  return absl::StrCat("[", min_x, ", ", max_x, "] x [", min_y, ", ", max_y, "]");
}

Status CheckRectangle(const Rectangle& box) {
  using Coordinate = std::pair<const char*, double>;
  for (const auto& [name, value] : {Coordinate{"min_x", box.min_x}, Coordinate{"min_y", box.min_y},
                                    Coordinate{"max_x", box.max_x}, Coordinate{"max_y", box.max_y}}) {
    if (std::isnan(value)) return Wrong(box, absl::StrCat(name, " is not a number"));
    if (std::abs(value) > kMaxCoordinate) {
      return Wrong(box, absl::StrCat(name, " is ", std::isinf(value) ? "infinite" : "too large",
                                     "; coordinates lie between ", -kMaxCoordinate, " and ", kMaxCoordinate));
    }
  }
  if (box.min_x > box.max_x) return Wrong(box, "min_x is greater than max_x");
  if (box.min_y > box.max_y) return Wrong(box, "min_y is greater than max_y");
  return absl::OkStatus();
}

uint64_t OrderedWord(double number) {
  const auto bits = std::bit_cast<uint64_t>(number == 0 ? 0.0 : number);
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}

double NumberOf(uint64_t ordered_word) {
  return std::bit_cast<double>((ordered_word & kSignBit) != 0 ? ordered_word & ~kSignBit : ~ordered_word);
}

std::array<uint64_t, RectangleKey::kWords> RectangleKey::Words() const {
  return {OrderedWord(box.min_x), OrderedWord(box.min_y), OrderedWord(box.max_x), OrderedWord(box.max_y), id};
}

RectangleKeyBytes::RectangleKeyBytes(const RectangleKey& key) {
  size_t at = 0;
  for (const uint64_t word : key.Words()) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes_[at++] = static_cast<char>(word >> shift);
  }
}

StatusOr<RectangleKeyBytes> EncodeRectangleKey(const Rectangle& box, uint64_t id) {
  GANNET_RETURN_IF_ERROR(CheckRectangle(box));
  return RectangleKeyBytes({box, id});
}

StatusOr<RectangleKey> DecodeRectangleKey(const Key& key) {
  if (key.kind() != KeyKind::kBytes || key.size() != RectangleKey::kBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a key of ", key.size(), " bytes is no rectangle: it needs ",
                                                   RectangleKey::kBytes, ", as EncodeRectangleKey makes them"));
  }
  std::array<uint64_t, RectangleKey::kWords> words{};
  for (size_t i = 0; i < RectangleKey::kBytes; ++i) {
    words[i / sizeof(uint64_t)] = words[i / sizeof(uint64_t)] << 8 | static_cast<uint8_t>(key.bytes()[i]);
  }
  const RectangleKey decoded{{NumberOf(words[0]), NumberOf(words[1]), NumberOf(words[2]), NumberOf(words[3])},
                             words[4]};
  GANNET_RETURN_IF_ERROR(CheckRectangle(decoded.box));
  // -0.0 has bytes that no encoder makes.
  if (decoded.Words() != words) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", key.ToString(), " is no rectangle: EncodeRectangleKey does not make these bytes"));
  }
  return decoded;
}

}  // namespace gannet::index
