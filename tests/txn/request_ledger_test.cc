#include "txn/peer/request_ledger.h"

#include "gtest/gtest.h"
#include "txn/record/record.h"

namespace gannet::txn {
namespace request_ledger_test {

using Turn = RequestLedger::Turn;

Caller Named(uint16_t slot, uint64_t number) {
  return {.name = Caller::NameOf(OwnerBits(3, 5), slot), .number = number};
}

TEST(RequestLedgerTest, ANumberIsCarriedOutOnce) {
  RequestLedger ledger;
  {
    RequestLedger::Claim first(&ledger, Named(0, 7));
    ASSERT_EQ(first.turn(), Turn::kRun);
    first.result() = absl::NotFoundError("nothing");
    first.made().push_back({});
  }
  {
    RequestLedger::Claim again(&ledger, Named(0, 7));
    ASSERT_EQ(again.turn(), Turn::kDone);
    EXPECT_TRUE(absl::IsNotFound(again.result()));
    EXPECT_EQ(again.made().size(), 1u);
  }
  {
    RequestLedger::Claim next(&ledger, Named(0, 9));
    ASSERT_EQ(next.turn(), Turn::kRun);
    EXPECT_TRUE(next.result().ok());
    EXPECT_TRUE(next.made().empty());
  }
  EXPECT_EQ(RequestLedger::Claim(&ledger, Named(0, 7)).turn(), Turn::kLate);
  EXPECT_EQ(RequestLedger::Claim(&ledger, Named(0, 8)).turn(), Turn::kLate);
}

TEST(RequestLedgerTest, WhatIsBeingCarriedOutIsBusyForOthers) {
  RequestLedger ledger;
  RequestLedger::Claim first(&ledger, Named(0, 7));
  EXPECT_EQ(RequestLedger::Claim(&ledger, Named(0, 7)).turn(), Turn::kBusy);
  EXPECT_EQ(RequestLedger::Claim(&ledger, Named(0, 8)).turn(), Turn::kBusy);
  EXPECT_EQ(RequestLedger::Claim(&ledger, Named(0, 6)).turn(), Turn::kLate);
}

TEST(RequestLedgerTest, CallersAreApart) {
  RequestLedger ledger;
  const RequestLedger::Claim first(&ledger, Named(0, 7));
  EXPECT_EQ(RequestLedger::Claim(&ledger, Named(1, 3)).turn(), Turn::kRun);
}

TEST(RequestLedgerTest, ACallersNameKeepsItsOwnerBits) {
  for (const uint16_t slot : {0, 1, 0xffff}) EXPECT_EQ(Named(slot, 1).owner_bits(), OwnerBits(3, 5));
}

}  // namespace request_ledger_test
}  // namespace gannet::txn
