// XStore at a client: scans.
//
// A batch READs the leaves that the model predicts for the next keys, as many as are likely to be enough by the counts
// in the translation table. Their fences show which of them continue the scan without a gap; where a leaf has split
// since, its right link leads on. Where READs do not succeed, the client calls the owner.
#include <algorithm>

#include "index/xstore/client/remote_of.h"
#include "index/xstore/tree/leaf_pairs.h"

namespace gannet::index::xstore {

template <int W>
struct RemoteOf<W>::ScanState {
  Words from;
  Words to;
  bool reverse;
  size_t end;  // limit of result->entries
  ScanResult* result;

  Words next;  // where the scan continues
  bool done = false;

  size_t room() const { return end - result->entries.size(); }
  // Number of keys that the leaves of a batch should have. The first leaf may have only smaller ones.
  size_t wanted() const {
    constexpr size_t kSlots = LeafLayout<W>::kSlots;
    return room() > SIZE_MAX - 2 * kSlots ? SIZE_MAX : room() + kSlots;
  }
  // The scan has passed all leaves up to the one with these fences.
  void Advance(const Words& low, const Words& high) {
    done = reverse ? low <= from : to <= high;
    done |= room() == 0;
    if (!done) next = reverse ? low.Previous() : high.Next();
  }
};

template <int W>
coro::Task<Status> RemoteOf<W>::Scan(ScanRange range, ScanResult* result) {
  ScanState state{
      .from = EncodeFrom<W>(range.from),
      .to = EncodeTo<W>(range.to),
      .reverse = range.reverse,
      .end = range.limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + range.limit,
      .result = result,
      .next = {}};
  if (range.limit == 0 || state.to < state.from) co_return absl::OkStatus();
  state.next = range.reverse ? state.to : state.from;
  PooledSession session(this);
  FollowCache();
  if (ShouldRenewModel()) {
    const Status renewed = co_await RenewModel(*session);
    GANNET_CO_RETURN_IF_ERROR(renewed);
  }
  ++statistics_.lookups;
  if (cache_.number() != 0) {
    const Status read = co_await ScanByReads(*session, state);
    GANNET_CO_RETURN_IF_ERROR(read);
  }
  if (state.done) {
    ++statistics_.one_sided;
    co_return absl::OkStatus();
  }
  ++statistics_.fallbacks;
  const Status called = co_await ScanByCalls(*session, state);
  co_return called;
}

// True if an image of a whole leaf is consistent, and the scan goes on there from `next` on.
template <int W>
bool RemoteOf<W>::Continues(Leaf<W> leaf, const Words& next) {
  return rdma::IsConsistentImage(leaf.at(), LeafLayout<W>::kLines) && leaf.meta().count <= LeafLayout<W>::kSlots &&
         leaf.Covers(next);
}

// Takes the leaf's part of the scan, if it is the leaf where the scan continues. `keys`: of its slots, as ReadKeys has
// got them; unused if the leaf has its keys itself.
template <int W>
bool RemoteOf<W>::Consume(Leaf<W> leaf, rdma::GlobalAddress address, std::span<const Words> keys,
                          ScanState& state) const {
  if (!Continues(leaf, state.next)) return false;
  state.result->witnesses.push_back({address, leaf.state()});
  LeafPairs<W> pairs;
  // The pairs are taken from `next` on: the leaf may have absorbed others since, also one whose keys were returned
  // already.
  const Words& from = state.reverse ? state.from : state.next;
  const Words& to = state.reverse ? state.next : state.to;
  if constexpr (Leaf<W>::kKeysInRecords) {
    pairs.TakeRead(keys, owner_, leaf, from, to);
  } else {
    pairs.Take(leaf, leaf.meta().count, from, to);
  }
  pairs.Emit(kind_, state.reverse, state.room(), state.result);
  state.Advance(leaf.low(), leaf.high());
  return true;
}

// Scans until done, or until READs make no progress.
template <int W>
coro::Task<Status> RemoteOf<W>::ScanByReads(Session& session, ScanState& state) {
  constexpr int kMaxDetours = 8;  // of one scan
  for (int detours = 0; !state.done;) {
    const Words before = state.next;
    const StatusOr<bool> any = co_await ReadBatch(session, state);
    if (!any.ok()) co_return any.status();
    if (state.done || (*any && state.next != before)) continue;
    if (++detours > kMaxDetours) break;
    // A single lookup handles stale predictions and torn leaves, and updates the cache.
    const Words wanted = state.next;
    Lookup<W>& lookup = *session.lookups[0];
    lookup.Start(wanted, /*whole=*/true);
    while (const size_t n = lookup.Ask(session.operations.data())) {
      const std::span<rdma::Operation> operations(session.operations.data(), n);
      const Status status = co_await channel_->Post(operations);
      GANNET_CO_RETURN_IF_ERROR(status);
      lookup.Look();
    }
    outdated_ |= lookup.outdated();
    statistics_.leaves_read += lookup.leaves_read();
    if (!lookup.found()) break;
    if constexpr (Leaf<W>::kKeysInRecords) {
      const Leaf<W> leaf = lookup.leaf();
      const Status keys = co_await ReadKeys(session, std::span(&leaf, 1));
      GANNET_CO_RETURN_IF_ERROR(keys);
    }
    if (!Consume(lookup.leaf(), lookup.address(), session.keys, state)) break;
  }
  co_return absl::OkStatus();
}

// Chooses the leaves of the next batch from cached tables: session.entries, in scan order.
template <int W>
void RemoteOf<W>::PlanFromTables(Session& session, const ScanState& state) const {
  session.entries.clear();
  TopModel::Place place = cache_->top().Locate(state.next);
  const TopModel::Place last_place = cache_->top().Locate(state.reverse ? state.from : state.to);
  const size_t wanted = state.wanted();
  size_t keys = 0;
  bool first = true;
  bool last = false;
  bool full = false;
  size_t entries_before = 0;  // those of earlier sub-models, and their keys
  size_t keys_before = 0;
  const auto plan = [&](const CachedTable& table) {
    const SubModel& model = table.model();
    const SubModel::Range begin = model.Predict(place.x);
    const SubModel::Range stop = model.Predict(last_place.x);
    int64_t at = state.reverse ? (first ? begin.last : model.size - 1) : (first ? begin.first : 0);
    const int64_t until = state.reverse ? (last ? stop.first : 0) : (last ? stop.last : model.size - 1);
    session.entries.resize(entries_before);
    keys = keys_before;
    full = false;
    for (; state.reverse ? at >= until : at <= until; at += state.reverse ? -1 : 1) {
      const TableEntry entry = table.entry(static_cast<uint32_t>(at));
      if (!session.entries.empty() && session.entries.back().leaf == entry.leaf) continue;  // in both sub-models
      full = session.entries.size() == kScanBatch || keys >= wanted;
      if (full) return;
      session.entries.push_back(entry);
      keys += entry.count;
    }
  };
  while (true) {
    last = place.sub_model == last_place.sub_model;
    if (!cache_->FindTable(place.sub_model, plan)) break;
    if (last || full) return;
    place.sub_model += state.reverse ? -1 : 1;
    first = false;
    entries_before = session.entries.size();
    keys_before = keys;
  }
  session.entries.resize(entries_before);  // the others are void
}

// Does what PlanFromTables does, for a cache that keeps no tables: READs the entries that follow the predicted leaf,
// after the sub-model if that is not cached either. Leaves session.entries empty if the sub-model is not usable now.
template <int W>
coro::Task<Status> RemoteOf<W>::PlanByReads(Session& session, const ScanState& state) {
  session.entries.clear();
  const TopModel::Place place = cache_->top().Locate(state.next);
  SubModelLine line;
  if (!cache_->FindModel(place.sub_model, &line.model, &line.table)) {
    const rdma::GlobalAddress from(owner_, cache_->LineOffset(place.sub_model));
    const Status status = co_await channel_->Read(from, session.line.data(), kLineBytes);
    GANNET_CO_RETURN_IF_ERROR(status);
    if (!line.Load(session.line.data()) || line.generation != cache_.number() || line.index != place.sub_model ||
        line.model.size == 0 || line.model.size > kMaxTableEntries) {
      co_return absl::OkStatus();
    }
    cache_->PutModel(place.sub_model, line.model, line.table);
  }
  const SubModel::Range range = line.model.Predict(place.x);
  const auto most = static_cast<uint32_t>(kScanBatch);
  const uint32_t first = state.reverse ? (range.last + 1 > most ? range.last + 1 - most : 0) : range.first;
  const uint32_t end = state.reverse ? range.last + 1 : std::min(line.model.size, first + most);
  session.table.resize(end - first);
  const rdma::GlobalAddress table(owner_, uint64_t{line.table} * kLineBytes + uint64_t{first} * kWordBytes);
  const auto bytes = static_cast<uint32_t>(session.table.size() * kWordBytes);
  const Status status = co_await channel_->Read(table, session.table.data(), bytes);
  GANNET_CO_RETURN_IF_ERROR(status);
  if (state.reverse) std::reverse(session.table.begin(), session.table.end());
  size_t keys = 0;
  for (size_t i = 0; i < session.table.size() && keys < state.wanted(); ++i) {
    session.entries.push_back(TableEntry::Unpack(session.table[i]));
    keys += session.entries.back().count;
  }
  co_return absl::OkStatus();
}

// READs the planned leaves with one doorbell, then consumes those that continue without a gap. False: there was nothing
// to READ.
template <int W>
coro::Task<StatusOr<bool>> RemoteOf<W>::ReadBatch(Session& session, ScanState& state) {
  if (cache_->keeps_tables()) {
    PlanFromTables(session, state);
  } else {
    const Status planned = co_await PlanByReads(session, state);
    GANNET_CO_RETURN_IF_ERROR(planned);
  }
  const size_t n = session.entries.size();
  if (n == 0) co_return false;
  constexpr auto kLeafBytes = static_cast<uint32_t>(LeafLayout<W>::kBytes);
  session.images.resize(kScanBatch * kLeafBytes + kLineBytes);
  void* at = session.images.data();
  size_t space = session.images.size();
  auto* const images = static_cast<std::byte*>(std::align(kLineBytes, kScanBatch * kLeafBytes, at, space));
  const auto address = [this, &session](size_t i) {
    return rdma::GlobalAddress(owner_, uint64_t{session.entries[i].leaf} * kLineBytes);
  };
  for (size_t i = 0; i < n; ++i) {
    session.operations[i] = rdma::Operation::Read(address(i), images + i * kLeafBytes, kLeafBytes);
  }
  const std::span<rdma::Operation> reads(session.operations.data(), n);
  const Status status = co_await channel_->Post(reads);
  GANNET_CO_RETURN_IF_ERROR(status);
  statistics_.leaves_read += n;
  if (!channel_->capabilities().line_consistent) {
    const Status confirmed = co_await ConfirmImages(session, images);
    GANNET_CO_RETURN_IF_ERROR(confirmed);
  }
  constexpr size_t kSlots = LeafLayout<W>::kSlots;
  std::array<Leaf<W>, kScanBatch> leaves;
  std::array<size_t, kScanBatch> keys_at{};  // in session.keys
  for (size_t i = 0; i < n; ++i) leaves[i] = Leaf<W>(images + i * kLeafBytes);
  if constexpr (Leaf<W>::kKeysInRecords) {
    std::array<Leaf<W>, kScanBatch> useful;
    const size_t size = ChooseUseful(std::span(leaves).first(n), state, useful, keys_at);
    const Status keys = co_await ReadKeys(session, std::span<const Leaf<W>>(useful.data(), size));
    GANNET_CO_RETURN_IF_ERROR(keys);
  }
  for (size_t i = 0; i < n && !state.done; ++i) {
    std::span<const Words> keys;
    if constexpr (Leaf<W>::kKeysInRecords) keys = std::span<const Words>(session.keys).subspan(keys_at[i] * kSlots);
    Consume(leaves[i], address(i), keys, state);
  }
  co_return true;
}

// The leaves of a batch that the scan will take, one after the other: these alone need their keys.
template <int W>
size_t RemoteOf<W>::ChooseUseful(std::span<const Leaf<W>> leaves, const ScanState& state,
                                 std::array<Leaf<W>, kScanBatch>& useful,
                                 std::array<size_t, kScanBatch>& keys_at) const {
  size_t size = 0;
  ScanState at = state;
  for (size_t i = 0; i < leaves.size() && !at.done; ++i) {
    if (!Continues(leaves[i], at.next)) continue;
    keys_at[i] = size;
    useful[size++] = leaves[i];
    at.Advance(leaves[i].low(), leaves[i].high());
  }
  return size;
}

// READs the keys of all entries of consistent images, with one doorbell: session.keys then has those of one leaf after
// the other, kSlots each. Their records are there still (tagged_leaf.h).
template <int W>
coro::Task<Status> RemoteOf<W>::ReadKeys(Session& session, std::span<const Leaf<W>> leaves) {
  constexpr size_t kSlots = LeafLayout<W>::kSlots;
  constexpr size_t kRecordWords = kKeyReadBytes<W> / kWordBytes;
  session.keys.resize(std::max(session.keys.size(), leaves.size() * kSlots));
  session.records.resize(std::max(session.records.size(), leaves.size() * kSlots * kRecordWords));
  session.operations.resize(std::max(session.operations.size(), leaves.size() * kSlots));
  size_t n = 0;
  for (const Leaf<W> leaf : leaves) {
    for (int slot = 0; slot < static_cast<int>(leaf.meta().count); ++slot, ++n) {
      session.operations[n] = rdma::Operation::Read({owner_, leaf.entry(slot).offset()},
                                                    &session.records[n * kRecordWords], kKeyReadBytes<W>);
    }
  }
  const std::span<rdma::Operation> reads(session.operations.data(), n);
  if (n > 0) {
    const Status status = co_await channel_->Post(reads);
    GANNET_CO_RETURN_IF_ERROR(status);
  }
  n = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    for (size_t slot = 0; slot < leaves[i].meta().count; ++slot, ++n) {
      session.keys[i * kSlots + slot] =
          WordsOfRecord<W>(reinterpret_cast<const std::byte*>(&session.records[n * kRecordWords]));
    }
  }
  co_return absl::OkStatus();
}

