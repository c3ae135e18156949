// The file that describes a cluster of long-lived processes; docs/cluster.md explains every key.
//
// It is read strictly: a key that is unknown, missing or of the wrong type, a value out of range, and an id that is
// used twice are errors that name the file, the line, the key, and what to write instead. A program has its own table
// in the file, say [bank], and reads it by a SectionReader:
//
//   int64_t accounts = 0;
//   const auto read = [&](cluster::Section& section, const cluster::Config&) {
//     return section.NeedInteger("accounts", 2, 1'000'000, "1000", &accounts);
//   };
//   auto config = cluster::ReadConfig(
//       "cluster.toml", {{.name = "bank", .purpose = "it says what the servers load", .read = read}});
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "cluster/config/section.h"

namespace gannet::cluster {

enum class FabricKind : uint8_t { kShm, kVerbs };
inline constexpr std::string_view kFabricNames[] = {"shm", "verbs"};

// How threads learn that verbs have completed.
enum class Completions : uint8_t {
  kPoll,      // all threads poll
  kAdaptive,  // workers poll; server threads poll for a while, then sleep
  kEvents,    // threads that wait sleep
};

struct ServerConfig {
  std::string name = {};     // for messages; "node <id>" by default
  std::string address = {};  // host:port; with verbs only
  std::string device = {};   // with verbs: the RDMA device that the address must lead to; empty: any
  int port = 0;              // with verbs: the port of the device; 0: any
  int gid = -1;              // with verbs: the GID index of the port; -1: any
  uint64_t memory = 0;       // bytes, for its share of the data
  int server_threads = 1;
};

struct VerbsConfig {
  std::string secret_file = {};  // empty: the secret is in the environment
  uint64_t client_memory = 0;    // bytes, of each client
  Completions completions = Completions::kAdaptive;
  absl::Duration silence_limit = absl::Seconds(5);
};

// Plain data.
struct Config {
  std::string file = {};  // where it was read from
  FabricKind fabric = FabricKind::kShm;
  std::string memory_file = {};  // shm
  VerbsConfig verbs = {};
  int client_slots = 0;                              // clients that may be attached at once
  int read_only_percent = 0;                         // of every node's memory: for indexes, which other nodes only READ
  std::vector<ServerConfig> servers = {};            // by id
  std::map<std::string, std::string> sections = {};  // tables of programs, by name: Section::CanonicalText

  int num_servers() const { return static_cast<int>(servers.size()); }
  int num_nodes() const { return num_servers() + client_slots; }
  // "server 1 (beta)" or "client slot 0".
  std::string NameOfNode(int node) const;
  // The id of the server with this id or name. NotFound lists the servers.
  StatusOr<int> FindServer(const std::string& id_or_name) const;
  // A hash of everything on which all processes must agree, including the tables of programs.
  uint64_t Hash() const;
};

// How a program reads its table of the file.
struct SectionReader {
  std::string name;     // of the table
  std::string purpose;  // why the file must have the table, one clause; empty: the table may be absent
  // Called if the file has the table, once the rest of the file has been read. Keys that it does not ask for are
  // errors.
  std::function<Status(Section& section, const Config& config)> read;
};

// InvalidArgument for a mistake in the file, NotFound if the file cannot be read. A relative file name in the file is
// taken relative to the file's folder.
StatusOr<Config> ReadConfig(const std::string& file, const std::vector<SectionReader>& sections);
// Reads a configuration from a text. `file` is the name for errors; file names in the text stay as they are.
StatusOr<Config> ParseConfig(std::string_view text, const std::string& file,
                             const std::vector<SectionReader>& sections);

}  // namespace gannet::cluster
