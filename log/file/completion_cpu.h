// The CPU on which a disk reports completions.
//
// A disk with one queue interrupts one CPU, whichever CPU submitted the request. A thread that waits on another CPU is
// woken from there by an interrupt between CPUs, and so is the part of the kernel that issues the flush after the
// write. On a virtual machine each of these interrupts is an exit. A disk with a queue per CPU reports on the
// submitting CPU, and the choice does not matter.
#pragma once

#include <optional>
#include <string>

namespace gannet::log {

// CPU of the disk that holds the file or directory `path`. Empty: there is no single CPU, or the system does not tell.
// It may change while the program runs (an administrator, irqbalance). Costs some file reads, so do not call it for
// every write.
std::optional<int> CompletionCpuOf(const std::string& path);

// Like CompletionCpuOf, for a device number. `root`: directory of the system's sys/ and proc/, with a slash at the end.
std::optional<int> CompletionCpuOfDevice(unsigned major, unsigned minor, const std::string& root);

}  // namespace gannet::log