// Called on fabrics that may tear lines. READs the state words again, and invalidates the images that they contradict
// (fabric.h).
template <int W>
coro::Task<Status> RemoteOf<W>::ConfirmImages(Session& session, std::byte* images) {
  std::array<uint64_t, kScanBatch> states;
  const size_t n = session.entries.size();
  for (size_t i = 0; i < n; ++i) {
    const rdma::GlobalAddress word(owner_, uint64_t{session.entries[i].leaf} * kLineBytes);
    session.operations[i] = rdma::Operation::Read(word, &states[i], kWordBytes);
  }
  const std::span<rdma::Operation> reads(session.operations.data(), n);
  const Status status = co_await channel_->Post(reads);
  GANNET_CO_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < n; ++i) {
    std::byte* const image = images + i * LeafLayout<W>::kBytes;
    if (LoadWord(image) != states[i]) StoreWord(image, rdma::kLineBusy);
  }
  co_return absl::OkStatus();
}

template <int W>
coro::Task<Status> RemoteOf<W>::ScanByCalls(Session& session, ScanState& state) {
  while (!state.done) {
    rdma::WireWriter writer(session.request);
    writer.PutU16(id_);
    writer.PutU8(state.reverse ? 1 : 0);
    PutKey(writer, state.reverse ? state.from : state.next);
    PutKey(writer, state.reverse ? state.next : state.to);
    writer.PutU64(state.room());
    const StatusOr<size_t> bytes =
        co_await channel_->Call(owner_, kScan, writer.written(), session.response.room(), call_timeout_);
    if (!bytes.ok()) co_return bytes.status();
    rdma::WireReader reader(session.response.room().first(*bytes));
    const Status read = ReadScanResponse(reader, state);
    GANNET_CO_RETURN_IF_ERROR(read);
  }
  co_return absl::OkStatus();
}

