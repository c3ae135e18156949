// The main function of test programs whose nodes share only a memory file. Each node has its own mapping, at another
// address, and learns of the others' deaths from the file. With --processes as the first argument, the nodes that the
// test does not drive are processes of their own.
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "gtest/gtest.h"
#include "rdma/shm/shm_fabric.h"
#include "tests/rdma/test_fabric.h"

namespace gannet::rdma {
namespace {

bool processes = false;

// Attaches every node through its own mapping.
class MappedFabric final : public Fabric {
 public:
  MappedFabric(const TestFabricOptions& options, const std::string& path) {
    for (int i = 0; i < options.num_nodes; ++i) {
      auto mapping = i == 0 ? ShmFabric::Create(path, {.num_nodes = options.num_nodes,
                                                       .bytes_per_node = options.bytes_per_node,
                                                       .adversarial = options.adversarial,
                                                       .seed = options.seed})
                            : ShmFabric::Join(path);
      GANNET_CHECK(mapping.ok(), "%s", mapping.status().ToString());
      mappings_.push_back(*std::move(mapping));
    }
  }

  const Capabilities& capabilities() const override { return mappings_[0]->capabilities(); }
  int num_nodes() const override { return mappings_[0]->num_nodes(); }
  bool Alive(NodeId id) const override { return mappings_[0]->Alive(id); }
  Status WaitForAll(absl::Duration timeout) override { return mappings_[0]->WaitForAll(timeout); }
  StatusOr<std::unique_ptr<Node>> Attach(NodeId id) override {
    return mappings_[id < mappings_.size() ? id : 0]->Attach(id);
  }
  void Kill(NodeId id) { mappings_[id]->Kill(id); }

 private:
  std::vector<std::unique_ptr<ShmFabric>> mappings_;  // by node
};

TestFabric MakeMapped(const TestFabricOptions& options) {
  static int made = 0;
  const std::string path = absl::StrCat("/dev/shm/gannet-mapped-test-", getpid(), "-", made++);
  auto fabric = std::make_unique<MappedFabric>(options, path);
  MappedFabric* raw = fabric.get();
  TestFabric result{.fabric = std::move(fabric), .kill = [raw](NodeId id) { raw->Kill(id); }};
  if (processes) {
    result.join = [path] {
      auto mapping = ShmFabric::Join(path);
      GANNET_CHECK(mapping.ok(), "%s", mapping.status().ToString());
      return std::unique_ptr<Fabric>(*std::move(mapping));
    };
  }
  return result;
}

}  // namespace
}  // namespace gannet::rdma

int main(int argc, char** argv) {
  gannet::rdma::processes = argc > 1 && std::string_view(argv[1]) == "--processes";
  gannet::rdma::MakerOfTestFabrics() = gannet::rdma::MakeMapped;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
