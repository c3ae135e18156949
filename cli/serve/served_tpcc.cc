#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/thread.h"
#include "cli/serve/served.h"
#include "cluster/server.h"
#include "tpcc/loader.h"
#include "tpcc/schema/schema.h"

namespace gannet::cli {
namespace {

class ServedTpcc final : public Served {
 public:
  ServedTpcc(std::unique_ptr<cluster::Server> server, const TpccSection& section)
      : server_(std::move(server)), section_(section) {}

  Status ServeUntilStopped() override { return server_->ServeUntilStopped(); }
  const cluster::BareServer& server() const override { return server_->bare(); }
  rdma::SlabStatistics memory() const override { return server_->database().memory_statistics(); }
  rdma::NodeLoad load() const override { return server_->database().load_of(server_->database().node_id()); }
  std::vector<txn::TablePaths> paths() const override { return server_->database().path_statistics(); }
  std::optional<txn::TransactionStatistics> transactions() const override {
    return server_->database().transaction_statistics();
  }
  std::string MethodName(rdma::MethodId) const override { return ""; }
  std::string loaded() const override {
    return absl::StrFormat("%d of %d warehouses loaded in %.1f s", warehouses_, section_.warehouses, load_seconds_);
  }

  Status Load(const cluster::Patience& patience) {
    const cluster::Config& config = server_->bare().config();
    txn::Database& database = server_->database();
    const tpcc::SchemaOptions schema = SchemaOf(section_);
    StatusOr<tpcc::Tables> tables = tpcc::Tables::Create(database, schema);
    if (!tables.ok()) return tables.status();
    GANNET_RETURN_IF_ERROR(server_->Start());
    warehouses_ = static_cast<int>(tpcc::WarehousesOfNode(schema.warehouses, database.node_id(), config.num_servers()));
    patience.Note(absl::StrCat("loading ", warehouses_, warehouses_ == 1 ? " warehouse" : " warehouses"));
    const uint64_t start = NowNanos();
    const std::vector<txn::Database*> databases = {&database};
    const std::vector<tpcc::Tables> all_tables = {*tables};
    Status loaded =
        tpcc::Load(databases, all_tables, {.threads = std::max(1, HardwareThreads()), .seed = section_.seed}, nullptr);
    load_seconds_ = static_cast<double>(NowNanos() - start) * 1e-9;
    if (loaded.ok()) server_->SetReady();
    if (!absl::IsResourceExhausted(loaded)) return loaded;
    return absl::ResourceExhaustedError(absl::StrCat(absl::string_view(loaded.message()), "; give the servers of ",
                                                     config.file, " more memory, or [tpcc] fewer warehouses"));
  }

 private:
  std::unique_ptr<cluster::Server> server_;
  const TpccSection section_;
  int warehouses_ = 0;
  double load_seconds_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<Served>> ServeTpcc(const ClusterFile& file, int id, const cluster::Patience& patience,
                                            cluster::CallMeter* meter) {
  StatusOr<std::unique_ptr<cluster::Server>> server = cluster::Server::Open(file.config, id, patience, meter);
  if (!server.ok()) return server.status();
  auto served = std::make_unique<ServedTpcc>(*std::move(server), *file.tpcc);
  GANNET_RETURN_IF_ERROR(served->Load(patience));
  return std::unique_ptr<Served>(std::move(served));
}

}  // namespace gannet::cli
