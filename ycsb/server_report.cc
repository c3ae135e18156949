#include "ycsb/server_report.h"

#include <array>
#include <bit>
#include <span>

#include "absl/time/time.h"
#include "ycsb/messages.h"

namespace gannet::ycsb {
namespace {

constexpr size_t kMaxAnswerBytes = 256;
// A report walks over the whole index.
constexpr absl::Duration kReportTimeout = absl::Minutes(5);

void PutDouble(double value, rdma::WireWriter& writer) {
  writer.PutU64(std::bit_cast<uint64_t>(value));
}
double GetDouble(rdma::WireReader& reader) {
  return std::bit_cast<double>(reader.GetU64());
}

index::XStore::ModelStatistics GetModel(rdma::WireReader& reader) {
  index::XStore::ModelStatistics model;
  model.generation = reader.GetU64();
  model.retrainings = reader.GetU64();
  model.sub_models = reader.GetU64();
  model.table_entries = reader.GetU64();
  model.model_bytes = reader.GetU64();
  model.leaves_per_lookup = GetDouble(reader);
  model.mean_error = GetDouble(reader);
  model.mean_range = GetDouble(reader);
  model.caught_up = reader.GetU8() != 0;
  return model;
}

ServerReport GetReport(rdma::WireReader& reader) {
  ServerReport report;
  report.index.keys = reader.GetU64();
  report.index.registered_bytes = reader.GetU64();
  report.index.private_bytes = reader.GetU64();
  report.index.nodes = reader.GetU64();
  report.index.height = static_cast<int>(reader.GetU32());
  report.memory.capacity_bytes = reader.GetU64();
  report.memory.carved_bytes = reader.GetU64();
  report.memory.free_bytes = reader.GetU64();
  if (reader.GetU8() != 0) report.model = GetModel(reader);
  return report;
}

}  // namespace

void Put(const index::XStore::ModelStatistics& model, rdma::WireWriter& writer) {
  writer.PutU64(model.generation);
  writer.PutU64(model.retrainings);
  writer.PutU64(model.sub_models);
  writer.PutU64(model.table_entries);
  writer.PutU64(model.model_bytes);
  PutDouble(model.leaves_per_lookup, writer);
  PutDouble(model.mean_error, writer);
  PutDouble(model.mean_range, writer);
  writer.PutU8(model.caught_up ? 1 : 0);
}

void Put(const ServerReport& report, rdma::WireWriter& writer) {
  writer.PutU64(report.index.keys);
  writer.PutU64(report.index.registered_bytes);
  writer.PutU64(report.index.private_bytes);
  writer.PutU64(report.index.nodes);
  writer.PutU32(static_cast<uint32_t>(report.index.height));
  writer.PutU64(report.memory.capacity_bytes);
  writer.PutU64(report.memory.carved_bytes);
  writer.PutU64(report.memory.free_bytes);
  writer.PutU8(report.model.has_value() ? 1 : 0);
  if (report.model.has_value()) Put(*report.model, writer);
}

coro::Task<StatusOr<ServerReport>> AskReport(rdma::Channel* channel, rdma::NodeId server) {
  std::array<std::byte, kMaxAnswerBytes> answer;
  const std::span<const std::byte> nothing;
  const StatusOr<size_t> bytes = co_await channel->Call(server, kReportCall, nothing, answer, kReportTimeout);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(answer).first(*bytes));
  const ServerReport report = GetReport(reader);
  GANNET_CO_RETURN_IF_ERROR(reader.Finish());
  co_return report;
}

coro::Task<StatusOr<index::XStore::ModelStatistics>> AskModel(rdma::Channel* channel, rdma::NodeId server) {
  std::array<std::byte, kMaxAnswerBytes> answer;
  const std::span<const std::byte> nothing;
  const StatusOr<size_t> bytes = co_await channel->Call(server, kModelCall, nothing, answer, kReportTimeout);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(answer).first(*bytes));
  const index::XStore::ModelStatistics model = GetModel(reader);
  GANNET_CO_RETURN_IF_ERROR(reader.Finish());
  co_return model;
}

coro::Task<StatusOr<uint64_t>> ReserveInserts(rdma::Channel* channel, uint32_t count) {
  std::array<std::byte, sizeof count> request;
  std::array<std::byte, sizeof(uint64_t)> answer;
  rdma::WireWriter writer(request);
  writer.PutU32(count);
  const std::span<const std::byte> written = writer.written();
  const StatusOr<size_t> bytes = co_await channel->Call(/*server 0*/ 0, kReserveCall, written, answer);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(answer).first(*bytes));
  const uint64_t first = reader.GetU64();
  GANNET_CO_RETURN_IF_ERROR(reader.Finish());
  co_return first;
}

}  // namespace gannet::ycsb
