#include "lab/experiments/kind_rack/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_format.h"

namespace gannet::experiments::kind_rack {
namespace {

// Edge of a row's square, times the root of the number of rows: a hundredth of the space is covered.
constexpr double kEdge = 0.1;

}  // namespace

// A window meets the squares that begin in a square which is larger by their edge.
Rows::Rows(uint64_t loaded, bool spatial, uint64_t seed)
    : loaded_(loaded),
      spatial_(spatial),
      seed_(Mix64(seed)),
      edge_(kEdge / std::sqrt(static_cast<double>(loaded))),
      window_(std::sqrt(static_cast<double>(kScanRows) / static_cast<double>(loaded)) - edge_),
      space_(ycsb::KeyForm::kRandom, loaded, /*servers=*/1),
      scatter_(loaded) {}

RowKey Rows::KeyOf(uint64_t row, ycsb::InsertPlace inserts) const {
  if (spatial_) return RowKey(index::RectangleKey{BoxOf(row), row});
  return RowKey(row < loaded_ ? space_.LoadedKey(row) : space_.InsertedKey(row - loaded_, inserts));
}

uint64_t Rows::DrawLoaded(Random& random) const {
  return scatter_(zipf_.Draw(loaded_, &random));
}

index::Rectangle Rows::BoxOf(uint64_t row) const {
  Random random(seed_ + row);
  const double x = random.Unit() * (1 - edge_);
  const double y = random.Unit() * (1 - edge_);
  return {x, y, x + edge_, y + edge_};
}

index::Rectangle Rows::WindowAround(uint64_t row) const {
  const index::Rectangle box = BoxOf(row);
  const double x = std::clamp(box.CenterX() - window_ / 2, 0.0, 1 - window_);
  const double y = std::clamp(box.CenterY() - window_ / 2, 0.0, 1 - window_);
  return {x, y, x + window_, y + window_};
}

void Rows::MakePayload(uint64_t integer, uint64_t contents, std::span<std::byte> payload) {
  std::memset(payload.data(), static_cast<int>(contents % 251), payload.size());
  std::memcpy(payload.data(), &integer, sizeof integer);
}

Status Rows::CheckPayload(const index::Key& key, std::span<const std::byte> payload) {
  uint64_t integer = 0;
  if (payload.size() == kPayloadBytes) std::memcpy(&integer, payload.data(), sizeof integer);
  uint64_t expected = key.integer();
  if (key.kind() == index::KeyKind::kBytes) {
    const StatusOr<index::RectangleKey> rectangle = index::DecodeRectangleKey(key);
    if (!rectangle.ok()) return rectangle.status();
    expected = rectangle->id;
  }
  if (payload.size() == kPayloadBytes && integer == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat("the row with key %s has the payload of another one", key.ToString()));
}

}  // namespace gannet::experiments::kind_rack
