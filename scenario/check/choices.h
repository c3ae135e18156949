// Choices: goes through the ways in which the open questions of a history can be answered. Whoever tries an answer asks
// Pick at each question; Next moves on to answers that were not tried yet. The same answers must lead to the same next
// question, with the same options in the same order: only then "all have been tried" is a proof.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace gannet::scenario {

class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed) {}

  // One of `options` (> 0); the first time 0, which is the likeliest.
  size_t Pick(size_t options) {
    if (options < 2) return 0;
    if (drawing_) return random_.Below(options);
    if (next_ == path_.size()) path_.push_back({0, options});
    return path_[next_++].chosen;
  }

  // The next path, depth first. False if all have been tried.
  bool Next() {
    drawing_ = false;
    next_ = 0;
    while (!path_.empty() && ++path_.back().chosen == path_.back().options) path_.pop_back();
    return !path_.empty();
  }
  // Draws all answers from now on: there are too many paths.
  void Draw() { drawing_ = true; }

 private:
  struct Question {
    size_t chosen;
    size_t options;
  };
  std::vector<Question> path_;
  size_t next_ = 0;  // in path_
  Random random_;
  bool drawing_ = false;
};

}  // namespace gannet::scenario
