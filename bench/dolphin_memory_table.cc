// Bytes per key of the index kind dolphin, at its owner and in the cache of a client (table II of MSST'24), next to
// those of blink. Keys are inserted one by one into an empty index: random ones of 64 bits, dense ones, in random and
// in ascending order, and names of up to 40 bytes. The client's cache has all inner nodes: it has looked up every key.
// Fails if dolphin takes more than 40 bytes at the owner, or more than 1 at a client: names, if they are few, 1.25.
//
//   dolphin_memory_table [keys, in thousands; 1000 if left out]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "index/blink/blink.h"
#include "index/dolphin/dolphin.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace {

constexpr IndexId kId = 1;
constexpr size_t kNameBytes = 40;

enum class Form : uint8_t { kRandom, kDense, kAscending, kNames };
constexpr const char* kFormNames[] = {"random", "dense", "dense, ascending", "names"};

OwnedKey KeyOf(Form form, uint64_t i) {
  switch (form) {
    case Form::kRandom:
      return OwnedKey(Key(Mix64(i + 1)));
    case Form::kDense:
    case Form::kAscending:
      return OwnedKey(Key(i));
    case Form::kNames:
      break;
  }
  // A first name and a family name, of 1,000 each, some of which are more frequent than others; and a number.
  static const char* const kSyllables[] = {"an", "ber", "ca", "do", "el", "fi", "gra", "hu", "is", "jo"};
  uint64_t state = i + 1;
  std::string name;
  for (int word = 0; word < 2; ++word) {
    const uint64_t drawn = SplitMix64(state) % 1000;
    const uint64_t popular = drawn * drawn / 1000;  // the first ones more often
    name += kSyllables[popular / 100];
    name += kSyllables[popular / 10 % 10];
    name += kSyllables[popular % 10];
    name += ' ';
  }
  name += std::to_string(i);
  return OwnedKey(Key(std::string_view(name)));
}

template <class T>
T Checked(StatusOr<T> made) {
  GANNET_CHECK(made.ok(), "%s", made.status().ToString());
  return *std::move(made);
}

// `key_lines` of a leaf of dolphin; 0: blink.
// False: it takes more than is promised.
bool Measure(Form form, uint64_t keys, size_t key_lines) {
  const bool is_dolphin = key_lines != 0;
  const KeyKind key_kind = form == Form::kNames ? KeyKind::kBytes : KeyKind::kInteger;
  IndexCluster cluster({.bytes_per_node = uint64_t{4} << 30});
  IndexService* const service = cluster.owner().service.get();
  RegisterBlinkMethods(service);
  RegisterDolphinMethods(service);
  std::unique_ptr<LocalIndex> index =
      is_dolphin ? Checked(CreateDolphin(service, kId, key_kind, {.max_key_bytes = kNameBytes, .key_lines = key_lines}))
                 : Checked(CreateBlink(service, kId, key_kind, {.max_key_bytes = kNameBytes}));
  cluster.Serve();
  cluster.StartEpochs();
  OwnerThread owner(&cluster);
  ClientThread client(&cluster);
  std::vector<uint64_t> order(keys);
  for (uint64_t i = 0; i < keys; ++i) order[i] = i;
  Random random(1);
  for (uint64_t i = keys - 1; i > 0 && form != Form::kAscending; --i) std::swap(order[i], order[random.Below(i + 1)]);
  const EpochGuard owner_guard(owner.epoch());
  const EpochGuard client_guard(&client);
  for (const uint64_t i : order) {
    const OwnedKey key = KeyOf(form, i);
    // An integer key needs no record, but its target must not be 0.
    const rdma::GlobalAddress record = form == Form::kNames ? owner.NewRecord(key.view()) : FakeRecord(i);
    GANNET_CHECK(index->Insert(owner.context(), key.view(), record, nullptr).ok(), "a key is refused");
  }
  std::unique_ptr<RemoteIndex> remote =
      is_dolphin
          ? Checked(ConnectDolphin(client.channel(), 0, kId, {.key_kind = key_kind, .max_key_bytes = kNameBytes}))
          : Checked(ConnectBlink(client.channel(), 0, kId, {.key_kind = key_kind, .max_key_bytes = kNameBytes}));
  for (uint64_t i = 0; i < keys; ++i) {
    const OwnedKey key = KeyOf(form, i);
    const auto found = client.Await(remote->Find(key.view()));
    GANNET_CHECK(found.ok() && !found->record.is_null(), "a key is lost");
  }
  const Statistics statistics = index->statistics();
  const auto per_key = [keys](uint64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(keys); };
  const double at_owner = per_key(statistics.registered_bytes + statistics.private_bytes);
  const double at_client = per_key(remote->statistics().cache_bytes);
  const std::string kind = is_dolphin ? "dolphin, key_lines=" + std::to_string(key_lines) : "blink";
  std::printf("| %s | %s | %.1f | %.2f |\n", kFormNames[static_cast<size_t>(form)],
              form == Form::kNames && is_dolphin ? "dolphin" : kind.c_str(), at_owner, at_client);
  std::fflush(stdout);
  cluster.owner().node->Shutdown();
  return !is_dolphin || (at_owner <= 40 && at_client <= (form == Form::kNames && keys < 1'000'000 ? 1.25 : 1));
}

int Main(uint64_t keys) {
  std::printf("%llu keys\n\n", static_cast<unsigned long long>(keys));
  std::printf("| keys | index | bytes per key at the owner | in the cache of a client |\n|---|---|--:|--:|\n");
  bool is_kept = true;
  for (const Form form : {Form::kRandom, Form::kDense, Form::kAscending}) {
    for (const size_t key_lines : {0, 3, 7, 9}) is_kept &= Measure(form, keys, key_lines);
  }
  for (const size_t key_lines : {0, 3}) is_kept &= Measure(Form::kNames, keys, key_lines);
  if (!is_kept)
    std::fprintf(stderr, "dolphin takes more than 40 bytes per key at the owner, or more than 1 at a client\n");
  return is_kept ? 0 : 1;
}

}  // namespace
}  // namespace gannet::index

int main(int argc, char** argv) {
  return gannet::index::Main(argc < 2 ? 1'000'000 : 1000 * std::strtoull(argv[1], nullptr, 10));
}
