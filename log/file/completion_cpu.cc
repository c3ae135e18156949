#include "log/file/completion_cpu.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gannet::log {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLayers = 8;  // of stacked devices, and of buses above a device

std::string FirstLine(const fs::path& file) {
  std::string line;
  std::getline(std::ifstream(file), line);
  return line;
}

std::vector<fs::path> EntriesOf(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  return entries;
}

fs::path Canonical(const fs::path& path) {
  std::error_code error;
  const fs::path canonical = fs::canonical(path, error);
  return error ? fs::path() : canonical;
}

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The disk below partitions and mapped devices; empty if there are several, or none.
fs::path DiskOf(fs::path block) {
  for (int layer = 0; layer < kMostLayers && !block.empty(); ++layer) {
    if (Exists(block / "partition")) {
      block = block.parent_path();
      continue;
    }
    const std::vector<fs::path> slaves = EntriesOf(block / "slaves");
    if (slaves.empty()) return block;
    block = slaves.size() == 1 ? Canonical(slaves.front()) : fs::path();
  }
  return {};
}

// The directory that lists the interrupts of the disk, or of its controller.
fs::path InterruptsOf(const fs::path& disk) {
  fs::path device = Canonical(disk / "device");
  for (int layer = 0; layer < kMostLayers && !device.empty(); ++layer, device = device.parent_path()) {
    if (Exists(device / "msi_irqs")) return device / "msi_irqs";
  }
  return {};
}

uint64_t CountOf(const fs::path& per_cpu_count) {
  const std::string line = FirstLine(per_cpu_count);
  uint64_t total = 0;
  for (const absl::string_view count : absl::StrSplit(line, ',')) {
    uint64_t number = 0;
    if (absl::SimpleAtoi(count, &number)) total += number;
  }
  return total;
}

}  // namespace

std::optional<int> CompletionCpuOfDevice(unsigned major, unsigned minor, const std::string& root) {
  const fs::path disk = DiskOf(Canonical(absl::StrCat(root, "sys/dev/block/", major, ":", minor)));
  if (disk.empty() || EntriesOf(disk / "mq").size() > 1) return std::nullopt;
  // A device also has interrupts for other purposes, which are rare.
  std::string most;
  uint64_t most_count = 0;
  for (const fs::path& interrupt : EntriesOf(InterruptsOf(disk))) {
    const std::string number = interrupt.filename();
    const uint64_t count = CountOf(absl::StrCat(root, "sys/kernel/irq/", number, "/per_cpu_count"));
    if (count <= most_count) continue;
    most = number;
    most_count = count;
  }
  int cpu = 0;
  if (most.empty() ||
      !absl::SimpleAtoi(FirstLine(absl::StrCat(root, "proc/irq/", most, "/effective_affinity_list")), &cpu))
    return std::nullopt;
  return cpu;
}

std::optional<int> CompletionCpuOf(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) return std::nullopt;
  return CompletionCpuOfDevice(major(file.st_dev), minor(file.st_dev), "/");
}

}  // namespace gannet::log
