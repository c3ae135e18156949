// Choices: enumerates the possible answers to the open questions of a history. A try asks Pick at each question; Next
// moves on to answers that were not tried yet. Equal answers must lead to the same next question, with the same options
// in the same order. Only then trying all of them is a proof.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace gannet::scenario {

class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed) {}

  // Picks one of `options` (> 0). The first pick is 0, which is the most likely answer.
  size_t Pick(size_t options) {
    if (options < 2) return 0;
    if (drawing_) return random_.Below(options);
    if (next_ == path_.size()) path_.push_back({0, options});
    return path_[next_++].chosen;
  }

  // Moves to the next path, depth first. Returns false if all have been tried.
  bool Next() {
    drawing_ = false;
    next_ = 0;
    while (!path_.empty() && ++path_.back().chosen == path_.back().options) path_.pop_back();
    return !path_.empty();
  }
  // Draws all answers at random from now on. For histories with too many paths.
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
