#include "cli/rows/commands/command.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/common/command.h"
#include "cli/common/data_directory.h"
#include "cli/common/exit_codes.h"
#include "cli/common/flags.h"
#include "cli/common/interrupt.h"
#include "cli/common/machine_memory.h"
#include "cli/common/parse.h"
#include "cli/common/progress.h"
#include "cli/common/salvage_flag.h"
#include "cli/rows/commands/row_command.h"
#include "log/manifest/manifest.h"
#include "txn/durable/catalog.h"

namespace gannet::cli {
namespace {

class DirectoryHost final : public RowHost {
 public:
  void AddFlags(CLI::App& command) override {
    AddPath(command, "DIR", &directory_, "PATH", "The data directory")->required();
    Add(command, "--memory-per-node", &memory_, ParseSize, "SIZE",
        "Most memory for the rows, such as 8G. Default: three quarters of the machine's");
  }
  void AddReadFlags(CLI::App& command) override { AddSalvage(command, &salvage_); }

  StatusOr<std::vector<log::TableDescription>> Tables() override {
    const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(*DiskFiles(), directory_);
    if (!nodes.ok()) return nodes.status();
    StatusOr<txn::Catalog> catalog = txn::CatalogOf(*nodes);
    if (!catalog.ok()) return catalog.status();
    return std::move(catalog->tables);
  }

  StatusOr<RowStore*> Open(Access access) override {
    interrupts_.emplace();
    const RowStoreOptions options{.memory_bytes = memory_ == 0 ? DefaultMemoryPerNode() : memory_,
                                  .threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency())),
                                  .create = access == Access::kCreate,
                                  .salvage = salvage_,
                                  .stop = stop()};
    Progress progress;
    progress.Begin("opening " + directory_);
    const int holder = access == Access::kRead ? HolderOf(directory_).value_or(0) : 0;  // 0: none
    auto store = access == Access::kRead ? RowStore::OpenToRead(directory_, options)
                                         : RowStore::OpenToWrite(directory_, options);
    if (!store.ok()) {
      if (holder == 0 || !absl::IsDataLoss(store.status())) return store.status();
      return absl::DataLossError(absl::StrCat(store.status().message(), "; process ", holder, " has ", directory_,
                                              " open, and may have removed a file meanwhile: run the command again"));
    }
    if (holder != 0) {
      absl::FPrintF(
          stderr,
          "%s is open in process %d; the rows are those of one moment, with every commit that was durable when "
          "this command began\n",
          directory_, holder);
    }
    store_ = *std::move(store);
    left_out_ = TellLeftOut(store_->left_out());
    return store_.get();
  }

  RowRunner runner() override { return store_->runner(); }
  bool in_transaction() const override { return false; }
  const std::atomic<bool>* stop() const override { return &InterruptGuard::requested(); }

  int End(std::string_view command, const Status& status) override {
    Status ended = status;
    if (store_ != nullptr) ended.Update(store_->Close());
    return !ended.ok() ? Fail(command, NameMemoryFlag(ended)) : left_out_ ? kExitFailed : kExitOk;
  }

 private:
  std::string directory_;
  uint64_t memory_ = 0;
  bool salvage_ = false;
  bool left_out_ = false;
  std::optional<InterruptGuard> interrupts_;
  std::unique_ptr<RowStore> store_;
};

}  // namespace

void AddRowCommands(CLI::App& app, const std::shared_ptr<RowHost>& host, int* exit_code) {
  // The help lists them in this order.
  for (const auto add : {AddTables, AddCreateTable, AddDropTable, AddRenameTable, AddWidenTable, AddCreateIndex, AddGet,
                         AddPut, AddDelete, AddScan, AddCount, AddImport})
    add({.app = &app, .host = host, .exit_code = exit_code});
}

void AddRowCommands(CLI::App& app, int* exit_code) {
  AddRowCommands(app, std::make_shared<DirectoryHost>(), exit_code);
}

}  // namespace gannet::cli
