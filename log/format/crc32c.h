#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gannet::log {

// The standard CRC-32C (Castagnoli): the CRC of "123456789" is 0xe3069283. `before`: CRC of the bytes that precede
// `data`.
uint32_t Crc32c(std::span<const std::byte> data, uint32_t before = 0);

}  // namespace gannet::log
