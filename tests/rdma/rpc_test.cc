#include "rdma/rpc.h"

#include <array>
#include <cstddef>
#include <vector>

#include "gtest/gtest.h"

namespace gannet::rdma {
namespace rpc_test {

TEST(Wire, ReadsWhatWasWritten) {
  std::array<std::byte, 64> buffer;
  WireWriter writer(buffer);
  writer.PutU8(1);
  writer.PutU16(0x0203);
  writer.PutU32(0x04050607);
  writer.PutU64(0x08090a0b0c0d0e0f);
  writer.PutString("key");
  writer.PutString("");
  writer.PutAddress(GlobalAddress(3, 64));
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(writer.Finish().value(), 1u + 2 + 4 + 8 + 4 + 3 + 4 + 8);

  WireReader reader(writer.written());
  EXPECT_EQ(reader.GetU8(), 1);
  EXPECT_EQ(reader.GetU16(), 0x0203);
  EXPECT_EQ(reader.GetU32(), 0x04050607u);
  EXPECT_EQ(reader.GetU64(), 0x08090a0b0c0d0e0fu);
  EXPECT_EQ(reader.GetString(), "key");
  EXPECT_EQ(reader.GetString(), "");
  EXPECT_EQ(reader.GetAddress(), GlobalAddress(3, 64));
  EXPECT_TRUE(reader.Finish().ok());
}

TEST(Wire, EveryCutOfAMessageIsRefused) {
  std::array<std::byte, 32> buffer;
  WireWriter writer(buffer);
  writer.PutU32(7);
  writer.PutString("abc");
  for (size_t cut = 0; cut < writer.size(); ++cut) {
    WireReader reader(writer.written().first(cut));
    reader.GetU32();
    EXPECT_TRUE(reader.GetBytes().empty()) << cut;
    EXPECT_EQ(reader.Finish().code(), absl::StatusCode::kInvalidArgument) << cut;
  }
}

TEST(Wire, AnErrorSticks) {
  const std::array<std::byte, 6> message{std::byte{255}, std::byte{255}, std::byte{255}, std::byte{255}, std::byte{1}};
  WireReader reader(message);
  EXPECT_TRUE(reader.GetBytes().empty());  // claims 4 GiB
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.GetU8(), 0);  // although two bytes are left
}

TEST(Wire, LeftoverBytesAreRefused) {
  const std::array<std::byte, 5> message{};
  WireReader reader(message);
  reader.GetU32();
  EXPECT_EQ(reader.Finish().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Wire, AWriterNeverPassesItsBuffer) {
  std::vector<std::byte> buffer(10, std::byte{0xee});
  WireWriter writer({buffer.data(), 8});
  writer.PutU32(1);
  writer.PutU64(2);  // does not fit
  writer.PutU8(3);   // would fit, but the message is invalid already
  EXPECT_FALSE(writer.ok());
  EXPECT_EQ(writer.Finish().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(buffer[4], std::byte{0xee});
  EXPECT_EQ(buffer[9], std::byte{0xee});
}

TEST(Wire, ReserveIsFilledInPlace) {
  std::array<std::byte, 16> buffer{};
  WireWriter writer(buffer);
  std::span<std::byte> part = writer.Reserve(3);
  ASSERT_EQ(part.size(), 3u);
  part[2] = std::byte{9};
  EXPECT_TRUE(writer.Reserve(14).empty());
  EXPECT_FALSE(writer.ok());
  WireReader reader(writer.written());
  EXPECT_EQ(reader.GetRaw(3)[2], std::byte{9});
}

}  // namespace rpc_test
}  // namespace gannet::rdma
