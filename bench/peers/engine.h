// Engine: a storage engine as the peers benchmark uses it. Each engine implements this by the calls that its own
// documentation recommends for the purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/peers/data.h"

namespace gannet::bench::peers {

// What a commit promises.
enum class Durability : uint8_t {
  kMemory,      // nothing: the least that the engine can do
  kBackground,  // is written in the background, without waiting; a crash of the machine may lose the last commits
  kSync,        // survives a crash of the machine
};

// One thread's use of an engine. Every call is a transaction of its own. A row that is missing is an error.
class Client {
 public:
  virtual ~Client() = default;
  // Inserts rows that are not there.
  virtual Status Insert(Table table, std::span<const uint64_t> rows) = 0;
  // Reads the rows one after the other.
  virtual Status Read(Table table, std::span<const Key> keys, Digest* digest) = 0;
  // Reads the rows at once, where the engine has a call for that.
  virtual Status ReadTogether(Table table, std::span<const Key> keys, Digest* digest) {
    return Read(table, keys, digest);
  }
  // Reads `limit` rows, or all that there are, in the order of their keys: the first has the least key that is not
  // smaller than `from`. Null: from the first row on. Adds the number of rows to *rows.
  virtual Status Scan(Table table, const Key* from, uint64_t limit, uint64_t* rows, Digest* digest) = 0;
  // Replaces a payload.
  virtual Status Update(Table table, const Key& key, std::string_view payload) = 0;
  // Reads both accounts, and writes them with new balances.
  virtual Status Transfer(const Key& from, const Key& to, int64_t amount) = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual StatusOr<std::unique_ptr<Client>> OpenClient() = 0;
  // Brings what was loaded into the state in which a program would use it for long: finishes what the engine would do
  // in the background (compaction, checkpoints).
  virtual Status Settle() = 0;
  // Bytes of a table's keys, payloads and index, in memory or in a file, as the engine counts them.
  virtual StatusOr<uint64_t> CountedBytes(Table table) = 0;
  // No client may be open.
  virtual Status Close() = 0;
};

struct EngineKind {
  std::string name;
  std::string version;
  bool ordered = true;
  // The settings that matter, one sentence for each, for the reader of the report.
  std::vector<std::string> settings;
  // `directory` exists and is empty. `data` outlives the engine.
  std::function<StatusOr<std::unique_ptr<Engine>>(const Data& data, const std::string& directory, Durability)> open;
};

EngineKind GannetHash();
EngineKind GannetOrdered();
EngineKind Lmdb();
EngineKind RocksDb();
EngineKind Sqlite();

std::vector<EngineKind> AllEngines();

}  // namespace gannet::bench::peers
