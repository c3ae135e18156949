#include "cli/common/interrupt.h"

#include <csignal>

#include "cli/common/exit_codes.h"

namespace gannet::cli {
namespace {

std::atomic<bool> g_requested{false};
std::atomic<bool> g_requested_again{false};
std::atomic<int> g_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void OnSignal(int signal) {
  int none = 0;
  g_signal.compare_exchange_strong(none, signal, std::memory_order_relaxed);
  g_requested.store(true, std::memory_order_relaxed);
}

void OnSignalTwice(int signal) {
  if (!g_requested.load(std::memory_order_relaxed)) return OnSignal(signal);
  g_requested_again.store(true, std::memory_order_relaxed);
  std::signal(signal, SIG_DFL);
}

void Install(int signal, void (*handler)(int), bool once) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  if (once) action.sa_flags |= static_cast<int>(SA_RESETHAND);  // the second has its default action
  sigaction(signal, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard(Second second) {
  const bool noted = second == Second::kIsNoted;
  Install(SIGINT, noted ? OnSignalTwice : OnSignal, /*once=*/!noted);
  Install(SIGTERM, noted ? OnSignalTwice : OnSignal, /*once=*/second == Second::kEnds);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>& InterruptGuard::requested() {
  return g_requested;
}

const std::atomic<bool>& InterruptGuard::requested_again() {
  return g_requested_again;
}

int InterruptGuard::signal() {
  return g_signal.load(std::memory_order_relaxed);
}

int InterruptGuard::exit_code() {
  return kExitSignal + signal();
}

}  // namespace gannet::cli
