#include "log/file/completion_cpu.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace gannet::log {
namespace {

namespace fs = std::filesystem;

// A system with one disk, 8:0, behind a controller with two interrupts: 20 for settings, 21 for completions.
class CompletionCpuTest : public testing::Test {
 protected:
  CompletionCpuTest() {
    fs::remove_all(root_);
    Link("sys/dev/block/8:0", disk_);
    Link(disk_ + "/device", controller_ + "/unit0");
    fs::create_directories(root_ + disk_ + "/mq/0");
    Interrupt(20, "0,3", "0");
    Interrupt(21, "100,2500", "1");
  }
  ~CompletionCpuTest() override { fs::remove_all(root_); }

  void Write(const std::string& file, const std::string& line) const {
    fs::create_directories(fs::path(root_ + file).parent_path());
    std::ofstream(root_ + file) << line << "\n";
  }
  void Link(const std::string& from, const std::string& to) const {
    fs::create_directories(root_ + to);
    fs::create_directories(fs::path(root_ + from).parent_path());
    fs::create_directory_symlink(root_ + to, root_ + from);
  }
  void Interrupt(int number, const std::string& counts, const std::string& cpus) const {
    Write(controller_ + "/msi_irqs/" + std::to_string(number), "msix");
    Write("sys/kernel/irq/" + std::to_string(number) + "/per_cpu_count", counts);
    Write("proc/irq/" + std::to_string(number) + "/effective_affinity_list", cpus);
  }
  std::optional<int> Cpu(unsigned major = 8, unsigned minor = 0) const {
    return CompletionCpuOfDevice(major, minor, root_);
  }

  const std::string root_ = testing::TempDir() + "completion_cpu_test/";
  const std::string controller_ = "sys/devices/pci0/controller";
  const std::string disk_ = controller_ + "/unit0/block/disk";
};

TEST_F(CompletionCpuTest, IsWhereTheBusiestInterruptGoes) {
  EXPECT_EQ(Cpu(), 1);
  Interrupt(21, "100,2500", "0");  // the interrupt has been moved
  EXPECT_EQ(Cpu(), 0);
}

TEST_F(CompletionCpuTest, OfAPartitionAndOfMappedDevicesIsTheDisks) {
  Write(disk_ + "/disk1/partition", "1");
  Link("sys/dev/block/8:1", disk_ + "/disk1");
  EXPECT_EQ(Cpu(8, 1), 1);
  Link("sys/dev/block/253:0", "sys/devices/virtual/block/dm-0");
  Link("sys/devices/virtual/block/dm-0/slaves/disk1", disk_ + "/disk1");
  EXPECT_EQ(Cpu(253, 0), 1);
  Link("sys/devices/virtual/block/dm-0/slaves/another", "sys/devices/pci0/another");
  EXPECT_EQ(Cpu(253, 0), std::nullopt);
}

TEST_F(CompletionCpuTest, IsNoneIfTheDiskHasQueuesForSeveral) {
  fs::create_directories(root_ + disk_ + "/mq/1");
  EXPECT_EQ(Cpu(), std::nullopt);
}

TEST_F(CompletionCpuTest, IsNoneIfTheInterruptMayGoToSeveral) {
  Interrupt(21, "100,2500", "0-1");
  EXPECT_EQ(Cpu(), std::nullopt);
}

TEST_F(CompletionCpuTest, IsNoneOfWhatIsNotADisk) {
  EXPECT_EQ(Cpu(0, 30), std::nullopt);  // for example a tmpfs
  fs::remove_all(root_ + controller_ + "/msi_irqs");
  EXPECT_EQ(Cpu(), std::nullopt);
  EXPECT_EQ(CompletionCpuOf("/no/such/file"), std::nullopt);
}

TEST_F(CompletionCpuTest, OfThisMachineIsACpuOrNone) {
  const std::optional<int> cpu = CompletionCpuOf(testing::TempDir());
  EXPECT_TRUE(!cpu.has_value() || *cpu >= 0);
}

}  // namespace
}  // namespace gannet::log
