#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "cli/serve/served.h"
#include "ycsb/cluster.h"
#include "ycsb/messages.h"
#include "ycsb/server.h"

namespace gannet::cli {
namespace {

class ServedYcsb final : public Served {
 public:
  ServedYcsb(std::unique_ptr<cluster::BareServer> bare, const YcsbSection& section)
      : bare_(std::move(bare)),
        section_(section),
        keys_(section.options.key_form, section.options.keys, section.options.servers) {}
  ~ServedYcsb() override { bare_->SetLeaving(); }

  Status ServeUntilStopped() override { return bare_->ServeUntilStopped(); }
  const cluster::BareServer& server() const override { return *bare_; }
  rdma::SlabStatistics memory() const override { return node_->memory(); }
  rdma::NodeLoad load() const override { return node_->load(); }
  std::vector<txn::TablePaths> paths() const override { return {}; }
  std::optional<txn::TransactionStatistics> transactions() const override { return std::nullopt; }
  std::string MethodName(rdma::MethodId method) const override { return std::string(ycsb::NameOfMethod(method)); }
  std::string loaded() const override {
    return absl::StrFormat("%s of %s keys loaded in %.1f s", WithCommas(end() - first()),
                           WithCommas(section_.options.keys), load_seconds_);
  }

  Status Load(const cluster::Patience& patience) {
    const cluster::Config& config = bare_->config();
    auto node = ycsb::Server::Create(&bare_->fabric(), static_cast<rdma::NodeId>(bare_->id()),
                                     ycsb::ServerOptionsOf(section_.options, keys_, bare_->id()));
    if (!node.ok()) return node.status();
    node_ = *std::move(node);
    node_->set_locked_by_clients(section_.updates == ycsb::Path::kOneSided);
    bare_->AnswerHellos(node_->node());
    GANNET_RETURN_IF_ERROR(bare_->WaitForServers());
    // Clients that come now are told that this server loads.
    GANNET_RETURN_IF_ERROR(node_->Start(config.servers[static_cast<size_t>(bare_->id())].server_threads));
    patience.Note(absl::StrCat("loading ", WithCommas(end() - first()), " keys"));
    const uint64_t start = NowNanos();
    Status loaded = node_->Load(keys_, first(), end(), nullptr, patience.stop);
    load_seconds_ = static_cast<double>(NowNanos() - start) * 1e-9;
    if (loaded.ok()) bare_->SetReady();
    if (!absl::IsResourceExhausted(loaded)) return loaded;
    return absl::ResourceExhaustedError(absl::StrCat(
        absl::string_view(loaded.message()), "; give the servers of ", config.file,
        " more memory, [ycsb] fewer keys, or another read_only_percent (the share of memory that indexes have)"));
  }

 private:
  uint64_t first() const { return keys_.FirstRankOf(bare_->id()); }
  uint64_t end() const { return keys_.FirstRankOf(bare_->id() + 1); }

  std::unique_ptr<cluster::BareServer> bare_;
  const YcsbSection section_;
  const ycsb::KeySpace keys_;
  std::unique_ptr<ycsb::Server> node_;  // destroyed before the fabric
  double load_seconds_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<Served>> ServeYcsb(const ClusterFile& file, int id, const cluster::Patience& patience,
                                            cluster::CallMeter* meter) {
  StatusOr<std::unique_ptr<cluster::BareServer>> bare = cluster::BareServer::Open(file.config, id, patience, meter);
  if (!bare.ok()) return bare.status();
  auto served = std::make_unique<ServedYcsb>(*std::move(bare), *file.ycsb);
  GANNET_RETURN_IF_ERROR(served->Load(patience));
  return std::unique_ptr<Served>(std::move(served));
}

}  // namespace gannet::cli
