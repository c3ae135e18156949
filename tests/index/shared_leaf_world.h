// SharedLeafWorld: an index of shared leaves (index/shared_leaf/leaf/leaf.h), its owner and a client, for tests of each
// kind of index that clients change. Keys are numbers; those of byte keys have 40 to 64 bytes in the same order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/check.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "index/blink/blink.h"
#include "index/blink/blink_index.h"
#include "index/rolex/rolex.h"
#include "index/rolex/rolex_index.h"
#include "tests/index/record_helper.h"

namespace gannet::index {

struct SharedLeafKind {
  const char* name;
  void (*register_methods)(IndexService* service);
  StatusOr<std::unique_ptr<LocalIndex>> (*create)(IndexService* service, IndexId id, KeyKind keys,
                                                  absl::Duration patience);
  StatusOr<std::unique_ptr<RemoteIndex>> (*connect)(rdma::Channel* channel, IndexId id, KeyKind keys);
  shared_leaf::LeafBlocks& (*blocks)(LocalIndex* index);
  // What the owner does in the background.
  void (*tidy)(LocalIndex* index);
};

inline constexpr SharedLeafKind kBlink = {
    .name = "blink",
    .register_methods = RegisterBlinkMethods,
    .create = [](IndexService* service, IndexId id, KeyKind keys,
                 absl::Duration patience) { return CreateBlink(service, id, keys, {.patience = patience}); },
    .connect = [](rdma::Channel* channel, IndexId id,
                  KeyKind keys) { return ConnectBlink(channel, /*owner=*/0, id, {.key_kind = keys}); },
    .blocks = [](LocalIndex* index) -> shared_leaf::LeafBlocks& {
      return static_cast<blink::BlinkTree*>(index)->blocks();
    },
    .tidy = [](LocalIndex*) {},
};

inline constexpr SharedLeafKind kRolex = {
    .name = "rolex",
    .register_methods = RegisterRolexMethods,
    .create = [](IndexService* service, IndexId id, KeyKind keys,
                 absl::Duration patience) { return CreateRolex(service, id, keys, {.patience = patience}); },
    .connect = [](rdma::Channel* channel, IndexId id,
                  KeyKind keys) { return ConnectRolex(channel, /*owner=*/0, id, {.key_kind = keys}); },
    .blocks = [](LocalIndex* index) -> shared_leaf::LeafBlocks& {
      return static_cast<rolex::RolexIndex*>(index)->blocks();
    },
    .tidy = [](LocalIndex* index) { static_cast<rolex::RolexIndex*>(index)->TrainNow(); },
};

class SharedLeafWorld {
 public:
  using Model = std::map<uint64_t, rdma::GlobalAddress>;

  // `patience`: of the owner, with what a client keeps locked.
  SharedLeafWorld(const SharedLeafKind& kind, KeyKind keys, uint64_t seed, absl::Duration patience = absl::Seconds(10))
      : random_(seed), kind_(kind), keys_(keys), cluster_({.seed = seed}) {
    kind.register_methods(cluster_.owner().service.get());
    cluster_.Serve();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
    auto index = kind.create(cluster_.owner().service.get(), kId, keys, patience);
    GANNET_CHECK(index.ok(), "%s", index.status().ToString());
    index_ = std::move(*index);
    thread_ = std::make_unique<ClientThread>(&cluster_);
  }

  // A client whose verbs go over `channel`, which outlives it: until Disconnect, or the next Connect.
  void Connect(rdma::Channel* channel) {
    auto remote = kind_.connect(channel, kId, keys_);
    GANNET_CHECK(remote.ok(), "%s", remote.status().ToString());
    remote_ = std::move(*remote);
  }
  void Disconnect() { remote_.reset(); }

  OwnedKey KeyOf(uint64_t n) const {
    if (keys_ == KeyKind::kInteger) return OwnedKey(Key(n));
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
    const bool integer = keys_ == KeyKind::kInteger;
    const Key least = integer ? Key(uint64_t{0}) : Key("");
    const Key greatest = integer ? Key(UINT64_MAX) : Key("o");
    ASSERT_TRUE(index_->Scan({.from = least, .to = greatest}, &all).ok());
    auto expected = model.begin();
    for (const Entry& entry : all.entries) {
      ASSERT_TRUE(expected != model.end());
      ASSERT_EQ(entry.key.view(), KeyOf(expected->first).view());
      ASSERT_EQ(entry.record, expected->second);
      ++expected;
    }
    ASSERT_TRUE(expected == model.end()) << "lost " << expected->first;
  }

  // All blocks are free, or part of the index.
  void ExpectAllBlocksCounted() {
    shared_leaf::LeafBlocks& blocks = kind_.blocks(index_.get());
    size_t nodes = 0;
    blocks.ForEach([this, &nodes](rdma::GlobalAddress at) {
      if (!IsAbsent(LoadWord(cluster_.At(at)))) ++nodes;
    });
    const auto counts = blocks.counts();
    ASSERT_EQ(counts.lent + counts.in_use, nodes);
  }

 protected:
  static constexpr IndexId kId = 1;

  Random random_;
  const SharedLeafKind& kind_;
  const KeyKind keys_;
  IndexCluster cluster_;
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<LocalIndex> index_;
  Model records_;
  std::unique_ptr<ClientThread> thread_;
  std::unique_ptr<RemoteIndex> remote_;
};

}  // namespace gannet::index
