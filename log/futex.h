// Sleeping until a word changes, with a time limit, across threads of one process.
#pragma once

#include <atomic>
#include <cstdint>

namespace gannet::log {

// Sleeps while *word == expected, at most `nanos`. May return early for no reason.
void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t nanos);
void FutexWakeAll(const std::atomic<uint32_t>& word);

}  // namespace gannet::log
