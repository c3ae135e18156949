// Section: one table of a cluster file, read key by key. A program reads its own table this way (config.h).
//
// Reading is strict. A value of the wrong type or out of range, a missing key, and a key that is not asked for are
// InvalidArgument errors that name the file, the line and the key, and say what to write instead.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace gannet::cluster {

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

}  // namespace gannet::cluster
