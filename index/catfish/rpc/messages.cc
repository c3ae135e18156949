#include "index/catfish/rpc/messages.h"

#include <bit>
#include <cstring>

#include "index/change_wire.h"

namespace gannet::index::catfish {
namespace {

bool IsOf(rdma::GlobalAddress address, rdma::NodeId owner) {
  return !address.is_null() && address.node() == owner && !address.marked();
}

bool IsPlace(uint64_t offset, size_t alignment) {
  return offset != 0 && offset % alignment == 0 && offset <= rdma::GlobalAddress::kOffsetMask / 2;
}

}  // namespace

void PutDescription(rdma::WireWriter& writer, const Description& description) {
  writer.PutU32(description.node_entries);
  writer.PutU32(description.offloading);
  writer.PutU64(description.root);
  writer.PutU64(description.key_words);
  writer.PutU32(description.key_word_count);
  for (const uint64_t word : description.seed) writer.PutU64(word);
}

StatusOr<Description> GetDescription(std::span<const std::byte> response) {
  rdma::WireReader reader(response);
  Description description;
  description.node_entries = reader.GetU32();
  description.offloading = reader.GetU32();
  description.root = reader.GetU64();
  description.key_words = reader.GetU64();
  description.key_word_count = reader.GetU32();
  for (uint64_t& word : description.seed) word = reader.GetU64();
  if (!reader.Finish().ok() || description.node_entries < kMinCatfishNodeEntries ||
      description.node_entries > kMaxCatfishNodeEntries || !IsPlace(description.root, kLineBytes) ||
      !IsPlace(description.key_words, kWordBytes) || !std::has_single_bit(description.key_word_count)) {
    return absl::DataLossError("the owner of a catfish index sent a malformed description");
  }
  return description;
}

void PutNumber(rdma::WireWriter& writer, double number) {
  writer.PutU64(std::bit_cast<uint64_t>(number));
}

void PutRectangle(rdma::WireWriter& writer, const Rectangle& box) {
  for (const double number : {box.min_x, box.min_y, box.max_x, box.max_y}) PutNumber(writer, number);
}

double GetNumber(rdma::WireReader& reader) {
  return std::bit_cast<double>(reader.GetU64());
}

Rectangle GetRectangle(rdma::WireReader& reader) {
  Rectangle box;
  for (double* number : {&box.min_x, &box.min_y, &box.max_x, &box.max_y}) *number = GetNumber(reader);
  return box;
}

void PutPosition(rdma::WireWriter& writer, const std::optional<ScanPosition>& position) {
  writer.PutU8(position.has_value() ? 1 : 0);
  if (!position.has_value()) return;
  for (size_t i = 0; i < RectangleKey::kWords; ++i) writer.PutU64(position->words[i]);
}

std::optional<ScanPosition> GetPosition(rdma::WireReader& reader) {
  if (reader.GetU8() == 0) return std::nullopt;
  ScanPosition position;
  for (size_t i = 0; i < RectangleKey::kWords; ++i) position.words[i] = reader.GetU64();
  return position;
}

void PutResult(rdma::WireWriter& writer, const ScanResult& result) {
  writer.PutU32(static_cast<uint32_t>(result.entries.size()));
  for (const index::Entry& entry : result.entries) {
    const std::string_view key = entry.key.bytes();
    const std::span<std::byte> room = writer.Reserve(RectangleKey::kBytes);
    if (!room.empty()) std::memcpy(room.data(), key.data(), RectangleKey::kBytes);
    writer.PutAddress(entry.record);
  }
  writer.PutU32(static_cast<uint32_t>(result.witnesses.size()));
  for (const Witness& witness : result.witnesses) PutWitness(writer, witness);
}

bool GetResult(rdma::WireReader& reader, rdma::NodeId owner, ScanResult* result) {
  for (uint32_t left = reader.GetU32(); left > 0; --left) {
    const std::span<const std::byte> bytes = reader.GetRaw(RectangleKey::kBytes);
    const rdma::GlobalAddress record = reader.GetAddress();
    if (!reader.ok() || !IsOf(record, owner)) return false;
    const Key key(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    if (!DecodeRectangleKey(key).ok()) return false;
    result->entries.push_back({OwnedKey(key), record});
  }
  for (uint32_t left = reader.GetU32(); left > 0; --left) {
    const Witness witness = GetWitness(reader);
    if (!reader.ok() || !IsOf(witness.word, owner)) return false;
    result->witnesses.push_back(witness);
  }
  return reader.ok();
}

}  // namespace gannet::index::catfish
