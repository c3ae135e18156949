// SharedLeafWorld: an index of shared leaves (index/shared_leaf/leaf/leaf.h), its owner and a client, for tests of each
// kind of index that clients change. Keys are numbers; those of byte keys have 40 to 64 bytes in the same order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/time/time.h"
#include "base/check.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "index/blink/blink.h"
#include "index/blink/blink_index.h"
#include "index/blink/shared_cache.h"
#include "index/dex/dex.h"
#include "index/rolex/model_cache.h"
#include "index/rolex/rolex.h"
#include "index/rolex/rolex_index.h"
#include "index/rolex/shared_models.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "tests/index/record_helper.h"

namespace gannet::index {

struct SharedLeafKind {
  const char* name;
  void (*register_methods)(IndexService* service);
  rdma::MethodId describe;
  StatusOr<std::unique_ptr<LocalIndex>> (*create)(IndexService* service, IndexId id, KeyKind keys,
                                                  absl::Duration patience);
  // `cache`: from make_cache, or null.
  StatusOr<std::unique_ptr<RemoteIndex>> (*connect)(rdma::Channel* channel, IndexId id, KeyKind keys,
                                                    absl::Duration patience, std::shared_ptr<SharedCache> cache);
  std::shared_ptr<SharedCache> (*make_cache)(size_t max_bytes);
  // What the owner does in the background.
  void (*tidy)(LocalIndex* index);
  bool learned;           // models lead to the leaves, which `tidy` trains
  uint64_t insert_verbs;  // about as many as an insert with a split takes
};

inline constexpr SharedLeafKind kBlink = {
    .name = "Blink",
    .register_methods = RegisterBlinkMethods,
    .describe = blink::kDescribe,
    .create = [](IndexService* service, IndexId id, KeyKind keys,
                 absl::Duration patience) { return CreateBlink(service, id, keys, {.patience = patience}); },
    .connect =
        [](rdma::Channel* channel, IndexId id, KeyKind keys, absl::Duration patience,
           std::shared_ptr<SharedCache> cache) {
          return ConnectBlink(channel, /*owner=*/0, id,
                              {.key_kind = keys,
                               .shared = std::static_pointer_cast<blink::SharedNodes>(std::move(cache)),
                               .patience = patience});
        },
    .make_cache = [](size_t max_bytes) -> std::shared_ptr<SharedCache> { return MakeBlinkCache(max_bytes); },
    .tidy = [](LocalIndex*) {},
    .learned = false,
    .insert_verbs = 14,
};

inline constexpr SharedLeafKind kDex = {
    .name = "Dex",
    .register_methods = RegisterDexMethods,
    .describe = dex::kDescribe,
    .create = [](IndexService* service, IndexId id, KeyKind keys,
                 absl::Duration patience) { return CreateDex(service, id, keys, {.patience = patience}); },
    .connect =
        [](rdma::Channel* channel, IndexId id, KeyKind keys, absl::Duration patience,
           std::shared_ptr<SharedCache> cache) {
          return ConnectDex(channel, /*owner=*/0, id,
                            {.key_kind = keys,
                             .shared = std::static_pointer_cast<dex::SharedPages>(std::move(cache)),
                             .patience = patience});
        },
    .make_cache = [](size_t max_bytes) -> std::shared_ptr<SharedCache> { return MakeDexCache(max_bytes); },
    .tidy = [](LocalIndex*) {},
    .learned = false,
    .insert_verbs = 14,
};

inline constexpr SharedLeafKind kRolex = {
    .name = "Rolex",
    .register_methods = RegisterRolexMethods,
    .describe = rolex::kDescribe,
    .create = [](IndexService* service, IndexId id, KeyKind keys,
                 absl::Duration patience) { return CreateRolex(service, id, keys, {.patience = patience}); },
    .connect =
        [](rdma::Channel* channel, IndexId id, KeyKind keys, absl::Duration patience,
           std::shared_ptr<SharedCache> cache) {
          return ConnectRolex(channel, /*owner=*/0, id,
                              {.key_kind = keys,
                               .shared = std::static_pointer_cast<rolex::SharedModels>(std::move(cache)),
                               .patience = patience});
        },
    .make_cache = [](size_t max_bytes) -> std::shared_ptr<SharedCache> { return MakeRolexCache(max_bytes); },
    .tidy = [](LocalIndex* index) { dynamic_cast<rolex::RolexIndex*>(index)->TrainNow(); },
    .learned = true,
    .insert_verbs = 18,
};

// A kind of index, and of its keys.
using SharedLeafCase = std::tuple<const SharedLeafKind*, KeyKind>;

inline std::string NameOf(const SharedLeafCase& of) {
  return std::string(std::get<0>(of)->name) + (std::get<1>(of) == KeyKind::kInteger ? "Integers" : "Bytes");
}
// The cases and seeds of the tests.
template <class Param>
std::string NameOfSeed(const ::testing::TestParamInfo<Param>& test) {
  return NameOf(std::get<0>(test.param)) + std::to_string(std::get<1>(test.param));
}
inline auto AllSharedLeafCases() {
  return ::testing::Values(SharedLeafCase(&kBlink, KeyKind::kInteger), SharedLeafCase(&kBlink, KeyKind::kBytes),
                           SharedLeafCase(&kRolex, KeyKind::kInteger), SharedLeafCase(&kRolex, KeyKind::kBytes),
                           SharedLeafCase(&kDex, KeyKind::kInteger), SharedLeafCase(&kDex, KeyKind::kBytes));
}

class SharedLeafWorld {
 public:
  using Model = std::map<uint64_t, rdma::GlobalAddress>;

