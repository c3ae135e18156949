// On which CPU a disk reports what it has done.
//
// A disk with one queue interrupts one CPU, whoever asked it. A thread that waits elsewhere is woken from there, by an
// interrupt from CPU to CPU, and so is the part of the kernel that issues the flush after the write; on a virtual
// machine each of these is an exit. A disk with a queue for each CPU reports where it was asked, and it does not
// matter.
#pragma once

#include <optional>
#include <string>

namespace gannet::log {

// Of the disk that holds the file or directory `path`. Nothing if there is no such one CPU, or the system does not
// tell. It may change while the program runs (an administrator, irqbalance). Some file reads: not for every write.
std::optional<int> CompletionCpuOf(const std::string& path);

// As CompletionCpuOf, for a device number. `root`: where the system's sys/ and proc/ are, with a slash at the end.
std::optional<int> CompletionCpuOfDevice(unsigned major, unsigned minor, const std::string& root);

}  // namespace gannet::log