template <int W>
Status RemoteOf<W>::ReadScanResponse(rdma::WireReader& reader, ScanState& state) {
  // A client that only scans has no other way to learn that there is a model now.
  outdated_ |= reader.GetU64() != cache_.number();
  const bool more = reader.GetU8() != 0;
  const Words next = GetKey<W>(reader);
  const uint32_t entries = reader.GetU32();
  for (uint32_t i = 0; i < entries && reader.ok(); ++i) {
    const Words key = GetKey<W>(reader);
    const rdma::GlobalAddress record = reader.GetAddress();
    if (!reader.ok() || state.room() == 0) break;
    Entry& entry = state.result->entries.emplace_back();
    Decode<W>(key, kind_, &entry.key);
    entry.record = record;
  }
  const uint32_t witnesses = reader.GetU32();
  for (uint32_t i = 0; i < witnesses && reader.ok(); ++i) state.result->witnesses.push_back(GetWitness(reader));
  GANNET_RETURN_IF_ERROR(reader.Finish());
  state.done = !more || state.room() == 0;
  const bool forward = state.reverse ? next < state.next : state.next < next;
  if (!state.done && !forward) return absl::InternalError("the owner's scan does not advance");
  state.next = next;
  return absl::OkStatus();
}

#define GANNET_INSTANTIATE(W) template coro::Task<Status> RemoteOf<W>::Scan(ScanRange, ScanResult*);
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
