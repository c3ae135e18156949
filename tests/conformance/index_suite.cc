#include "tests/conformance/index_suite.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/thorough.h"

namespace gannet::index {

std::vector<IndexCase> AllCases(const IndexFactory& factory) {
  return {{factory, KeyKind::kInteger}, {factory, KeyKind::kBytes}};
}

std::vector<IndexCase> OtherClients(IndexFactory factory) {
  factory.client_differs = true;
  return AllCases(factory);
}

std::string CaseName(const testing::TestParamInfo<IndexCase>& info) {
  return absl::StrCat(info.param.factory.name, info.param.key_kind == KeyKind::kInteger ? "_integer" : "_bytes");
}

OwnedKey TestKey(KeyKind kind, uint64_t n, size_t longest) {
  if (kind == KeyKind::kInteger) return OwnedKey(Key(n));
  if (n == UINT64_MAX) return OwnedKey(Key(std::string_view(std::string(longest, '\xff'))));
  std::string bytes;
  if (n > 0) {
    if (n % 3 == 1) bytes = "name-";
    if (n % 3 == 2) bytes = "a prefix that many long keys share: ";
    absl::StrAppend(&bytes, n);
    bytes.append(n % 7, '\0');
    if (longest > kShortKeyBytes && n % 8 == 5) {
      bytes.resize(kShortKeyBytes + 1 + n * 37 % (longest - kShortKeyBytes), 'l');
    }
  }
  return OwnedKey(Key(std::string_view(bytes)));
}

OwnedKey IndexCase::KeyOf(uint64_t n) const {
  return factory.key != nullptr ? factory.key(n) : TestKey(key_kind, n, factory.max_key_bytes);
}

bool Changes(const Change& change, const Witness& witness) {
  return std::ranges::any_of(change.words(), [&](const WordChange& word) {
    return word.word == witness.word && IsSameSet(word.before, witness.seen);
  });
}

bool HeldWitnesses::Valid() const {
  return std::all_of(witnesses_.begin(), witnesses_.end(), [this](const Witness& w) { return cluster_->Valid(w); });
}

void HeldWitnesses::Apply(const Change& change) {
  std::vector<Witness> carried;
  for (const WordChange& word : change.words()) carried.push_back({word.word, word.after});
  const bool held = std::erase_if(witnesses_, [&](const Witness& witness) { return Changes(change, witness); }) > 0;
  if (held) witnesses_.insert(witnesses_.end(), carried.begin(), carried.end());
}

RandomRange::RandomRange(const IndexCase& test, uint64_t keys, Random* random) {
  from = random->OneIn(10) ? test.KeyOf(0) : test.KeyOf(random->Below(keys));
  to = random->OneIn(10) ? test.KeyOf(UINT64_MAX) : test.KeyOf(random->Below(keys));
  if (to.view() < from.view()) std::swap(from, to);
}

void IndexSuite::Start(uint64_t expected_keys, const IndexCluster::Options& options) {
  const IndexFactory& factory = GetParam().factory;
  const bool integers = GetParam().key_kind == KeyKind::kInteger;
  shape_ = {.id = kId,
            .key_kind = GetParam().key_kind,
            .max_key_bytes = integers ? kIntegerKeyBytes : factory.max_key_bytes,
            .expected_keys = expected_keys};
  IndexCluster::Options all = options;
  // Called by several threads at once.
  all.connect = [factory, shape = shape_](rdma::Channel* channel, IndexId id) {
    IndexFactory::Shape of_id = shape;
    of_id.id = id;
    return factory.connect(channel, /*owner=*/0, of_id);
  };
  cluster_ = std::make_unique<IndexCluster>(all);
  factory.register_methods(cluster_->owner().service.get());
  auto index = factory.create(cluster_->owner().service.get(), shape_);
  ASSERT_TRUE(index.ok()) << index.status();
  index_ = std::move(*index);
  cluster_->Serve();
  main_ = std::make_unique<OwnerThread>(cluster_.get());
}

void IndexSuite::SetUp() {
  if (!GetParam().factory.client_differs || IsThorough()) return;
  const std::string_view file = testing::UnitTest::GetInstance()->current_test_info()->file();
  if (!file.ends_with("_remote_test.cc") && !file.ends_with("_client_test.cc") &&
      !file.ends_with("_client_change_test.cc")) {
    GTEST_SKIP() << "the owner is that of another case";
  }
}

void IndexSuite::TearDown() {
  // Handlers may use the index until the cluster is down; the threads' caches need the cluster's allocator.
  if (cluster_ != nullptr) cluster_->owner().node->Shutdown();
  main_.reset();
  index_.reset();
  cluster_.reset();
}

std::unique_ptr<RemoteIndex> IndexSuite::Connect(ClientThread* client) {
  auto remote = client->Connect(shape_.id);
  EXPECT_TRUE(remote.ok()) << remote.status();
  return std::move(*remote);
}

Change IndexSuite::MustInsert(OwnerThread* owner, const OwnedKey& key, rdma::GlobalAddress* record) {
  EpochGuard guard(owner->epoch());
  const rdma::GlobalAddress made = owner->NewRecord(key.view());
  StatusOr<Change> change = index_->Insert(owner->context(), key.view(), made, nullptr);
  EXPECT_TRUE(change.ok()) << "inserting " << key.view().ToString() << ": " << change.status();
  if (record != nullptr) *record = made;
  return change.ok() ? *std::move(change) : Change{};
}

Change IndexSuite::MustRemove(OwnerThread* owner, const OwnedKey& key, rdma::GlobalAddress record) {
  EpochGuard guard(owner->epoch());
  StatusOr<Change> change = index_->Remove(owner->context(), key.view(), record);
  EXPECT_TRUE(change.ok()) << "removing " << key.view().ToString() << ": " << change.status();
  if (change.ok()) owner->RetireRecord(record);
  return change.ok() ? *std::move(change) : Change{};
}

Change IndexSuite::InsertBoth(const OwnedKey& key) {
  rdma::GlobalAddress record;
  Change change = MustInsert(main_.get(), key, &record);
  EXPECT_TRUE(model_.emplace(key, record).second);
  return change;
}

Change IndexSuite::RemoveBoth(const OwnedKey& key) {
  const auto at = model_.find(key);
  EXPECT_NE(at, model_.end());
  Change change = MustRemove(main_.get(), at->first, at->second);
  model_.erase(at);
  return change;
}

void IndexSuite::ExpectSound(const Change& change) const {
  EXPECT_FALSE(change.empty());
  for (const WordChange& word : change.words()) {
    EXPECT_NE(word.before, word.after);
    EXPECT_TRUE(cluster_->Valid({word.word, word.after})) << word.word.ToString();
    EXPECT_EQ(std::ranges::count(change.words(), word.word, &WordChange::word), 1);
  }
}

const OwnedKey& IndexSuite::AnyKey(Random* random) const {
  auto at = model_.begin();
  std::advance(at, random->Below(model_.size()));
  return at->first;
}

void IndexSuite::ExpectScansRecords(const ScanRange& range) const {
  std::vector<rdma::GlobalAddress> found;
  std::vector<Witness> witnesses;
  const auto take = [&](std::span<const rdma::GlobalAddress> records, const Witness& witness) {
    found.insert(found.end(), records.begin(), records.end());
    witnesses.push_back(witness);
    return true;
  };
  const Status status = index_->ScanRecords(range, take);
  if (!GetParam().factory.scans_records) {
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    return;
  }
  ASSERT_TRUE(status.ok()) << status;
  std::vector<rdma::GlobalAddress> expected;
  for (const Entry& entry : ModelScan(range)) expected.push_back(entry.record);
  EXPECT_EQ(found, expected);
  ScanResult same;
  ASSERT_TRUE(index_->Scan(range, &same).ok());
  ASSERT_EQ(witnesses.size(), same.witnesses.size());
  for (size_t i = 0; i < witnesses.size(); ++i) {
    EXPECT_EQ(witnesses[i].word, same.witnesses[i].word);
    EXPECT_EQ(witnesses[i].seen, same.witnesses[i].seen);
  }
  // It ends where it is told to.
  size_t calls = 0;
  ASSERT_TRUE(index_->ScanRecords(range, [&](auto, const Witness&) { return ++calls < 2; }).ok());
  EXPECT_EQ(calls, std::min<size_t>(witnesses.size(), 2));
}

std::vector<Entry> IndexSuite::ModelScan(const ScanRange& range) const {
  std::vector<Entry> entries;
  for (const auto& [key, record] : model_) {
    if (key.view() < range.from || range.to < key.view()) continue;
    entries.push_back({key, record});
  }
  if (range.reverse) std::reverse(entries.begin(), entries.end());
  if (entries.size() > range.limit) entries.resize(range.limit);
  return entries;
}

void IndexSuite::ExpectEntries(const std::vector<Entry>& expected, const std::vector<Entry>& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].key.view(), actual[i].key.view()) << "entry " << i;
    ASSERT_EQ(expected[i].record, actual[i].record) << "entry " << i;
  }
}

void IndexSuite::ExpectSameAsModel() {
  EpochGuard guard(main_->epoch());
  const Status structure = index_->CheckStructure();
  ASSERT_TRUE(structure.ok()) << structure;
  EXPECT_EQ(index_->statistics().keys, model_.size());
  std::vector<Key> keys;
  for (const auto& [key, record] : model_) {
    const FindResult found = index_->Find(key.view());
    ASSERT_EQ(found.record, record) << key.view().ToString();
    keys.push_back(key.view());
  }
  std::vector<FindResult> results(keys.size());
  index_->FindMany(keys, results);
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(results[i].record, model_.at(OwnedKey(keys[i])));
  if (!ordered()) return;
  const OwnedKey least = KeyOf(0);
  const OwnedKey greatest = KeyOf(UINT64_MAX);
  ScanRange all{.from = least.view(), .to = greatest.view()};
  for (const bool reverse : {false, true}) {
    all.reverse = reverse;
    ScanResult result;
    const Status status = index_->Scan(all, &result);
    ASSERT_TRUE(status.ok()) << status;
    ExpectEntries(ModelScan(all), result.entries);
  }
}

}  // namespace gannet::index
