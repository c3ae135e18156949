#include "cli/cluster_file.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tpcc/keys.h"
#include "tpcc/schema.h"

namespace gannet::cli {
namespace {

Status ReadTpcc(cluster::Section& section, int servers, TpccSection* tpcc) {
  const tpcc::Scale full;
  int64_t warehouses = 0;
  int64_t seed = 1;
  int64_t items = full.items;
  int64_t customers = full.customers_per_district;
  GANNET_RETURN_IF_ERROR(
      section.NeedInteger("warehouses", servers, tpcc::kMaxWarehouses, absl::StrCat(servers), &warehouses));
  GANNET_RETURN_IF_ERROR(section.TakeInteger("seed", 0, std::numeric_limits<int64_t>::max(), "1", &seed));
  GANNET_RETURN_IF_ERROR(section.TakeInteger("items", 100, full.items, "100000", &items));
  GANNET_RETURN_IF_ERROR(
      section.TakeInteger("customers_per_district", 30, full.customers_per_district, "3000", &customers));
  *tpcc = {.warehouses = static_cast<int>(warehouses),
           .seed = static_cast<uint64_t>(seed),
           .items = static_cast<uint32_t>(items),
           .customers_per_district = static_cast<uint32_t>(customers)};
  return absl::OkStatus();
}

std::vector<cluster::SectionReader> Readers(ClusterFile* file) {
  return {{.name = "tpcc",
           .purpose = "it says what the servers load",
           .read = [file](cluster::Section& section, const cluster::Config& config) {
             return ReadTpcc(section, config.num_servers(), &file->tpcc);
           }}};
}

}  // namespace

tpcc::SchemaOptions SchemaOf(const TpccSection& section) {
  return {.warehouses = static_cast<uint32_t>(section.warehouses),
          .scale = {.items = section.items, .customers_per_district = section.customers_per_district}};
}

StatusOr<ClusterFile> ReadClusterFile(const std::string& file) {
  ClusterFile read;
  StatusOr<cluster::Config> config = cluster::ReadConfig(file, Readers(&read));
  if (!config.ok()) return config.status();
  read.config = *std::move(config);
  return read;
}

StatusOr<ClusterFile> ParseClusterFile(std::string_view text, const std::string& file) {
  ClusterFile read;
  StatusOr<cluster::Config> config = cluster::ParseConfig(text, file, Readers(&read));
  if (!config.ok()) return config.status();
  read.config = *std::move(config);
  return read;
}

Status NameWaitFlag(const Status& status) {
  if (!absl::IsDeadlineExceeded(status)) return status;
  return absl::DeadlineExceededError(
      absl::StrCat(absl::string_view(status.message()), " (`gannet serve` starts a server; --wait)"));
}

}  // namespace gannet::cli
