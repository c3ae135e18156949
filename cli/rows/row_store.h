// A data directory of one node, opened for a command that works with rows. Its catalog says what tables it has.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "txn/database.h"
#include "txn/run/blocking.h"

namespace gannet::cli {

// Runs a body as a transaction, or as a part of one that is open. Its results are those of Database::Run.
using RowRunner = std::function<Status(const std::function<Status(txn::BlockingTransaction&)>&)>;

struct RowStoreOptions {
  uint64_t memory_bytes = 0;  // at most, for its records and indexes
  int threads = 2;            // of recovery
  bool create = false;        // the database if the directory holds none; to write only
  bool salvage = false;       // go on after damage; to read only
  const std::atomic<bool>* stop = nullptr;
};

class RowStore {
 public:
  // Recovers the directory into memory: changes nothing, and takes no lock. Of a directory in use it may see damage,
  // or a state that is some moments old.
  static StatusOr<std::unique_ptr<RowStore>> OpenToRead(const std::string& directory, const RowStoreOptions& options);
  // Opens the database, which no other process may have open.
  static StatusOr<std::unique_ptr<RowStore>> OpenToWrite(const std::string& directory, const RowStoreOptions& options);

  txn::Database& database() { return *database_; }
  // Descriptions of the parts that salvage left out.
  const std::vector<std::string>& left_out() const { return left_out_; }
  RowRunner runner() {
    return [this](const auto& body) { return database_->Run(body); };
  }
  // InvalidArgument says which tables there are, and how to make one.
  StatusOr<const txn::Table*> FindTable(const std::string& name) const;
  // Ends what OpenToWrite began. Takes a checkpoint if the log has many segments: each command that writes begins one.
  Status Close();

 private:
  explicit RowStore(std::string directory) : directory_(std::move(directory)) {}

  const std::string directory_;
  std::unique_ptr<txn::Database> database_;
  std::vector<std::string> left_out_;
  bool writes_ = false;
};

}  // namespace gannet::cli
