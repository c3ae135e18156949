#include "index/remote/leaf_keys.h"

namespace gannet::index::remote {

template <class Keys>
coro::Task<StatusOr<int>> FindKey(LeafChannel* leaves, const typename Keys::Schema& schema, typename Keys::Key key,
                                  LeafPlaceOf<Keys>* leaf) {
  if constexpr (Keys::kKeysElsewhere) {
    uint64_t same = MatchTag(leaf->image, schema.TagOf(key));
    if (same == 0) co_return -1;
    const Status read = co_await ReadKeys(leaves, schema, leaf, same);
    GANNET_CO_RETURN_IF_ERROR(read);
    for (same &= leaf->keys.known; same != 0; same &= same - 1) {
      const int slot = std::countr_zero(same);
      if (Keys::KeyAt(leaf->image, leaf->keys, slot) == key) co_return slot;
    }
    co_return -1;
  } else {
    co_return FindSlot(leaf->image, key);
  }
}

template <class Keys>
int FindOwnKey(const LeafBlocks& blocks, const typename Keys::Schema& schema, const typename Keys::Key& key,
               const LeafPlaceOf<Keys>& leaf) {
  if constexpr (Keys::kKeysElsewhere) {
    for (uint64_t same = MatchTag(leaf.image, schema.TagOf(key)); same != 0; same &= same - 1) {
      const int slot = std::countr_zero(same);
      if (OwnRecordHolds(blocks, leaf.image.template entry<typename Keys::Entry>(slot).offset(), key)) return slot;
    }
    return -1;
  } else {
    return FindSlot(leaf.image, key);
  }
}

template <class Keys>
coro::Task<Status> ReadAllKeys(LeafChannel* leaves, const typename Keys::Schema& schema, LeafPlaceOf<Keys>* leaf,
                               bool sure) {
  if constexpr (Keys::kKeysElsewhere) {
    const Status read =
        co_await ReadKeys(leaves, schema, leaf, leaf->image.template used<typename Keys::Entry>(), sure);
    co_return read;
  }
  co_return absl::OkStatus();
}

#define GANNET_INSTANTIATE(Keys)                                                                                      \
  template coro::Task<StatusOr<int>> FindKey<Keys>(LeafChannel*, const Keys::Schema&, Keys::Key, LeafPlaceOf<Keys>*); \
  template int FindOwnKey<Keys>(const LeafBlocks&, const Keys::Schema&, const Keys::Key&, const LeafPlaceOf<Keys>&);  \
  template coro::Task<Status> ReadAllKeys<Keys>(LeafChannel*, const Keys::Schema&, LeafPlaceOf<Keys>*, bool);
GANNET_INSTANTIATE(IntegerKeys)
GANNET_INSTANTIATE(ByteKeys)
#undef GANNET_INSTANTIATE
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::remote