  // `patience`: of the owner, with what a client keeps locked.
  SharedLeafWorld(const SharedLeafCase& of, uint64_t seed, absl::Duration patience = absl::Seconds(10))
      : random_(seed), kind_(*std::get<0>(of)), keys_(std::get<1>(of)), cluster_({.seed = seed}) {
    kind_.register_methods(cluster_.owner().service.get());
    cluster_.Serve();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
    auto index = kind_.create(cluster_.owner().service.get(), kId, keys_, patience);
    GANNET_CHECK(index.ok(), "%s", index.status().ToString());
    index_ = std::move(*index);
    thread_ = std::make_unique<ClientThread>(&cluster_);
  }

  // A client whose verbs go over `channel`, which outlives it: until Disconnect, or the next Connect.
  void Connect(rdma::Channel* channel, absl::Duration patience = rdma::Channel::kDefaultCallTimeout) {
    remote_ = NewClient(channel, patience, nullptr);
  }
  void Disconnect() { remote_.reset(); }
  // `cache`: of the kind, or null.
  std::unique_ptr<RemoteIndex> NewClient(rdma::Channel* channel, absl::Duration patience,
                                         std::shared_ptr<SharedCache> cache) const {
    auto remote = kind_.connect(channel, kId, keys_, patience, std::move(cache));
    GANNET_CHECK(remote.ok(), "%s", remote.status().ToString());
    return *std::move(remote);
  }

  OwnedKey KeyOf(uint64_t n) const {
    if (keys_ == KeyKind::kInteger) return OwnedKey(Key(n));
    const std::string number = std::to_string(n);
    const std::string key =
        "names that begin alike are rare" + std::string(9 - number.size(), '0') + number + std::string(n % 25, 'x');
    return OwnedKey(Key(std::string_view(key)));
  }
  // The key's record, which lives until the end.
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
    size_t nodes = 0;
    blocks().ForEach([this, &nodes](rdma::GlobalAddress at) {
      if (!IsAbsent(LoadWord(cluster_.At(at)))) ++nodes;
    });
    const auto counts = blocks().counts();
    ASSERT_EQ(counts.lent + counts.in_use, nodes);
  }

 protected:
  static constexpr IndexId kId = 1;

  shared_leaf::LeafBlocks& blocks() const { return dynamic_cast<shared_leaf::BlockLender&>(*index_).blocks(); }

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
