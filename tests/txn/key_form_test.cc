// TableOptions::key_form: the directory keeps what the keys of a table mean.
#include "txn/store/key_form.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/rectangle.h"
#include "index/tuple_key.h"
#include "log/manifest/manifest.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "txn/durable/backup.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace key_form_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TableOptions WithForm(const std::string& name, KeyForm form) {
  const bool integer = form == KeyForm::kSigned;
  return {.name = name,
          .key_kind = integer ? index::KeyKind::kInteger : index::KeyKind::kBytes,
          .max_key_bytes = integer ? index::kIntegerKeyBytes : 40,
          .key_form = form,
          .index = IndexKind::kXStore,
          .payload_bytes = 8,
          .variable_length = true};
}

std::vector<TableOptions> OneOfEach() {
  return {WithForm("plain", KeyForm::kPlain), WithForm("text", KeyForm::kText), WithForm("tuple", KeyForm::kTuple),
          WithForm("signed", KeyForm::kSigned)};
}

std::vector<std::string> Forms(const Database& database) {
  std::vector<std::string> forms;
  for (const Table* table : database.tables()) {
    forms.push_back(table->name() + " " + std::string(NameOf(table->key_form())));
  }
  return forms;
}

// Leaves the directory as programs did before this option.
void ForgetForms(log::FileSystem& disk, int nodes = 1) {
  for (int node = 0; node < nodes; ++node) {
    const std::string path = nodes == 1 ? "/data" : "/data/node-" + std::to_string(node);
    log::Manifest manifest = *log::ReadManifest(disk, path);
    for (log::TableDescription& table : manifest.tables) table.key_form.clear();
    ASSERT_TRUE(log::WriteManifest(disk, path, manifest).ok());
  }
}

TEST(KeyFormTest, TheDirectoryKeepsIt) {
  const auto all = ElementsAre("plain ", "text text", "tuple tuple", "signed signed");
  const Disk disk = NewDisk();
  for (int run = 0; run < 3; ++run) {
    auto cluster = Open(disk, run == 0 ? OneOfEach() : std::vector<TableOptions>{});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_THAT(Forms((*cluster)->database()), all) << "run " << run;
    EXPECT_EQ((*cluster)->table("tuple").options().key_form, KeyForm::kTuple);
    if (run == 1) {
      ASSERT_TRUE((*cluster)->database().Checkpoint().ok());
    }
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  ASSERT_TRUE(BackUp(*disk, "/data", "/backup").ok());
  ASSERT_TRUE(Restore(*disk, "/backup", "/restored").ok());
  for (const char* directory : {"/backup", "/restored"}) {
    const auto copy = Database::Open(directory, {.files = disk, .memory_bytes = uint64_t{1} << 30});
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_THAT(Forms(**copy), all) << directory;
  }
}

TEST(KeyFormTest, ChangesOfATableKeepIt) {
  const auto changed = ElementsAre("plain ", "text text", "pairs tuple", "signed signed");
  const Disk disk = NewDisk();
  {
    auto cluster = Open(disk, OneOfEach());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    ASSERT_TRUE(database.RenameTable("tuple", "pairs").ok());
    ASSERT_TRUE(database.WidenTable("pairs", 20).ok());
    EXPECT_THAT(Forms(database), changed);
    ASSERT_TRUE(database.CreateTable(WithForm("late", KeyForm::kTuple)).ok());
    ASSERT_TRUE(database.DropTable("late").ok());
  }
  auto cluster = Open(disk);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_THAT(Forms((*cluster)->database()), changed);
}

TEST(KeyFormTest, AnotherFormIsRefused) {
  const Disk disk = NewDisk();
  ASSERT_TRUE(Open(disk, OneOfEach(), 2).ok());
  const Status refused = Open(disk, {WithForm("tuple", KeyForm::kText)}, 2).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("table 'tuple' in the directory is one with keys of the form tuple, and the "
                                          "program creates it as one with keys of the form text"));
  // A program need not say it.
  auto cluster = Open(disk, {WithForm("tuple", KeyForm::kPlain), WithForm("text", KeyForm::kText)}, 2);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ((*cluster)->table("tuple").key_form(), KeyForm::kTuple);
}

