#include "rdma/sim/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <vector>

#include "base/check.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#ifndef __x86_64__
#error "the simulation's fibers are written for x86-64"
#endif

// void gannet_fiber_switch(void** save, void* load): pushes the callee-saved registers to the old stack and pops them
// from the new one. A jump instead of a return does not disturb the processor's return predictor.
asm(R"(
.text
.globl gannet_fiber_switch
.type gannet_fiber_switch, @function
gannet_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
.size gannet_fiber_switch, . - gannet_fiber_switch
)");
extern "C" void gannet_fiber_switch(void** save, void* load);

namespace gannet::rdma::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kStackBytes = 2 << 20;  // sanitizers make frames several times as large
#else
constexpr size_t kStackBytes = 512 << 10;
#endif
constexpr size_t kGuardBytes = 4096;
constexpr int kSavedRegisters = 6;

// Free stacks of this thread.
std::vector<std::byte*>& FreeStacks() {
  thread_local std::vector<std::byte*> stacks;
  return stacks;
}

std::byte* TakeStack() {
  std::vector<std::byte*>& free = FreeStacks();
  if (!free.empty()) {
    std::byte* stack = free.back();
    free.pop_back();
    return stack;
  }
  void* map = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  // The program's handler for lack of memory, if it has one; it does not return.
  if (const std::new_handler handler = std::get_new_handler(); map == MAP_FAILED && handler != nullptr) handler();
  GANNET_CHECK(map != MAP_FAILED, "no address space for a stack of %d bytes", kStackBytes);
  GANNET_CHECK(mprotect(map, kGuardBytes, PROT_NONE) == 0, "cannot protect a stack's end");
  return static_cast<std::byte*>(map) + kGuardBytes;
}

thread_local Fiber* going_to = nullptr;  // during a switch
thread_local Fiber* coming_from = nullptr;

}  // namespace

Fiber::~Fiber() {
  if (stack_ == nullptr) return;
#ifdef __SANITIZE_THREAD__
  __tsan_destroy_fiber(tsan_fiber_);
#endif
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(stack_, kStackBytes);  // its last frames never returned
#endif
  FreeStacks().push_back(stack_);
}

void Fiber::Prepare(Entry entry, void* argument) {
  entry_ = entry;
  argument_ = argument;
  stack_ = TakeStack();
  bottom_ = stack_;
  size_ = kStackBytes;
#ifdef __SANITIZE_THREAD__
  tsan_fiber_ = __tsan_create_fiber(0);
#endif
  // The stack looks as if Begin had been called, without a caller, and had then called the switch.
  auto* top = reinterpret_cast<uintptr_t*>(stack_ + kStackBytes);
  *--top = 0;
  *--top = reinterpret_cast<uintptr_t>(&Fiber::Begin);
  for (int i = 0; i < kSavedRegisters; ++i) *--top = 0;
  stack_pointer_ = top;
}

void Fiber::Abandon() {
#ifdef __SANITIZE_ADDRESS__
  if (stack_ != nullptr) __lsan_register_root_region(stack_, kStackBytes);
#endif
  stack_ = nullptr;
}

void Fiber::Switch(Fiber* from, Fiber* to) {
  going_to = to;
  coming_from = from;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(from->finished_ ? nullptr : &from->fake_stack_, to->bottom_, to->size_);
#endif
#ifdef __SANITIZE_THREAD__
  if (from->tsan_fiber_ == nullptr) from->tsan_fiber_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to->tsan_fiber_, 0);
#endif
  gannet_fiber_switch(&from->stack_pointer_, to->stack_pointer_);
  from->Arrived();
}

void Fiber::Arrived() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake_stack_, &coming_from->bottom_, &coming_from->size_);
#endif
}

void Fiber::Begin() {
  Fiber* self = going_to;
  self->Arrived();
  self->entry_(self->argument_);
  GANNET_CHECK(false, "a fiber's entry returned");
}

}  // namespace gannet::rdma::sim
