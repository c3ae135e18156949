// Keys of the tables. The warehouse is in the top 16 bits of every integer key and in the first two bytes of every byte
// key, so that one function finds the owner of any of them (schema.h).
//
//   warehouse          | w 16 | 0                               |
//   district           | w 16 | d 8 | 0                         |
//   customer           | w 16 | d 8 | c 40                      |
//   stock              | w 16 | i 48                            |
//   order, new_order   | w 16 | d 8 | o 40                      |
//   order_line         | w 16 | d 8 | o 32        | line 8      |   lines are numbered from 1
//   order_by_customer  | w 16 | d 4 | c 12 | o 32               |
//   history            | w 16 | d 8 | worker 8    | sequence 32 |   w, d: where the payment was made
//   item               | i 64                                   |   replicated: has no owner
//   customer_by_name   2 bytes w, 1 byte d, 16 bytes C_LAST, 16 bytes C_FIRST, 4 bytes c; numbers are big-endian
//
// Resulting limits: 65,535 warehouses, order numbers below 2^32, 4,095 customers per district.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "index/key.h"
#include "tpcc/schema/rows.h"

namespace gannet::tpcc {

inline constexpr uint32_t kMaxWarehouses = 65535;
inline constexpr uint32_t kMaxCustomersPerDistrict = 4095;
inline constexpr uint32_t kMaxOrderId = UINT32_MAX;
// The creator of a history row: the loader, or a worker of the home warehouse's node.
inline constexpr uint32_t kLoaderWorker = 0;
inline constexpr uint32_t kFirstWorker = 1;
inline constexpr uint32_t kLastWorker = 255;

constexpr uint64_t WarehouseKey(uint32_t w) {
  return uint64_t{w} << 48;
}
constexpr uint64_t DistrictKey(uint32_t w, uint32_t d) {
  return WarehouseKey(w) | uint64_t{d} << 40;
}
constexpr uint64_t CustomerKey(uint32_t w, uint32_t d, uint32_t c) {
  return DistrictKey(w, d) | c;
}
constexpr uint64_t StockKey(uint32_t w, uint32_t i) {
  return WarehouseKey(w) | i;
}
constexpr uint64_t OrderKey(uint32_t w, uint32_t d, uint32_t o) {
  return DistrictKey(w, d) | o;
}
constexpr uint64_t OrderLineKey(uint32_t w, uint32_t d, uint32_t o, uint32_t line) {
  return DistrictKey(w, d) | uint64_t{o} << 8 | line;
}
constexpr uint64_t OrderByCustomerKey(uint32_t w, uint32_t d, uint32_t c, uint32_t o) {
  return WarehouseKey(w) | uint64_t{d} << 44 | uint64_t{c} << 32 | o;
}
constexpr uint64_t HistoryKey(uint32_t w, uint32_t d, uint32_t worker, uint32_t sequence) {
  return DistrictKey(w, d) | uint64_t{worker} << 32 | sequence;
}
constexpr uint64_t ItemKey(uint32_t i) {
  return i;
}

// The parts of a key.
constexpr uint32_t WarehouseOf(uint64_t key) {
  return static_cast<uint32_t>(key >> 48);
}
inline uint32_t WarehouseOf(const index::Key& key) {
  if (key.kind() == index::KeyKind::kInteger) return WarehouseOf(key.integer());
  const std::string_view bytes = key.bytes();
  return uint32_t{static_cast<unsigned char>(bytes[0])} << 8 | static_cast<unsigned char>(bytes[1]);
}
// The district in any key with 8 bits for d.
constexpr uint32_t DistrictOf(uint64_t key) {
  return static_cast<uint32_t>(key >> 40) & 0xff;
}
constexpr uint32_t OrderIdOf(uint64_t order_key) {
  return static_cast<uint32_t>(order_key);
}
constexpr uint32_t OrderIdOfLine(uint64_t order_line_key) {
  return static_cast<uint32_t>(order_line_key >> 8);
}
constexpr uint32_t LineOf(uint64_t order_line_key) {
  return static_cast<uint32_t>(order_line_key & 0xff);
}
constexpr uint32_t OrderIdOfCustomer(uint64_t order_by_customer_key) {
  return static_cast<uint32_t>(order_by_customer_key);
}
constexpr uint32_t SequenceOf(uint64_t history_key) {
  return static_cast<uint32_t>(history_key);
}

// A key of customer_by_name. Customers of one last name are adjacent and ordered by first name.
class CustomerNameKey {
 public:
  static constexpr size_t kBytes = 39;

  CustomerNameKey(uint32_t w, uint32_t d, const Text<16>& last, const Text<16>& first, uint32_t c) {
    bytes_[0] = static_cast<char>(w >> 8);
    bytes_[1] = static_cast<char>(w);
    bytes_[2] = static_cast<char>(d);
    std::memcpy(&bytes_[3], last.bytes, sizeof(last.bytes));
    std::memcpy(&bytes_[19], first.bytes, sizeof(first.bytes));
    for (int i = 0; i < 4; ++i) bytes_[35 + i] = static_cast<char>(c >> (24 - 8 * i));
  }
  // The ends of the range of all customers of one last name.
  static CustomerNameKey First(uint32_t w, uint32_t d, const Text<16>& last) { return {w, d, last, Text<16>{}, 0}; }
  static CustomerNameKey Last(uint32_t w, uint32_t d, const Text<16>& last) {
    Text<16> highest;
    std::memset(highest.bytes, 0xff, sizeof(highest.bytes));
    return {w, d, last, highest, UINT32_MAX};
  }

  // Valid as long as this object.
  index::Key key() const { return std::string_view(bytes_.data(), bytes_.size()); }

  static uint32_t CustomerOf(std::string_view key_bytes) {
    uint32_t c = 0;
    for (int i = 0; i < 4; ++i) c = c << 8 | static_cast<unsigned char>(key_bytes[35 + i]);
    return c;
  }

 private:
  std::array<char, kBytes> bytes_;
};

}  // namespace gannet::tpcc
