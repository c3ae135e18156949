#include "lab/scenario/crash/operation.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "lab/scenario/crash/message.h"

namespace gannet::scenario::crash {
namespace {

Random RandomOf(uint64_t seed, uint32_t worker, uint64_t number) {
  return Random(Mix64(seed) ^ Mix64((uint64_t{worker} << 48) + number));
}

}  // namespace

std::vector<KvChange> KvOperation(uint64_t seed, uint32_t worker, uint64_t number) {
  Random random = RandomOf(seed, worker, number);
  std::vector<KvChange> changes(1 + random.Below(4));
  for (size_t i = 0; i < changes.size(); ++i) {
    KvChange& change = changes[i];
    const auto taken = [&](const KvChange& other) { return other.table == change.table && other.key == change.key; };
    do {
      change.table = random.Below(kKvTables);
      change.key = random.Below(kKeysPerWorker);
    } while (std::any_of(changes.begin(), changes.begin() + static_cast<std::ptrdiff_t>(i), taken));
    change.remove = random.OneIn(4);
    change.content = random() >> 1;  // never kBrokenContent
  }
  return changes;
}

std::string PayloadOf(uint64_t content) {
  std::string payload(sizeof content + content % (kMostPayloadBytes - sizeof content + 1), '\0');
  std::memcpy(payload.data(), &content, sizeof content);
  for (size_t i = sizeof content; i < payload.size(); ++i) payload[i] = static_cast<char>(Mix64(content + i));
  return payload;
}

uint64_t ContentOf(std::span<const std::byte> payload) {
  uint64_t content;
  if (payload.size() < sizeof content) return kBrokenContent;
  std::memcpy(&content, payload.data(), sizeof content);
  const std::string should = PayloadOf(content);
  const bool same = should.size() == payload.size() && std::memcmp(should.data(), payload.data(), should.size()) == 0;
  return same ? content : kBrokenContent;
}

Transfer BankOperation(uint64_t seed, uint32_t worker, uint64_t number) {
  Random random = RandomOf(seed, worker, number);
  Transfer transfer{.from = random.Below(kAccounts), .amount = random.Between(1, 50)};
  transfer.to = (transfer.from + 1 + random.Below(kAccounts - 1)) % kAccounts;
  return transfer;
}

uint64_t ContentOf(const Transfer& transfer) {
  return transfer.from << 40 | transfer.to << 16 | static_cast<uint64_t>(transfer.amount);
}

}  // namespace gannet::scenario::crash
