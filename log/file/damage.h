// Damage found while a log is read ends the reading or, in salvage, is added to a list.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/thread.h"

namespace gannet::log {

struct Damage {
  std::string file;
  uint64_t offset = 0;
  std::string what;  // what is wrong
};

// Last sentence of the message of damage that ends the reading.
inline constexpr char kDamageAdvice[] =
    ". Restore a backup, or save what is left in a new directory: gannet backup --salvage DIR NEW";

// Thread-safe.
class DamageList {
 public:
  explicit DamageList(bool salvage) : salvage_(salvage) {}

  bool salvage() const { return salvage_; }

  // Ok if the reading continues without the damaged part.
  Status Found(const std::string& file, uint64_t offset, const std::string& what) {
    if (!salvage_) {
      return absl::DataLossError(absl::StrCat(file, " is damaged at offset ", offset, ": ", what, kDamageAdvice));
    }
    const std::lock_guard lock(mutex_);
    damages_.push_back({file, offset, what});
    return absl::OkStatus();
  }

  std::vector<Damage> TakeSorted() {
    const std::lock_guard lock(mutex_);
    std::sort(damages_.begin(), damages_.end(),
              [](const Damage& a, const Damage& b) { return std::tie(a.file, a.offset) < std::tie(b.file, b.offset); });
    return std::exchange(damages_, {});
  }

 private:
  const bool salvage_;
  Mutex mutex_;
  std::vector<Damage> damages_;
};

}  // namespace gannet::log
