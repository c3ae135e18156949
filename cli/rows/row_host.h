// The place where the commands about rows find their directory: each command of the program opens one, and the shell
// has one open.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/rows/row_store.h"
#include "log/manifest/manifest.h"

namespace gannet::cli {

class RowHost {
 public:
  virtual ~RowHost() = default;

  // Adds what names and opens the directory, if a command must say so.
  virtual void AddFlags(CLI::App& command) = 0;
  // Adds what only commands that read have.
  virtual void AddReadFlags(CLI::App& /*command*/) {}
  // What the directory's catalog says, without its rows.
  virtual StatusOr<std::vector<log::TableDescription>> Tables() = 0;
  enum class Access : uint8_t { kRead, kWrite, kCreate };
  virtual StatusOr<RowStore*> Open(Access access) = 0;
  // Runs bodies in the store that Open returned.
  virtual RowRunner runner() = 0;
  // True if what `runner` runs belongs to an open transaction.
  virtual bool in_transaction() const = 0;
  virtual const std::atomic<bool>* stop() const = 0;
  // Ends a command with its result; returns the exit code.
  virtual int End(std::string_view command, const Status& status) = 0;
};

}  // namespace gannet::cli
