#include "tpcc/deck.h"

#include "gtest/gtest.h"

namespace gannet::tpcc {
namespace deck_test {

TEST(DeckTest, EveryRoundHoldsTheMix) {
  Random random(1);
  const std::array<int, kProcedures> mix = {45, 43, 4, 5, 3};
  Deck deck(mix);
  for (int round = 0; round < 10; ++round) {
    std::array<int, kProcedures> dealt{};
    for (int i = 0; i < Deck::kCards; ++i) ++dealt[static_cast<size_t>(deck.Deal(random))];
    EXPECT_EQ(dealt, mix);
  }
}

TEST(DeckTest, RoundsDiffer) {
  Random random(2);
  Deck deck({50, 50, 0, 0, 0});
  std::vector<Procedure> first, second;
  for (int i = 0; i < Deck::kCards; ++i) first.push_back(deck.Deal(random));
  for (int i = 0; i < Deck::kCards; ++i) second.push_back(deck.Deal(random));
  EXPECT_NE(first, second);
}

TEST(DeckTest, OneProcedureOnly) {
  Random random(3);
  Deck deck({0, 0, 0, 0, 100});
  for (int i = 0; i < 2 * Deck::kCards; ++i) EXPECT_EQ(deck.Deal(random), Procedure::kStockLevel);
}

}  // namespace deck_test
}  // namespace gannet::tpcc
