// Waits for the training thread of an XStore index.
#pragma once

#include <chrono>
#include <thread>

#include "gtest/gtest.h"
#include "index/xstore/xstore.h"

namespace gannet::index {

// Returns when the model of `*index` is up to date. The test fails if that takes more than a minute: training a test's
// table takes milliseconds, also with a sanitizer.
inline void WaitForTraining(XStore* index) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!index->model_statistics().caught_up) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "the model has not caught up with the index";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace gannet::index