TEST(KeyFormTest, ADirectoryWithoutItGetsIt) {
  for (const int nodes : {1, 2}) {
    const Disk disk = NewDisk();
    ASSERT_TRUE(Open(disk, OneOfEach(), nodes).ok());
    ForgetForms(*disk, nodes);
    {
      auto cluster = Open(disk, {}, nodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      EXPECT_THAT(Forms((*cluster)->database()), ElementsAre("plain ", "text ", "tuple ", "signed "));
    }
    // The form is given before Start.
    ASSERT_TRUE(Open(disk, {WithForm("tuple", KeyForm::kTuple)}, nodes).ok());
    {
      // The form is given after Start; a database of several nodes cannot, and says so.
      auto cluster = Open(disk, {}, nodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      EXPECT_EQ((*cluster)->table("tuple").key_form(), KeyForm::kTuple);
      const auto late = (*cluster)->database().CreateTable(WithForm("text", KeyForm::kText));
      if (nodes == 1) {
        ASSERT_TRUE(late.ok()) << late.status();
        EXPECT_EQ((*late)->key_form(), KeyForm::kText);
      } else {
        EXPECT_TRUE(absl::IsFailedPrecondition(late.status())) << late.status();
        EXPECT_THAT(Message(late.status()), HasSubstr("TableOptions::key_form; create it before Database::Start"));
      }
    }
    auto cluster = Open(disk, {}, nodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_THAT(Forms((*cluster)->database()),
                ElementsAre("plain ", nodes == 1 ? "text text" : "text ", "tuple tuple", "signed "));
  }
}

// If there is no room for what a program says after Start, it is noted later, and the table can be used meanwhile.
TEST(KeyFormTest, AFullDiskNotesItWithTheNextCheckpoint) {
  const Disk disk = NewDisk();
  ASSERT_TRUE(Open(disk, OneOfEach()).ok());
  ForgetForms(*disk);
  {
    auto cluster = Open(disk);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    disk->Schedule({.operation = log::DiskOperation::kWrite, .path_contains = "MANIFEST"});
    const auto text = (*cluster)->database().CreateTable(WithForm("text", KeyForm::kText));
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ((*text)->key_form(), KeyForm::kText);
    EXPECT_EQ(log::ReadManifest(*disk, "/data")->tables[1].key_form, "");
    ASSERT_TRUE((*cluster)->database().Checkpoint().ok());
    EXPECT_EQ(log::ReadManifest(*disk, "/data")->tables[1].key_form, "text");
  }
  auto cluster = Open(disk);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ((*cluster)->table("text").key_form(), KeyForm::kText);
}

TEST(KeyFormTest, AFormThatTheKeysCannotHaveIsRefused) {
  auto database = Database::OpenInMemory({.memory_bytes = 1 << 28});
  ASSERT_TRUE(database.ok()) << database.status();
  const auto refused = [&](TableOptions table, KeyForm form, const char* says) {
    table.key_form = form;
    const Status status = (*database)->CreateTable(table).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr(says));
  };
  const TableOptions numbers = WithForm("numbers", KeyForm::kSigned);
  const TableOptions bytes = WithForm("bytes", KeyForm::kPlain);
  TableOptions boxes = bytes;
  boxes.index = IndexKind::kCatfish;
  boxes.max_key_bytes = index::RectangleKey::kBytes;
  refused(numbers, KeyForm::kTuple,
          "table 'numbers': key_form is tuple, which is for byte keys, and its keys are integers");
  refused(numbers, KeyForm::kText, "key_form is text, which is for byte keys, and its keys are integers");
  refused(bytes, KeyForm::kSigned, "key_form is signed, which is for integer keys, and its keys are bytes");
  refused(boxes, KeyForm::kTuple, "key_form is tuple, which is for byte keys, and its keys are rectangles");
  refused(boxes, KeyForm::kSigned, "key_form is signed, which is for integer keys, and its keys are rectangles");
  refused(bytes, static_cast<KeyForm>(4), "key_form is 4, which is not a KeyForm");
}

TEST(KeyFormTest, MessagesWriteKeysSo) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{1} << 30});
  ASSERT_TRUE(database.ok()) << database.status();
  for (const TableOptions& table : OneOfEach()) ASSERT_TRUE((*database)->CreateTable(table).ok());
  ASSERT_TRUE((*database)->Start().ok());
  const auto missing = [&](const char* table, const index::Key& key) {
    std::string payload;
    return Message(
        (*database)->Run([&](BlockingTransaction& t) { return t.Get(*(*database)->FindTable(table), key, &payload); }));
  };
  const index::TupleKey pair = index::Key::Tuple(12, "Main");
  EXPECT_EQ(missing("tuple", pair), "table 'tuple', key (12,\"Main\")");
  EXPECT_EQ(missing("tuple", index::Key::Tuple()), "table 'tuple', key ()");
  EXPECT_EQ(missing("plain", pair), "table 'plain', key (12,\"Main\")") << "most likely";
  EXPECT_EQ(missing("plain", ""), "table 'plain', key \"\"");
  EXPECT_THAT(missing("text", pair), StartsWith("table 'text', key \"\\x")) << "a text, whatever it looks like";
  EXPECT_EQ(missing("signed", index::Key::Signed(-3)), "table 'signed', key -3");
  EXPECT_EQ(missing("tuple", "Oslo"), "table 'tuple', key \"Oslo\"") << "no tuple";
}

}  // namespace key_form_test
}  // namespace gannet::txn
