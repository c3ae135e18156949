// The shm fabric: nodes are threads of one process, or processes of one machine that map the same file.
//
// One-sided verbs are copies and CPU atomics done by the caller, so they finish at once. A CALL goes through a ring of
// message slots per (channel, node) pair; the server polls for a while, then sleeps on a futex. It promises the
// contract of fabric.h and nothing more: see Options::adversarial.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "rdma/fabric.h"

namespace gannet::rdma {

struct ShmOptions {
  int num_nodes = 1;                            // at most kMaxShmNodes
  uint64_t bytes_per_node = uint64_t{1} << 30;  // address space of a node's memory; only touched pages use memory
  uint32_t read_only_percent = kDefaultReadOnlyPercent;  // part that others can only READ (heap_parts.h)
  // READs and WRITEs access their lines in random order and sometimes yield the CPU between two lines. So properties
  // that the contract does not promise do not hold by chance.
  bool adversarial = false;
  uint64_t seed = 1;  // of the adversary
  // The processes of Share must agree on these, too: the version of their protocol, and a hash of their common
  // configuration.
  uint64_t protocol = 0;
  uint64_t configuration = 0;
};

inline constexpr int kMaxShmNodes = 64;
inline constexpr int kMaxShmChannelsPerNode = 127;  // lock words have another use for number 127

class ShmFabric : public Fabric {
 public:
  // All nodes within this process, over anonymous memory (huge pages where the kernel grants them).
  static StatusOr<std::unique_ptr<ShmFabric>> InProcess(const ShmOptions& options);
  // One memory file for many processes. Create makes it (AlreadyExists if the path exists; the file is removed when the
  // returned object is destroyed), Join maps an existing one (NotFound; FailedPrecondition if its format is another).
  static StatusOr<std::unique_ptr<ShmFabric>> Create(const std::string& path, const ShmOptions& options);
  static StatusOr<std::unique_ptr<ShmFabric>> Join(const std::string& path);

  // Called by processes that start in any order. Joins the memory file if other processes use it, and creates it
  // otherwise, replacing a file whose processes have all ended. The last process to leave removes it.
  // FailedPrecondition: the processes that use it have other options.
  static StatusOr<std::unique_ptr<ShmFabric>> Share(const std::string& path, const ShmOptions& options);

  // Number of times that node `id` has been attached.
  virtual uint64_t Attachments(NodeId id) const = 0;

  // Kills node `id` at once. For tests. Its memory stops answering and its handlers stop; nothing is cleaned up.
  virtual void Kill(NodeId id) = 0;
};

}  // namespace gannet::rdma
