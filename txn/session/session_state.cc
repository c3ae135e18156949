#include "txn/session/session_state.h"

#include <utility>

#include "index/registry.h"
#include "txn/node/client_caches.h"

namespace gannet::txn {

// No transaction uses the index of a table that is not in the set any more.
void SessionState::ForgetDroppedTables() {
  const size_t dropped = local->tables.removals();
  if (dropped == forgotten_tables) return;
  forgotten_tables = dropped;
  const size_t nodes = static_cast<size_t>(local->fabric.num_nodes());
  for (size_t place = 0; place < remote_indexes.size(); ++place) {
    if (local->tables.WasRemoved(static_cast<TableId>(place / nodes))) ForgetIndex(place);
  }
}

void SessionState::ForgetIndex(size_t place) {
  const index::RemoteIndex* const index = remote_indexes[place].get();
  if (index == nullptr) return;
  for (OpenTransaction* const transaction : transactions) transaction->ForgetIndex(index);
  remote_indexes[place].reset();
}

StatusOr<index::RemoteIndex*> SessionState::RemoteIndexOf(const Table& table, rdma::NodeId node) {
  const size_t place = table.id() * static_cast<size_t>(local->fabric.num_nodes()) + node;
  if (place >= remote_indexes.size()) [[unlikely]]  // a table that was created after the session was opened
    remote_indexes.resize(local->tables.id_bound() * static_cast<size_t>(local->fabric.num_nodes()));
  if (place >= opened_for_bytes.size()) [[unlikely]]
    opened_for_bytes.resize(remote_indexes.size());
  std::unique_ptr<index::RemoteIndex>& slot = remote_indexes[place];
  const size_t row_bytes = table.options().variable_length ? 0 : table.payload_bytes();
  if (slot == nullptr || opened_for_bytes[place] != row_bytes) {
    ForgetDroppedTables();
    ForgetIndex(place);
    const bool by_call = local->options.read_path == ReadPathPolicy::kCall;
    const index::IndexKindEntry& kind = index::EntryOf(table.options().index);
    StatusOr<std::unique_ptr<index::RemoteIndex>> opened = kind.connect(
        channel.get(), node, table.id(),
        {.key_kind = table.options().key_kind,
         .max_key_bytes = table.options().max_key_bytes,
         .rights = *table.options().index_rights,
         .location_cache_bytes = local->options.location_cache_bytes,
         .by_call = by_call,
         .call_timeout = local->options.call_timeout,
         .node = &local->node,
         .shared_cache = by_call ? nullptr : local->client_caches.Of(table, node, local->options.page_cache_bytes),
         .claims = local->claims});
    if (!opened.ok()) return opened.status();
    slot = std::move(*opened);
    const index::CachePool* const pool = local->client_caches.PoolOf(kind);
    const bool is_new = std::ranges::find(cache_pools, pool) == cache_pools.end();
    if (pool != nullptr && local->claims != nullptr && is_new) cache_pools.push_back(pool);
    opened_for_bytes[place] = row_bytes;
  }
  return slot.get();
}

}  // namespace gannet::txn
