// The file that describes a cluster of long-lived processes; docs/cluster.md explains every key.
//
// It is read strictly: a key that is unknown, missing or of the wrong type, a value out of range, and an id that is
// there twice are errors that name the file, the line, the key, and what to write instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

namespace gannet::cli {

enum class FabricKind { kShm, kVerbs };

// How one learns that verbs are done.
enum class Completions : uint8_t {
  kPoll,      // by looking all the time
  kAdaptive,  // workers by looking; server threads by looking for a while, then they sleep
  kEvents,    // whoever waits sleeps
};

struct ServerConfig {
  std::string name = {};     // as logs call it; "node <id>" by default
  std::string address = {};  // host:port; with verbs only
  std::string device = {};   // with verbs: what the RDMA device behind the address has to be; empty: any
  int port = 0;              // likewise, of the device; 0: any
  int gid = -1;              // likewise, of the port; -1: any
  uint64_t memory = 0;       // bytes for its share of the data
  int server_threads = 1;
};

struct TpccConfig {
  int warehouses = 0;
  uint64_t seed = 1;  // of the population
  uint32_t items = 0;
  uint32_t customers_per_district = 0;
};

struct VerbsConfig {
  std::string secret_file = {};  // empty: the secret is in the environment
  uint64_t client_memory = 0;
  Completions completions = Completions::kAdaptive;
  absl::Duration silence_limit = absl::Seconds(5);
};

struct ClusterConfig {
  std::string file = {};  // where it was read from
  FabricKind fabric = FabricKind::kShm;
  std::string memory_file = {};  // shm
  VerbsConfig verbs = {};
  int client_slots = 0;                    // clients that may be attached at once
  int read_only_percent = 0;               // of every node's memory: its indexes, which others only READ
  std::vector<ServerConfig> servers = {};  // by id
  TpccConfig tpcc = {};

  int num_servers() const { return static_cast<int>(servers.size()); }
  int num_nodes() const { return num_servers() + client_slots; }
  // The server of this id or name. NotFound tells which there are.
  StatusOr<int> FindServer(const std::string& id_or_name) const;
  // Of everything that all processes have to agree on.
  uint64_t Hash() const;
};

StatusOr<ClusterConfig> ReadClusterConfig(const std::string& file);
// `file` is the name for errors.
StatusOr<ClusterConfig> ParseClusterConfig(std::string_view text, const std::string& file);

}  // namespace gannet::cli
