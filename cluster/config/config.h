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

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

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

// One table of the file, read key by key.
//
// Reading is strict. A value of the wrong type or out of range, a missing key, and a key that is not asked for are
// InvalidArgument errors that name the file, the line and the key, and say what to write instead.
//
// Not thread-safe.
class Section {
 public:
  // The top of a file. `file` is the file's name for errors.
  static StatusOr<Section> Parse(std::string_view text, const std::string& file);
  Section(Section&& other) noexcept;
  Section& operator=(Section&& other) noexcept;
  ~Section();

  bool Has(const std::string& key) const;

  // The value goes to *value. If the key is absent, Need returns an error and Take leaves *value alone. `example` is a
  // value as it could stand in the file; errors show it. Integers are in [low, high], strings are not empty.
  Status NeedInteger(const std::string& key, int64_t low, int64_t high, const std::string& example, int64_t* value);
  Status TakeInteger(const std::string& key, int64_t low, int64_t high, const std::string& example, int64_t* value);
  Status NeedString(const std::string& key, const std::string& example, std::string* value);
  Status TakeString(const std::string& key, const std::string& example, std::string* value);
  // A string such as "512M" or "8G" (base/quantity.h).
  Status NeedSize(const std::string& key, const std::string& example, uint64_t* bytes);

  // The table [key]; nullopt if it is absent.
  StatusOr<std::optional<Section>> Table(const std::string& key);
  // The tables [[key]], in the order of the file; empty if there is none.
  StatusOr<std::vector<Section>> Tables(const std::string& key);

  // InvalidArgument if the table has a key that was never asked for.
  Status NothingElse() const;

  // The error `what` about `key`. Names the line of the key, or that of the table if the table does not have the key.
  Status Wrong(const std::string& key, const std::string& what) const;

  // The whole table in one form: the same for files that differ only in comments, spaces and the order of keys.
  std::string CanonicalText() const;

 private:
  struct State;
  explicit Section(std::unique_ptr<State> state);
  Status Missing(const std::string& key, const std::string& example) const;

  std::unique_ptr<State> state_;
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

// How long a process of a cluster waits for others, and where it reports its progress.
struct Patience {
  absl::Duration at_most = absl::Minutes(5);
  // Advice for the user if other processes did not come in time, for that error's text. Programs name their flags here.
  std::string advice = "start it, or wait longer";
  // Set by another thread or a signal handler; waiting and serving then end soon. May be null; must outlive every
  // object that was given this Patience.
  const std::atomic<bool>* stop = nullptr;
  // Called with each news in one line, such as "waiting for server 1 (beta) to come", on the thread that waits or
  // serves. May be null.
  std::function<void(const std::string&)> note = nullptr;

  bool stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
  void Note(const std::string& what) const {
    if (note) note(what);
  }
};

}  // namespace gannet::cluster
