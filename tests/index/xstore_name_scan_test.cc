// Scans by name, as in TPC-C: wide byte keys (district, last name, first name, number) whose distribution is all
// clusters and gaps, and clients that never look up a single key.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/xstore/xstore.h"
#include "tests/index/record_helper.h"
#include "tests/index/training.h"

namespace gannet::index {
namespace xstore_name_scan_test {

constexpr IndexId kId = 6;
constexpr XStoreOptions kKeys = {.key_kind = KeyKind::kBytes, .max_key_bytes = 39};
constexpr uint32_t kNames = 1000;
constexpr uint32_t kDistricts = 10;
constexpr uint32_t kCustomersPerDistrict = 3000;

std::string LastName(uint32_t number) {
  constexpr std::array<const char*, 10> kSyllables = {"BAR", "OUGHT", "ABLE",  "PRI",   "PRES",
                                                      "ESE", "ANTI",  "CALLY", "ATION", "EING"};
  return std::string(kSyllables[number / 100]) + kSyllables[number / 10 % 10] + kSyllables[number % 10];
}

// Two bytes warehouse, one byte district, 16 bytes last name, 16 bytes first name, four bytes number.
std::string NameKey(uint32_t district, const std::string& last, const std::string& first, uint32_t number) {
  std::string key(39, '\0');
  key[1] = 1;
  key[2] = static_cast<char>(district);
  std::memcpy(&key[3], last.data(), last.size());
  std::memcpy(&key[19], first.data(), first.size());
  for (size_t i = 0; i < 4; ++i) key[35 + i] = static_cast<char>(number >> (24 - 8 * i));
  return key;
}

class XStoreNameScanTest : public testing::Test {
 protected:
  XStoreNameScanTest() {
    RegisterXStoreMethods(cluster_.owner().service.get());
    auto index = XStore::Create(cluster_.owner().service.get(), kId, kKeys);
    EXPECT_TRUE(index.ok()) << index.status();
    index_ = std::move(*index);
    cluster_.Serve();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
    client_ = std::make_unique<ClientThread>(&cluster_);
    Load();
  }
  ~XStoreNameScanTest() override { cluster_.owner().node->Shutdown(); }

  void Load() {
    Random random(1);
    for (uint32_t district = 1; district <= kDistricts; ++district) {
      for (uint32_t number = 1; number <= kCustomersPerDistrict; ++number) {
        const auto drawn = static_cast<uint32_t>((random.Below(256) | random.Below(kNames)) + 123) % kNames;
        std::string first;
        for (size_t length = 8 + random.Below(9); first.size() < length;) {
          first.push_back(static_cast<char>('A' + random.Below(26) + 32 * random.Below(2)));
        }
        const std::string last = LastName(number <= kNames ? number - 1 : drawn);
        keys_[NameKey(district, last, first, number)] = rdma::GlobalAddress(0, 64 * (keys_.size() + 1));
      }
    }
    std::vector<LoadEntry> entries;
    for (const auto& [key, record] : keys_) entries.push_back({Key(std::string_view(key)), record});
    EpochGuard guard(owner_->epoch());
    const Status status = index_->BulkLoad(owner_->context(), entries, 0.75);
    ASSERT_TRUE(status.ok()) << status;
  }
  void ExpectScan(RemoteIndex* remote, uint32_t district, uint32_t name, bool reverse = false) {
    const std::string from = NameKey(district, LastName(name), std::string(16, '\0'), 0);
    const std::string to = NameKey(district, LastName(name), std::string(16, '\xff'), UINT32_MAX);
    EpochGuard guard(client_->epoch());
    ScanResult result;
    const Status status = client_->Await(
        remote->Scan({.from = std::string_view(from), .to = std::string_view(to), .reverse = reverse}, &result));
    ASSERT_TRUE(status.ok()) << status;
    std::vector<std::string> expected;
    for (auto at = keys_.lower_bound(from); at != keys_.end() && at->first <= to; ++at) expected.push_back(at->first);
    if (reverse) std::reverse(expected.begin(), expected.end());
    ASSERT_EQ(result.entries.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(result.entries[i].key.view().bytes(), expected[i]);
      ASSERT_EQ(result.entries[i].record, keys_.at(expected[i]));
    }
  }
  void ScanAll(RemoteIndex* remote) {
    for (uint32_t district = 1; district <= kDistricts; ++district) {
      for (uint32_t name = 0; name < kNames; ++name) ExpectScan(remote, district, name, name % 2 == 1);
    }
  }
  std::unique_ptr<RemoteIndex> Connect(XCacheMode mode) {
    auto remote = ConnectXStore(client_->channel(), 0, kId, kKeys, {.mode = mode});
    EXPECT_TRUE(remote.ok()) << remote.status();
    return std::move(*remote);
  }
  void WaitForTraining() { index::WaitForTraining(index_.get()); }

  IndexCluster cluster_{{}};
  std::unique_ptr<XStore> index_;
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<ClientThread> client_;
  std::map<std::string, rdma::GlobalAddress> keys_;
};

// The client connects before there is a model (unless its first answer took longer than the training), and only scans.
TEST_F(XStoreNameScanTest, AreOneBatchOfReadsOnceTheCacheIsWarm) {
  const auto remote = Connect(XCacheMode::kWhole);
  ExpectScan(remote.get(), 1, 1);
  WaitForTraining();
  ExpectScan(remote.get(), 1, 2);  // possibly by a call, whose response tells that there is a model
  ScanAll(remote.get());
  const rdma::VerbCounters counters = client_->channel()->counters();
  const ClientStatistics before = remote->statistics();
  ScanAll(remote.get());
  const rdma::VerbCounters spent = client_->channel()->counters() - counters;
  const ClientStatistics after = remote->statistics();
  constexpr double kScans = kDistricts * kNames;
  const auto leaves = static_cast<double>(after.leaves_read - before.leaves_read);
  EXPECT_EQ(spent.calls, 0u);
  EXPECT_EQ(after.one_sided - before.one_sided, uint64_t{kDistricts} * kNames);
  EXPECT_LT(static_cast<double>(spent.round_trips) / kScans, 1.05);
  // Most names are in one or two leaves. Without a fine-grained top model it would be whole sub-models of 16 leaves.
  EXPECT_LT(leaves / kScans, 6.0);
}

}  // namespace xstore_name_scan_test
}  // namespace gannet::index
