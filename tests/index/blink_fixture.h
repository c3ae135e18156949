// A tree, its owner, and a client's thread. Keys are numbers; those of byte keys have 40 to 64 bytes in the same order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "absl/time/time.h"
#include "base/check.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "index/blink/blink.h"
#include "index/blink/blink_index.h"
#include "tests/index/record_helper.h"

namespace gannet::index {

class BlinkTreeTest : public ::testing::TestWithParam<std::tuple<uint64_t, KeyKind>> {
 protected:
  static constexpr IndexId kId = 1;
  using Model = std::map<uint64_t, rdma::GlobalAddress>;

  static uint64_t Seed() { return std::get<0>(GetParam()); }
  static KeyKind Kind() { return std::get<1>(GetParam()); }

  explicit BlinkTreeTest(const BlinkOptions& options = {}) : cluster_({.seed = Seed()}) {
    RegisterBlinkMethods(cluster_.owner().service.get());
    cluster_.Serve();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
    auto index = CreateBlink(cluster_.owner().service.get(), kId, Kind(), options);
    GANNET_CHECK(index.ok(), "%s", index.status().ToString());
    index_ = std::move(*index);
    tree_ = static_cast<blink::BlinkTree*>(index_.get());
    thread_ = std::make_unique<ClientThread>(&cluster_);
  }

  // It goes before the channel that a test has made for it.
  void TearDown() override { remote_.reset(); }

  // A client whose verbs go over `channel`.
  void Connect(rdma::Channel* channel) {
    auto remote = ConnectBlink(channel, 0, kId, {.key_kind = Kind()});
    GANNET_CHECK(remote.ok(), "%s", remote.status().ToString());
    remote_ = std::move(*remote);
  }

  static OwnedKey KeyOf(uint64_t n) {
    if (Kind() == KeyKind::kInteger) return OwnedKey(Key(n));
    const std::string number = std::to_string(n);
    const std::string key =
        "names that begin alike are rare" + std::string(9 - number.size(), '0') + number + std::string(n % 25, 'x');
    return OwnedKey(Key(std::string_view(key)));
  }
  // Its record, which lives until the end.
  rdma::GlobalAddress RecordOf(uint64_t n) {
    const auto [at, is_new] = records_.try_emplace(n);
    if (is_new) at->second = owner_->NewRecord(KeyOf(n).view());
    return at->second;
  }

  void ExpectContent(const Model& model) {
    const Status status = index_->CheckStructure();
    ASSERT_TRUE(status.ok()) << status;
    ScanResult all;
    const OwnedKey least = Kind() == KeyKind::kInteger ? OwnedKey(Key(uint64_t{0})) : OwnedKey(Key(""));
    const OwnedKey greatest = Kind() == KeyKind::kInteger ? OwnedKey(Key(UINT64_MAX)) : OwnedKey(Key("o"));
    ASSERT_TRUE(index_->Scan({.from = least.view(), .to = greatest.view()}, &all).ok());
    auto expected = model.begin();
    for (const Entry& entry : all.entries) {
      ASSERT_TRUE(expected != model.end());
      ASSERT_EQ(entry.key.view(), KeyOf(expected->first).view());
      ASSERT_EQ(entry.record, expected->second);
      ++expected;
    }
    ASSERT_TRUE(expected == model.end()) << "lost " << expected->first;
  }

  Random random_{Seed()};
  IndexCluster cluster_;
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<LocalIndex> index_;
  blink::BlinkTree* tree_ = nullptr;
  std::map<uint64_t, rdma::GlobalAddress> records_;
  std::unique_ptr<ClientThread> thread_;
  std::unique_ptr<RemoteIndex> remote_;
};

}  // namespace gannet::index
