// Deck: chooses the next transaction. 100 cards hold the mix exactly, and are shuffled again when all are dealt, so
// every hundred transactions of a worker have the mix (clause 5.2.4.2).
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "base/random.h"
#include "tpcc/report.h"

namespace gannet::tpcc {

class Deck {
 public:
  static constexpr int kCards = 100;

  // `mix` sums to kCards.
  explicit Deck(const std::array<int, kProcedures>& mix) {
    for (int p = 0; p < kProcedures; ++p) cards_.insert(cards_.end(), mix[p], static_cast<Procedure>(p));
  }

  Procedure Deal(Random& random) {
    if (next_ == 0) std::shuffle(cards_.begin(), cards_.end(), random);
    const Procedure dealt = cards_[next_];
    next_ = (next_ + 1) % cards_.size();
    return dealt;
  }

 private:
  std::vector<Procedure> cards_;
  size_t next_ = 0;
};

}  // namespace gannet::tpcc
