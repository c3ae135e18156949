#include "index/dolphin/own_way.h"

#include "absl/strings/str_cat.h"
#include "index/backoff.h"

namespace gannet::index::dolphin {
namespace {

constexpr uint64_t kManyLeaves = 1000;

}  // namespace

template <class Keys>
OwnWay<Keys>::OwnWay(shared_leaf::OwnChannel* channel, const Map* map)
    : map_(map), editor_(&channel->leaves, map->art->root(), map->max_key_bytes, [&] {
        ArtEditor::BlockSources sources;
        for (size_t i = 0; i < kNodeTypes; ++i) {
          sources[i] = &blocks_[i].emplace(&map->art->pool(static_cast<NodeType>(kSmallestNode + i)));
        }
        return sources;
      }()) {}

template <class Keys>
void OwnWay<Keys>::set_context(Context* context) {
  for (std::optional<shared_leaf::OwnBlocks>& blocks : blocks_) blocks->set_context(context);
}

template <class Keys>
Status OwnWay<Keys>::Find(const Map& map, const Point& point, LeafCopy* leaf, bool* was_detour) {
  using Step = typename LeafSearch<Keys>::Step;
  Patience patience(map.leaves->patience_nanos());
  leaf->address = Keys::IsBelow(point) ? rdma::GlobalAddress() : map.art->Guess(Keys::ArtKey(point).view());
  if (!leaf->address.is_null()) {
    Keys::ForgetKeys(&leaf->keys);
    const LeafLook look = map.leaves->Read(leaf->address, &leaf->image, &patience);
    if (look == LeafLook::kWhole && Keys::Covers(leaf->image, point)) {
      if (was_detour != nullptr) *was_detour = false;
      return absl::OkStatus();
    }
  }
  LeafSearch<Keys> search(map.art->root(), map.first, point, /*has_copies=*/false);
  uint64_t met = 0;
  for (;;) {
    if (search.step() == Step::kWay) {
      search.TakeWrong();
      map.art->Go(&search.way());
      search.TakeWay();
    } else if (search.step() == Step::kLeaf) {
      // The number of leaves takes a lock.
      if (++met % kManyLeaves == 0 && met > map.leaves->Most()) return map.leaves->EndlessError();
      leaf->address = search.leaf();
      Keys::ForgetKeys(&leaf->keys);
      search.TakeLeaf(map.leaves->Read(leaf->address, &leaf->image, &patience), leaf->image);
    } else if (search.step() == Step::kFound) {
      if (was_detour != nullptr) *was_detour = search.was_detour();
      return absl::OkStatus();
    } else if (patience.Pause()) {
      search.Again();
    } else {
      return absl::DataLossError(absl::StrCat("the inner nodes at ", map.art->root().ToString(),
                                              " have no way to a key: a client has damaged them"));
    }
  }
}

template <class Keys>
rdma::GlobalAddress OwnWay<Keys>::Expect(const Key& key) {
  const auto point = Keys::At(key);
  const rdma::GlobalAddress guess = map_->art->Guess(Keys::ArtKey(point).view());
  if (!guess.is_null()) return guess;
  ArtWay way(map_->art->root(), Keys::ArtKey(point).view(), Keys::IsBelow(point));
  map_->art->Go(&way);
  return way.step() == ArtWay::Step::kFound ? way.leaf() : rdma::GlobalAddress();
}

template <class Keys>
coro::Task<Status> OwnWay<Keys>::Locate(Point point, LeafCopy* leaf) {
  bool was_detour = false;
  const Status found = Find(*map_, point, leaf, &was_detour);
  if (found.ok() && was_detour) co_await editor_.AddLeaf(Keys::ArtKey(Keys::LowOf(leaf->image)), leaf->address);
  co_return found;
}

template <class Keys>
coro::Task<void> OwnWay<Keys>::NoteSplit(Key border, rdma::GlobalAddress right) {
  co_await editor_.AddLeaf(Keys::ArtKey(border), right);
}

template <class Keys>
coro::Task<void> OwnWay<Keys>::NoteAbsorbed(Key low, rdma::GlobalAddress leaf) {
  co_await editor_.RemoveLeaf(Keys::ArtKey(low), leaf);
}

template class OwnWay<IntegerKeys>;
template class OwnWay<ByteKeys>;

}  // namespace gannet::index::dolphin
