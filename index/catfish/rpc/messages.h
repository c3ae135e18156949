// The calls of a catfish client to the owner. Everything that a peer sends is checked.
//
// Every request begins with the index number (2).
//
//   kDescribe   -> Description
//   kFind       key                    -> record (8); witness (16), if the record is null
//   kInsert     key, record (8)        -> change
//   kRemove     the same               -> change
//   kSearch     window (32), at one moment (1), position
//            -> position at which the search continues, entries, witnesses
//   kNearest    x (8), y (8), count (8)
//            -> all here (1); if so, entries and witnesses; if not, the reach (8)
//
//   key         key_wire.h; change and witness: change_wire.h
//   position    present (1), and if so 5 words
//   entries     number (4), each: the key's 40 bytes (rectangle.h), record (8)
//   witnesses   number (4), each 16
//   reach       square of the distance of the last rectangle of a result that does not fit in a message; infinite, if
//               fewer than `count` are in the tree
#pragma once

#include <optional>
#include <span>

#include "base/keyed_hash.h"
#include "index/catfish/node.h"
#include "index/index.h"
#include "rdma/rpc.h"

namespace gannet::index::catfish {

inline constexpr rdma::MethodId kDescribe = kCatfishMethods;
inline constexpr rdma::MethodId kFind = kCatfishMethods + 1;
inline constexpr rdma::MethodId kInsert = kCatfishMethods + 2;
inline constexpr rdma::MethodId kRemove = kCatfishMethods + 3;
inline constexpr rdma::MethodId kSearch = kCatfishMethods + 4;
inline constexpr rdma::MethodId kNearest = kCatfishMethods + 5;

// Limits of one response: 72 KB of entries and 40 KB of witnesses.
inline constexpr size_t kMostEntriesInMessage = 1500;
inline constexpr size_t kMostWitnessesInMessage = 2500;
static_assert(kMostEntriesInMessage * 48 + kMostWitnessesInMessage * 16 + 64 <= rdma::kMaxMessageBytes);

// The data by which a client finds the tree.
struct Description {
  uint32_t node_entries = 0;
  uint32_t offloading = 0;
  uint64_t root = 0;       // offset
  uint64_t key_words = 0;  // offset of the first
  uint32_t key_word_count = 0;
  KeyedHash::Seed seed{};
};

void PutDescription(rdma::WireWriter& writer, const Description& description);
void PutPosition(rdma::WireWriter& writer, const std::optional<ScanPosition>& position);
void PutResult(rdma::WireWriter& writer, const ScanResult& result);
void PutNumber(rdma::WireWriter& writer, double number);
void PutRectangle(rdma::WireWriter& writer, const Rectangle& box);

double GetNumber(rdma::WireReader& reader);
Rectangle GetRectangle(rdma::WireReader& reader);
std::optional<ScanPosition> GetPosition(rdma::WireReader& reader);
// DataLoss if the response is not what `owner` should have sent.
StatusOr<Description> GetDescription(std::span<const std::byte> response);
// Appends a result. False if the message is no result: it ends early, a key is no rectangle, an address is not the
// owner's.
[[nodiscard]] bool GetResult(rdma::WireReader& reader, rdma::NodeId owner, ScanResult* result);

}  // namespace gannet::index::catfish
