#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gannet::log {

// The standard CRC-32C (Castagnoli): of "123456789" it is 0xe3069283. `before`: of what precedes `data`.
uint32_t Crc32c(std::span<const std::byte> data, uint32_t before = 0);

}  // namespace gannet::log
