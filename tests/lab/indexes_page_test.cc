// docs/indexes.md, from which users choose, has all kinds of index.
#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/index/kinds.h"

namespace gannet::index {
namespace indexes_page_test {

using ::testing::HasSubstr;

TEST(IndexesPageTest, HasARowForEachKind) {
  std::stringstream page;
  page << std::ifstream(GANNET_SOURCE_DIR "/docs/indexes.md").rdbuf();
  EXPECT_THAT(page.str(), HasSubstr("`gannet reproduce kinds`"));
  for (const IndexKind kind : KindsThat([](const IndexTraits&) { return true; })) {
    EXPECT_THAT(page.str(), HasSubstr("\n| `" + EntryOf(kind).name + "` |")) << "run gannet reproduce kinds";
  }
}

}  // namespace indexes_page_test
}  // namespace gannet::index
