#include "tpcc/schema/keys.h"

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tpcc/schema/schema.h"

namespace gannet::tpcc {
namespace keys_test {

TEST(KeysTest, PartsComeBack) {
  for (const uint32_t w : {1u, 2u, 255u, 256u, kMaxWarehouses}) {
    for (const uint32_t d : {1u, 10u}) {
      for (const uint32_t o : {1u, 3001u, kMaxOrderId}) {
        EXPECT_EQ(WarehouseOf(OrderKey(w, d, o)), w);
        EXPECT_EQ(DistrictOf(OrderKey(w, d, o)), d);
        EXPECT_EQ(OrderIdOf(OrderKey(w, d, o)), o);
        EXPECT_EQ(WarehouseOf(OrderLineKey(w, d, o, 15)), w);
        EXPECT_EQ(DistrictOf(OrderLineKey(w, d, o, 15)), d);
        EXPECT_EQ(OrderIdOfLine(OrderLineKey(w, d, o, 15)), o);
        EXPECT_EQ(LineOf(OrderLineKey(w, d, o, 15)), 15u);
        EXPECT_EQ(WarehouseOf(OrderByCustomerKey(w, d, kMaxCustomersPerDistrict, o)), w);
        EXPECT_EQ(OrderIdOfCustomer(OrderByCustomerKey(w, d, kMaxCustomersPerDistrict, o)), o);
        EXPECT_EQ(WarehouseOf(HistoryKey(w, d, kLastWorker, o)), w);
        EXPECT_EQ(SequenceOf(HistoryKey(w, d, kLastWorker, o)), o);
      }
      EXPECT_EQ(WarehouseOf(StockKey(w, 100000)), w);
      EXPECT_EQ(WarehouseOf(CustomerKey(w, d, 3000)), w);
    }
  }
}

// Keys must sort by their parts, in the given order.
TEST(KeysTest, SortAsTheirParts) {
  EXPECT_LT(OrderLineKey(1, 1, 1, 0xff), OrderLineKey(1, 1, 2, 0));
  EXPECT_LT(OrderLineKey(1, 1, kMaxOrderId, 0xff), OrderLineKey(1, 2, 0, 0));
  EXPECT_LT(OrderLineKey(1, 10, kMaxOrderId, 0xff), OrderLineKey(2, 1, 0, 0));
  EXPECT_LT(OrderByCustomerKey(1, 1, 7, kMaxOrderId), OrderByCustomerKey(1, 1, 8, 0));
  EXPECT_LT(OrderByCustomerKey(1, 1, kMaxCustomersPerDistrict, kMaxOrderId), OrderByCustomerKey(1, 2, 1, 0));
  EXPECT_LT(OrderByCustomerKey(1, 10, kMaxCustomersPerDistrict, kMaxOrderId), OrderByCustomerKey(2, 1, 1, 0));
  EXPECT_LT(HistoryKey(1, 1, 1, UINT32_MAX), HistoryKey(1, 1, 2, 0));
  EXPECT_LT(HistoryKey(1, 1, kLastWorker, UINT32_MAX), HistoryKey(1, 2, 0, 0));
  EXPECT_LT(OrderKey(1, 9, kMaxOrderId), OrderKey(1, 10, 0));
}

Text<16> Name(std::string_view text) {
  Text<16> name;
  name.Assign(text);
  return name;
}

TEST(CustomerNameKeyTest, SortsByLastThenFirstThenNumber) {
  const std::vector<CustomerNameKey> sorted = {
      {1, 1, Name("ABLE"), Name("zoe"), 9},    {1, 1, Name("ABLEABLE"), Name("amy"), 1},
      {1, 1, Name("BAR"), Name("amy"), 255},   {1, 1, Name("BAR"), Name("amy"), 256},
      {1, 1, Name("BAR"), Name("amyamy"), 1},  {1, 1, Name("BAR"), Name("bob"), 1},
      {1, 2, Name("ABLE"), Name("amy"), 1},    {2, 1, Name("ABLE"), Name("amy"), 1},
      {255, 1, Name("ABLE"), Name("amy"), 1},  {256, 1, Name("ABLE"), Name("amy"), 1},
      {65535, 1, Name("ABLE"), Name("amy"), 1}};
  for (size_t i = 1; i < sorted.size(); ++i) EXPECT_TRUE(sorted[i - 1].key() < sorted[i].key()) << i;
}

TEST(CustomerNameKeyTest, PartsComeBack) {
  const CustomerNameKey key(258, 3, Name("BARBARBAR"), Name("first"), 0x01020304);
  EXPECT_EQ(key.key().size(), CustomerNameKey::kBytes);
  EXPECT_EQ(WarehouseOf(key.key()), 258u);
  EXPECT_EQ(CustomerNameKey::CustomerOf(key.key().bytes()), 0x01020304u);
}

TEST(CustomerNameKeyTest, RangeHoldsOneLastNameOnly) {
  const CustomerNameKey first = CustomerNameKey::First(1, 2, Name("BAR"));
  const CustomerNameKey last = CustomerNameKey::Last(1, 2, Name("BAR"));
  auto inside = [&](const CustomerNameKey& key) { return !(key.key() < first.key()) && !(last.key() < key.key()); };
  EXPECT_TRUE(inside({1, 2, Name("BAR"), Name("a"), 1}));
  EXPECT_TRUE(inside({1, 2, Name("BAR"), Name("zzzzzzzzzzzzzzzz"), 3000}));
  EXPECT_FALSE(inside({1, 2, Name("BARBAR"), Name("a"), 1}));
  EXPECT_FALSE(inside({1, 2, Name("BA"), Name("zzz"), 1}));
  EXPECT_FALSE(inside({1, 3, Name("BAR"), Name("a"), 1}));
}

TEST(PlacementTest, OnlyDataNodesOwnWarehouses) {
  EXPECT_EQ(WarehousesOfNode(7, 3, 4), 1u);
  EXPECT_EQ(WarehousesOfNode(7, 4, 4), 0u);
}

TEST(PlacementTest, WarehousesAreDealtToNodes) {
  const txn::Placement placement = PlacementByWarehouse();
  for (const int nodes : {1, 2, 3}) {
    std::vector<uint32_t> owned(static_cast<size_t>(nodes));
    for (uint32_t w = 1; w <= 7; ++w) {
      const rdma::NodeId owner = placement.owner(StockKey(w, 5), nodes);
      ASSERT_LT(owner, nodes);
      ++owned[owner];
      EXPECT_EQ(owner, OwnerOfWarehouse(w, nodes));
      const CustomerNameKey name(w, 1, Name("BAR"), Name("a"), 1);
      EXPECT_EQ(placement.owner(name.key(), nodes), owner);
      EXPECT_EQ(placement.range_owner(OrderLineKey(w, 1, 0, 0), OrderLineKey(w, 9, 0, 0), nodes), owner);
    }
    for (rdma::NodeId n = 0; n < nodes; ++n) EXPECT_EQ(owned[n], WarehousesOfNode(7, n, nodes));
  }
  EXPECT_EQ(placement.range_owner(OrderKey(1, 1, 0), OrderKey(2, 1, 0), 2), txn::Placement::kSeveralNodes);
}

}  // namespace keys_test
}  // namespace gannet::tpcc
