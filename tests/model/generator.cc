#include "tests/model/generator.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"
#include "index/registry.h"
#include "tests/model/model.h"

namespace gannet::model {
namespace {

using txn::DurabilityMode;
using txn::IndexKind;
using txn::Placement;
using txn::ReadPathPolicy;
using txn::TableOptions;

template <class T, size_t N>
T OneOf(Random& random, const T (&values)[N]) {
  return values[random.Below(N)];
}

IndexKind OrderedKind(Random& random) {
  return OneOf(random,
               {IndexKind::kXStore, IndexKind::kBlink, IndexKind::kRolex, IndexKind::kDex, IndexKind::kDolphin});
}

// A user-defined placement: neighbours are on different nodes, and only a range of one key has one owner.
Placement ByLastByte() {
  return {.owner = [](const index::Key& key, int nodes) -> rdma::NodeId {
            const uint64_t last = key.kind() == index::KeyKind::kInteger ? key.integer()
                                  : key.bytes().empty()                  ? 0
                                                                         : static_cast<uint8_t>(key.bytes().back());
            return static_cast<rdma::NodeId>(last % static_cast<uint64_t>(nodes));
          },
          .range_owner =
              [](const index::Key& from, const index::Key& to, int nodes) {
                if (!(from == to)) return Placement::kSeveralNodes;
                return static_cast<int>(ByLastByte().owner(from, nodes));
              }};
}

// Ranges that begin at some of the keys. `owners`: at least 2.
Placement ByDrawnRange(Random& random, index::KeyKind kind, const std::vector<std::string>& keys, int owners) {
  std::set<std::string> drawn;
  const uint64_t wanted = 1 + random.Below(static_cast<uint64_t>(owners) - 1);
  while (drawn.size() < wanted) drawn.insert(keys[random.Below(keys.size())]);
  std::vector<index::Key> starts;
  for (const std::string& start : drawn) starts.push_back(KeyOf(kind, start));
  return Placement::ByRange(starts);
}

std::vector<std::string> DrawIntegerKeys(Random& random) {
  std::set<std::string> keys = {IntegerKey(0), IntegerKey(UINT64_MAX)};
  const uint64_t dense = random();
  for (uint64_t i = 0, n = 8 + random.Below(40); i < n; ++i) keys.insert(IntegerKey(dense + i));
  for (uint64_t i = 0, n = random.Below(8); i < n; ++i) keys.insert(IntegerKey(i));
  for (uint64_t i = 0, n = random.Below(8); i < n; ++i) keys.insert(IntegerKey(UINT64_MAX - i));
  for (uint64_t i = 0, n = random.Below(8); i < n; ++i) keys.insert(IntegerKey(random()));
  return {keys.begin(), keys.end()};
}

std::vector<std::string> DrawByteKeys(Random& random, size_t longest) {
  const std::string alphabets[] = {std::string("\0\xff", 2), std::string("\0a\xff", 3), "ab", "abcdefghijklmnop"};
  const std::string& alphabet = alphabets[random.Below(4)];
  const auto draw = [&](size_t size) {
    std::string key(size, '\0');
    for (char& byte : key) byte = alphabet[random.Below(alphabet.size())];
    return key;
  };
  std::set<std::string> keys = {"", std::string(longest, '\0'), std::string(longest, '\xff'), std::string(1, '\0')};
  const size_t wanted = 10 + random.Below(40);
  for (size_t tries = 0; keys.size() < wanted && tries < 4 * wanted; ++tries) {
    const std::string& other = *std::next(keys.begin(), static_cast<ptrdiff_t>(random.Below(keys.size())));
    switch (random.Below(4)) {
      case 0:
        keys.insert(draw(random.Below(random.OneIn(2) ? longest + 1 : std::min<size_t>(longest, 64) + 1)));
        break;
      case 1:
        keys.insert(draw(longest));
        break;
      case 2:  // a prefix of another key
        keys.insert(other.substr(0, random.Below(other.size() + 1)));
        break;
      case 3:  // another key, extended
        keys.insert((other + draw(1 + random.Below(3))).substr(0, longest));
        break;
    }
  }
  return {keys.begin(), keys.end()};
}

// `owners`: number of nodes that own rows.
TableSpec DrawTable(Random& random, size_t number, int owners) {
  TableSpec spec;
  TableOptions& options = spec.options;
  options.name = absl::StrCat("table", number);
  if (random.OneIn(2)) {
    options.key_kind = index::KeyKind::kBytes;
    options.max_key_bytes = OneOf<size_t>(random, {1, 2, 7, 8, 9, 15, 16, 23, 24, 31, 39, 40, 63, 64});
  }
  options.index = random.OneIn(3) ? IndexKind::kHash : OrderedKind(random);
  const size_t most_key_bytes = index::EntryOf(options.index).traits.max_key_bytes;
  if (options.key_kind == index::KeyKind::kBytes && most_key_bytes > index::kShortKeyBytes && random.OneIn(2)) {
    options.max_key_bytes = OneOf<size_t>(random, {65, 100, 255, 256, 500, 513, 1000, most_key_bytes});
  }
  options.variable_length = !random.OneIn(3);
  options.payload_bytes =
      options.variable_length
          ? OneOf<size_t>(random, {1, 8, 39, 40, 100, 300, 600, 1000, 4000, 4000, 20'000, txn::kMaxPayloadBytes})
          : OneOf<size_t>(random, {1, 7, 8, 31, 32, 33, 39, 40, 41, 88, 100, 500, 600, 3000, txn::kMaxPayloadBytes});
  options.expected_rows = OneOf<uint64_t>(random, {1, 16, 1024});
  const uint64_t placement = random.Below(10);
  options.placement = placement < 3   ? Placement::OnFirstNode()
                      : placement < 5 ? Placement::ByHash()
                      : placement < 7 ? ByLastByte()
                      : placement < 8 ? Placement::Replicated()
                                      : Placement::OnFirstNode();
  spec.keys = options.key_kind == index::KeyKind::kInteger ? DrawIntegerKeys(random)
                                                           : DrawByteKeys(random, options.max_key_bytes);
  if (placement >= 8 && owners > 1) options.placement = ByDrawnRange(random, options.key_kind, spec.keys, owners);
  std::shuffle(spec.keys.begin(), spec.keys.end(), random);
  spec.loaded = options.placement.replicated || random.OneIn(3);
  return spec;
}

// Gives some tables a form of keys, which the catalog must keep. The draws change nothing of the rest of the world.
void DrawKeyForms(World* world) {
  Random random(Mix64(world->seed) ^ 0x6a09e667f3bcc908ull);
  for (TableSpec& spec : world->tables) {
    TableOptions& options = spec.options;
    if (random.OneIn(2)) continue;
    options.key_form = options.key_kind == index::KeyKind::kInteger
                           ? txn::KeyForm::kSigned
                           : OneOf(random, {txn::KeyForm::kText, txn::KeyForm::kTuple});
  }
}

// Two indexes of one table, and possibly one of another. Their draws change nothing of the rest of the world.
void DrawIndexes(World* world) {
  Random random(Mix64(world->seed) ^ 0x1d8e4e27c47d124full);
  if (random.OneIn(3)) return;
  for (int i = 0; i < 2; ++i) {
    const size_t table = random.Below(world->tables.size());
    TableSpec& spec = world->tables[table];
    if (spec.options.placement.replicated || spec.options.payload_bytes < 2 || world->HasIndex(table)) continue;
    spec.loaded = false;  // rows of tables with indexes are not loaded
    for (const bool unique : {false, true}) {
      if (i > 0 && random.OneIn(2)) continue;
      const std::string name = absl::StrCat(spec.options.name, unique ? "_unique" : "_index");
      std::optional<IndexSpec> index = DrawIndex(random, *world, table, name, unique);
      if (index.has_value()) world->indexes.push_back(*std::move(index));
    }
  }
}

// What an operation does in a world with indexes, instead of what was drawn.
void DrawIndexOp(Random& random, const World& world, Op* op) {
  const size_t number = random.Below(world.indexes.size());
  const IndexSpec& index = world.indexes[number];
  op->kind = index.options.unique && random.OneIn(2) ? OpKind::kGetBy : OpKind::kIndexCursor;
  op->places = {{.table = index.table, .key = 0}};
  op->index = number;
  op->for_update = random.OneIn(4);
  op->keys_only = random.OneIn(5);
  op->reverse = random.OneIn(2);
  op->limit = random.OneIn(2) ? SIZE_MAX : 1 + random.Below(12);
}

Op DrawOp(Random& random, const World& world, const std::vector<Op::Place>& hot, bool by_hand) {
  const auto place = [&] {
    if (!random.OneIn(3)) return hot[random.Below(hot.size())];
    Op::Place drawn;
    drawn.table = random.Below(world.tables.size());
    drawn.key = random.Below(world.tables[drawn.table].keys.size());
    return drawn;
  };
  Op op;
  const uint64_t kind = random.Below(100);
  op.kind = kind < 9    ? OpKind::kGet
            : kind < 12 ? OpKind::kGetView
            : kind < 19 ? OpKind::kGetMany
            : kind < 21 ? OpKind::kExists
            : kind < 30 ? OpKind::kGetForUpdate
            : kind < 42 ? OpKind::kUpdateByHandle
            : kind < 52 ? OpKind::kUpdateByKey
            : kind < 56 ? OpKind::kUpsert
            : kind < 59 ? OpKind::kUpdateIf
            : kind < 62 ? OpKind::kAdd
            : kind < 74 ? OpKind::kInsert
            : kind < 77 ? OpKind::kRemoveByHandle
            : kind < 84 ? OpKind::kRemoveByKey
            : kind < 90 ? OpKind::kScan
            : kind < 92 ? OpKind::kPages
            : kind < 96 ? OpKind::kCursor
            : kind < 97 ? OpKind::kValidate
            : kind < 98 ? OpKind::kRollback
                        : OpKind::kInterlope;
  // A body that ends its transaction can do nothing more, so this is rare.
  if (op.kind == OpKind::kRollback && !by_hand) {
    op.kind = OpKind::kGet;
    if (random.OneIn(2)) op.kind = random.OneIn(2) ? OpKind::kRollback : OpKind::kCommit;
  }
  op.salt = random();
  op.places.push_back(place());
  if (op.kind == OpKind::kInterlope && random.OneIn(2)) op.places.push_back(place());
  if (op.kind == OpKind::kGetMany) {
    const size_t n = random.OneIn(8) ? 100 : 1 + random.Below(8);
    for (size_t i = 1; i < n; ++i) op.places.push_back(place());
    for (Op::Place& each : op.places) each.for_update = random.OneIn(4);
  }
  if (op.kind == OpKind::kScan || op.kind == OpKind::kPages || op.kind == OpKind::kCursor) {
    op.places.push_back(op.places[0]);
    op.places[1].key = random.Below(world.tables[op.places[0].table].keys.size());
    op.for_update = random.OneIn(4);
    op.keys_only = random.OneIn(5);
    op.reverse = random.OneIn(2);
    if (op.kind == OpKind::kPages) {
      op.limit = 2 + random.Below(6);
    } else if (random.OneIn(2)) {
      op.limit = random.OneIn(8) ? 0 : 1 + random.Below(12);
    }
  }
  Random own(op.salt);
  if (!world.indexes.empty() && own.OneIn(6)) DrawIndexOp(own, world, &op);
  if (own.OneIn(20)) op.kind = OpKind::kDropped;
  return op;
}

}  // namespace

std::string World::ToString() const {
  constexpr std::array kPaths = {"adaptive", "one-sided", "by call"};
  constexpr std::array kModes = {"none", "async", "sync"};
  static_assert(static_cast<int>(ReadPathPolicy::kAdaptive) == 0 && static_cast<int>(ReadPathPolicy::kOneSided) == 1 &&
                static_cast<int>(ReadPathPolicy::kCall) == 2);
  std::string text = absl::StrCat(NameOf(fabric), ", nodes ", nodes, ", data_nodes ", data_nodes, ", reads ",
                                  kPaths[static_cast<size_t>(read_path)], ", durability ",
                                  directory ? kModes[static_cast<size_t>(durability)] : "without a directory",
                                  ", run_sessions ", run_sessions, log_bytes == 0 ? "" : ", log for ",
                                  log_bytes == 0 ? "" : absl::StrCat(log_bytes, " bytes of a transaction"));
  for (const TableSpec& table : tables) {
    const TableOptions& o = table.options;
    absl::StrAppend(&text, "\n  ", o.name, ": ", index::EntryOf(o.index).name, ", ",
                    o.key_kind == index::KeyKind::kInteger ? std::string("integer keys")
                                                           : absl::StrCat("keys of <= ", o.max_key_bytes, " bytes"),
                    ", ", table.keys.size(), " of them, payloads ", o.variable_length ? "<= " : "", o.payload_bytes,
                    o.placement.replicated          ? ", replicated"
                    : o.placement.ranges != nullptr ? ", by range"
                                                    : "",
                    table.loaded ? ", loaded" : "");
  }
  for (const IndexSpec& index : indexes) {
    absl::StrAppend(&text, "\n  ", index.options.name, ": ", index.options.unique ? "unique, " : "",
                    index::EntryOf(index.options.index).name);
  }
  return text;
}

World DrawWorld(uint64_t seed, const FabricKind* fabric) {
  Random random(Mix64(seed));
  World world;
  world.seed = seed;
  world.fabric = fabric != nullptr ? *fabric : static_cast<FabricKind>(seed % kFabricKinds);
  world.nodes = 1 + static_cast<int>(random.Below(3));
  if (world.nodes > 1 && random.OneIn(3)) world.data_nodes = 1 + static_cast<int>(random.Below(world.nodes));
  world.read_path = OneOf(random, {ReadPathPolicy::kAdaptive, ReadPathPolicy::kOneSided, ReadPathPolicy::kCall});
  world.directory = random.OneIn(2);
  if (world.directory) world.data_nodes = 0;  // a cluster with clients keeps no log
  world.durability = OneOf(random, {DurabilityMode::kNone, DurabilityMode::kAsync, DurabilityMode::kSync});
  world.run_sessions = OneOf(random, {1, 2, 3, 64});
  const size_t tables = 2 + random.Below(4);
  const int owners = world.data_nodes == 0 ? world.nodes : world.data_nodes;
  for (size_t i = 0; i < tables; ++i) world.tables.push_back(DrawTable(random, i, owners));
  Random own(Mix64(seed) ^ 0x94d049bb133111ebull);
  const bool has_log = world.directory && world.durability != DurabilityMode::kNone;
  if (has_log && own.OneIn(3)) world.log_bytes = txn::kMinLogBuffer << (1 + own.Below(3));
  DrawKeyForms(&world);
  if (world.log_bytes == 0) DrawIndexes(&world);
  return world;
}

Step DrawStep(const World& world, uint64_t number) {
  Random random(Mix64(world.seed) + 0x9e3779b97f4a7c15ull * (number + 1));
  Step step;
  if (const uint64_t event = random.Below(60); event < 6) {
    step.event = event == 0   ? Event::kReopen
                 : event == 1 ? Event::kCheckpoint
                 : event == 2 ? Event::kCrash
                              : Event::kChangeTable;
    step.event_salt = random();
  }
  TransactionSpec& transaction = step.transaction;
  transaction.node = static_cast<int>(random.Below(static_cast<uint64_t>(world.nodes)));
  transaction.session = random.Below(kSessionsPerNode);
  transaction.way = static_cast<Way>(random.Below(kWays));
  const uint64_t ending = random.Below(10);
  transaction.ending = ending < 6    ? Ending::kCommit
                       : ending == 6 ? Ending::kThrow
                       : ending == 7 ? Ending::kError
                       : ending == 8 ? Ending::kRollback
                                     : Ending::kDestroy;
  transaction.plain = transaction.ending == Ending::kThrow && random.OneIn(3) &&
                      (transaction.way == Way::kRun || transaction.way == Way::kRunBlocking);
  std::vector<Op::Place> hot;
  for (uint64_t i = 0, n = 1 + random.Below(4); i < n; ++i) {
    Op::Place place;
    place.table = i > 0 && random.OneIn(2) ? hot[0].table : random.Below(world.tables.size());
    place.key = random.Below(world.tables[place.table].keys.size());
    hot.push_back(place);
  }
  const uint64_t ops = random.OneIn(10) ? 10 + random.Below(40) : 1 + random.Below(10);
  for (uint64_t i = 0; i < ops; ++i) {
    transaction.ops.push_back(DrawOp(random, world, hot, IsByHand(transaction.way)));
  }
  return step;
}

std::optional<IndexSpec> DrawIndex(Random& random, const World& world, size_t table, std::string name, bool unique) {
  const TableOptions& options = world.tables[table].options;
  if (options.placement.replicated || options.payload_bytes < 2) return std::nullopt;
  const int owners = world.data_nodes == 0 ? world.nodes : world.data_nodes;
  IndexSpec index{.table = table, .options = {}};
  index.options = {.name = std::move(name), .table = options.name, .unique = unique};
  if (!unique) index.options.fields = {txn::IndexField::Unsigned(0, 1), txn::IndexField::Signed(1, 1)};
  if (unique) index.options.fields = {txn::IndexField::Unsigned(1, 1)};
  index.options.index = OrderedKind(random);
  const uint64_t placement = random.Below(3);
  index.options.placement = placement == 0 || owners == 1 ? Placement::OnFirstNode()
                            : placement == 1              ? Placement::ByHash()
                                                          : ByLastByte();
  // The longest keys need room for the fields.
  const size_t most = index::EntryOf(index.options.index).traits.max_key_bytes;
  if (!unique && options.max_key_bytes + 18 > most) return std::nullopt;
  return index;
}

size_t DrawSize(Random& random, const TableOptions& table) {
  const size_t most = table.payload_bytes;
  if (!table.variable_length) return most;
  switch (random.Below(8)) {
    case 0:
      return 0;
    case 1:
      return most;
    case 2:
      return random.Below(most + 1);
    case 3: {  // so that the payload of a record with an integer key ends near the end of a line
      const uint64_t lines = random.Below(most / 56 + 1);
      return std::min<size_t>(most, 32 + lines * 56 + random.Below(16));
    }
    default:
      return std::min<size_t>(most, random.Below(40));  // small rows: one or two lines each, side by side
  }
}

std::string DrawPayload(Random& random, size_t size) {
  std::string payload(size, '\0');
  for (size_t at = 0; at < size; at += 8) {
    const uint64_t word = random();
    for (size_t i = 0; i < std::min<size_t>(8, size - at); ++i) payload[at + i] = static_cast<char>(word >> (8 * i));
  }
  return payload;
}

}  // namespace gannet::model
