#include "cli/interrupt.h"

#include <csignal>

namespace gannet::cli {
namespace {

std::atomic<bool> g_requested{false};
std::atomic<int> g_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void OnSignal(int signal) {
  g_signal.store(signal, std::memory_order_relaxed);
  g_requested.store(true, std::memory_order_relaxed);
}

void Install(int signal, bool once) {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  if (once) action.sa_flags |= static_cast<int>(SA_RESETHAND);  // the second signal meets the default action
  sigaction(signal, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard(SecondSigterm second) {
  Install(SIGINT, /*once=*/true);
  Install(SIGTERM, /*once=*/second == SecondSigterm::kEnds);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>& InterruptGuard::requested() {
  return g_requested;
}

int InterruptGuard::signal() {
  return g_signal.load(std::memory_order_relaxed);
}

}  // namespace gannet::cli
