// Layout of the memory that the nodes of a shm cluster share. It uses offsets and no pointers, because each process
// maps it at another address.
//
//   ClusterHeader                    what was created; constant afterwards
//   NodeControl   [num_nodes]        the node's holder, its doorbell, which channels have called it
//   ChannelArea   [num_nodes][128]   the call slots and messages of a channel; the channel's node owns it
//   memory        [num_nodes]        each starts on a huge page: one header page, then the heap's parts (heap_parts.h)
//
// The phase of a slot is the state of its call. Only the named party ends a phase:
//
//            client                 server               server
//   kFree ----------> kRequested ----------> kRunning ----------> kDone --> kFree (client)
//     ^                   | client gave up (timeout, death): by CAS, so the server runs it or never sees it
//     +-------------------+
//
// A client that gives up while the phase is kRunning does not use the slot until it is kDone or the server's process
// has ended, because the handler may still write the response.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "rdma/fabric.h"
#include "rdma/shm/shm_fabric.h"

namespace gannet::rdma::shm {

inline constexpr uint64_t kMagic = 0x31306d6873746e67;  // "gntshm01"
inline constexpr uint64_t kFormatVersion = 6;
inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint64_t kHugePageBytes = 2 << 20;
// The first page of a node's memory is unused: offset 0 must never be an object, so the range check finds accesses to
// it.
inline constexpr uint64_t kHeapOffset = kPageBytes;

struct ClusterHeader {
  uint64_t magic;
  uint64_t format_version;
  uint64_t num_nodes;
  uint64_t bytes_per_node;
  uint64_t read_only_percent;
  uint64_t adversarial;
  uint64_t seed;
  uint64_t protocol;
  uint64_t configuration;
};

// A node's state word: how many times it was attached, and its phase. A channel or server remembers the word of its own
// attachment; one comparison tells whether that is still valid.
enum class NodePhase : uint8_t { kEmpty = 0, kAttached = 1, kLeft = 2, kDead = 3 };
constexpr uint64_t NodeWord(uint64_t incarnation, NodePhase phase) {
  return incarnation << 8 | static_cast<uint64_t>(phase);
}
constexpr NodePhase PhaseOf(uint64_t node_word) {
  return static_cast<NodePhase>(node_word & 0xff);
}
constexpr uint64_t IncarnationOf(uint64_t node_word) {
  return node_word >> 8;
}

inline constexpr int kShmChannelSlots = 128;  // of a node; kMaxShmChannelsPerNode are used
static_assert(kMaxShmChannelsPerNode <= kShmChannelSlots);
inline constexpr int kMaxChannels = kMaxShmNodes * kShmChannelSlots;  // of the whole cluster
inline constexpr int kCallSlots = 32;                                 // calls of one channel in flight
inline constexpr int kCallsPerNode = 8;                               // of them, to one node

// The values that a channel is going to store into a line. The channel writes them here before, so that other processes
// can complete the store if the channel's process dies during it (torn_lines.h). Only the channel uses the note or,
// when its process has ended, the holder of the AttachLock.
struct alignas(2 * kLineBytes) StoreNote {
  std::byte image[kLineBytes];
  uint64_t place;  // of the line, from the memory of node 0 on; the last bits are how many words of it are stored
};
// First word of the line during the store: names the channel.
constexpr uint64_t BusyMarker(NodeId node, uint16_t channel) {
  return kFirstLineBusy + uint64_t{node} * kShmChannelSlots + channel;
}
static_assert(BusyMarker(kMaxShmNodes - 1, kShmChannelSlots - 1) < kLineBusy);

struct NodeControl {
  // Read by every verb, written when the node attaches or leaves.
  alignas(kLineBytes) std::atomic<uint64_t> word;
  std::atomic<uint64_t> pid;
  std::atomic<uint64_t> start_time;

  // Server threads that sleep wait for `doorbell` to change; a client rings it only if there are sleepers.
  alignas(kLineBytes) std::atomic<uint32_t> doorbell;
  std::atomic<uint32_t> sleepers;

  // The channels that have requests here: one bit per channel (node * 128 + index), and per channel one bit per slot. A
  // client sets the slot's bit, then the channel's; a server clears the channel's, then checks the slots' bits, so no
  // request is overlooked. A bit is a hint only: the slot's phase decides.
  alignas(kLineBytes) std::atomic<uint64_t> ready_channels[kMaxChannels / 64];
  struct alignas(kLineBytes) ReadySlots {
    std::atomic<uint64_t> bits;
  };
  ReadySlots ready_slots[kMaxChannels];

  StoreNote stores[kShmChannelSlots];  // by the channels of this node
};

enum class CallPhase : uint8_t { kFree = 0, kRequested = 1, kRunning = 2, kDone = 3 };
// A slot's state word names the server too, so that a stale ready bit at another server starts nothing.
constexpr uint64_t CallWord(uint64_t sequence, NodeId server, CallPhase phase) {
  return sequence << 24 | uint64_t{server} << 8 | static_cast<uint64_t>(phase);
}
constexpr CallPhase PhaseOfCall(uint64_t call_word) {
  return static_cast<CallPhase>(call_word & 0xff);
}
constexpr NodeId ServerOf(uint64_t call_word) {
  return static_cast<NodeId>(call_word >> 8 & 0xffff);
}
constexpr uint64_t WithPhase(uint64_t call_word, CallPhase phase) {
  return (call_word & ~uint64_t{0xff}) | static_cast<uint64_t>(phase);
}

// The fields after `word` belong to the party that ends the current phase.
struct alignas(kLineBytes) CallSlot {
  std::atomic<uint64_t> word;
  uint32_t method;
  uint32_t request_bytes;
  uint64_t server_word;     // state word of the server's attachment for which the request is
  uint32_t status_code;     // absl::StatusCode
  uint32_t response_bytes;  // if status_code is not Ok: of the message, which lies where the response would
  uint64_t done_nanos;      // when the handler had ended; all processes of a machine share the clock
};

struct ChannelArea {
  CallSlot slots[kCallSlots];
  alignas(kPageBytes) std::byte requests[kCallSlots][kMaxMessageBytes];
  std::byte responses[kCallSlots][kMaxMessageBytes];
};

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

struct Geometry {
  uint64_t num_nodes;
  uint64_t bytes_per_node;

  uint64_t controls_offset() const { return kPageBytes; }
  uint64_t channels_offset() const { return RoundUp(controls_offset() + num_nodes * sizeof(NodeControl), kPageBytes); }
  uint64_t memory_offset() const {
    return RoundUp(channels_offset() + num_nodes * kShmChannelSlots * sizeof(ChannelArea), kHugePageBytes);
  }
  uint64_t memory_stride() const { return RoundUp(bytes_per_node, kHugePageBytes); }
  uint64_t total_bytes() const { return memory_offset() + num_nodes * memory_stride(); }
};

}  // namespace gannet::rdma::shm
