#include "log/format/crc32c.h"

#include <algorithm>
#include <climits>

#include "isa-l/crc.h"

namespace gannet::log {

uint32_t Crc32c(std::span<const std::byte> data, uint32_t before) {
  // isa-l inverts neither its initial value nor its result, takes the length as an int, and lacks a const.
  uint32_t crc = ~before;
  while (!data.empty()) {
    const size_t part = std::min<size_t>(data.size(), INT_MAX);
    auto* bytes = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(data.data()));
    crc = crc32_iscsi(bytes, static_cast<int>(part), crc);
    data = data.subspan(part);
  }
  return ~crc;
}

}  // namespace gannet::log
