// The suite that every index passes: index/index.h as tests. An index joins it with one file of its own:
//
//   INSTANTIATE_TEST_SUITE_P(Hash, IndexSuite, testing::ValuesIn(AllCases({.name = "hash", ...})), CaseName);
//
// and one line of CMake, gannet_index_conformance. A case is an index kind with one kind of key.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/index.h"
#include "index/service.h"
#include "tests/index/record_helper.h"

namespace gannet::index {

// Creates one kind of index.
struct IndexFactory {
  struct Shape {
    IndexId id;
    KeyKind key_kind;
    size_t max_key_bytes;
    uint64_t expected_keys;
  };

  std::string name;
  bool ordered = false;        // supports Scan
  bool scans_records = false;  // and ScanRecords
  bool spatial = false;        // supports Search; `key` gives rectangles
  // A change may list no word, because it lists more than a message takes.
  bool long_changes = false;
  // Replace may change the word that covers the key.
  bool replace_changes_word = false;
  bool client_writes = false;  // clients change it by verbs (IndexTraits::client_writes)
  // Its owner is that of another factory of the kind: the gate runs only the tests of clients.
  bool client_differs = false;
  size_t max_key_bytes = kShortKeyBytes;  // of byte keys (IndexTraits)
  // The n-th test key of a kind that does not take every byte string. Null: TestKey.
  OwnedKey (*key)(uint64_t n) = nullptr;
  // Creates the index at the service's node and registers it there under shape.id.
  std::function<StatusOr<std::unique_ptr<LocalIndex>>(IndexService*, const Shape&)> create;
  // Registers the kind's RPC handlers; called once per node, before it serves.
  std::function<void(IndexService*)> register_methods;
  // This is empty for a kind without clients: tests of clients are skipped.
  std::function<StatusOr<std::unique_ptr<RemoteIndex>>(rdma::Channel*, rdma::NodeId owner, const Shape&)> connect;
};

struct IndexCase {
  IndexFactory factory;
  KeyKind key_kind;

  // The n-th test key.
  OwnedKey KeyOf(uint64_t n) const;
};

std::vector<IndexCase> AllCases(const IndexFactory& factory);
// The same, of a factory whose owner is that of another one (client_differs).
std::vector<IndexCase> OtherClients(IndexFactory factory);
std::string CaseName(const testing::TestParamInfo<IndexCase>& info);

// The n-th test key: n itself, or a byte string of at most `longest` bytes, mostly of few. 0 and UINT64_MAX give the
// smallest and the largest key.
OwnedKey TestKey(KeyKind kind, uint64_t n, size_t longest = kShortKeyBytes);

struct KeyLess {
  bool operator()(const OwnedKey& a, const OwnedKey& b) const { return a.view() < b.view(); }
};
using Model = std::map<OwnedKey, rdma::GlobalAddress, KeyLess>;

// True if the change lists the witness's word with the value that the witness saw as the one before.
bool Changes(const Change& change, const Witness& witness);

// Witnesses as a transaction holds them.
class HeldWitnesses {
 public:
  HeldWitnesses(IndexCluster* cluster, std::vector<Witness> witnesses)
      : cluster_(cluster), witnesses_(std::move(witnesses)) {}
  bool Valid() const;
  // Updates the witnesses for a change made by their holder.
  void Apply(const Change& change);

 private:
  IndexCluster* cluster_;
  std::vector<Witness> witnesses_;
};

class IndexSuite : public testing::TestWithParam<IndexCase> {
 protected:
  static constexpr IndexId kId = 3;

  // Makes the cluster, the index and the thread `main_` of the owner.
  void Start(uint64_t expected_keys, const IndexCluster::Options& options = {});
  void SetUp() override;
  void TearDown() override;

  bool ordered() const { return GetParam().factory.ordered; }
  bool has_clients() const { return GetParam().factory.connect != nullptr; }
  // The change lists words, each once; each has changed, and now has the value in the change.
  void ExpectSound(const Change& change) const;
  // A change from a message lists no word, as it may.
  bool ListsNothing(const Change& change) const { return GetParam().factory.long_changes && change.empty(); }
  bool spatial() const { return GetParam().factory.spatial; }
  OwnedKey KeyOf(uint64_t n) const { return GetParam().KeyOf(n); }
  std::unique_ptr<RemoteIndex> Connect(ClientThread* client);

  // Inserts an absent key with a new record, by `owner`; returns the change.
  Change MustInsert(OwnerThread* owner, const OwnedKey& key, rdma::GlobalAddress* record = nullptr);
  // Removes the key, which must be mapped to `record`, and retires the record.
  Change MustRemove(OwnerThread* owner, const OwnedKey& key, rdma::GlobalAddress record);

  // These insert and remove by `main_`, and make the change in `model_`, too.
  Change InsertBoth(const OwnedKey& key);
  Change RemoveBoth(const OwnedKey& key);
  // A random key of the model.
  const OwnedKey& AnyKey(Random* random) const;

  // The index has exactly the content of the model: by Find, by FindMany, by Scan, and by its own checks.
  void ExpectSameAsModel();
  // The model's result of a scan.
  std::vector<Entry> ModelScan(const ScanRange& range) const;
  // ScanRecords brings the model's records, and the witnesses of Scan; a kind without it says so.
  void ExpectScansRecords(const ScanRange& range) const;
  static void ExpectEntries(const std::vector<Entry>& expected, const std::vector<Entry>& actual);

  std::unique_ptr<IndexCluster> cluster_;
  std::unique_ptr<LocalIndex> index_;
  std::unique_ptr<OwnerThread> main_;
  IndexFactory::Shape shape_{};
  Model model_;
};

// `Random random(...)`: a scan range around the test keys of [0, keys), both ends random; sometimes an extreme.
struct RandomRange {
  RandomRange(const IndexCase& test, uint64_t keys, Random* random);
  OwnedKey from;
  OwnedKey to;
  ScanRange range() const { return {.from = from.view(), .to = to.view()}; }
};

}  // namespace gannet::index
