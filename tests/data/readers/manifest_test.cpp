#include "sparsight/data/readers/manifest.h"

#include <gtest/gtest.h>

#include "sparsight/data/readers/csv.h"
#include "tests/data/readers/fixtures.h"

namespace sparsight::manifest_test {

using testing::complaint;
using testing::says;

using Fields = std::vector<std::string>;

TEST(Csv, FollowsRfc4180) {
  const auto rows = parse_csv(
      "\xEF\xBB\xBF"
      "a,b\r\n\"x,\"\"y\"\"\nz\",\r\n\n,q",
      "f");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].fields, Fields({"a", "b"}));
  EXPECT_EQ(rows[1].fields, Fields({"x,\"y\"\nz", ""}));
  EXPECT_EQ(rows[2].fields, Fields({"", "q"}));
  EXPECT_EQ(rows[2].line, 5);  // the quoted field spans two lines, one is empty
  EXPECT_TRUE(parse_csv("", "f").empty());
  EXPECT_EQ(parse_csv("a,\"b\"\r\n", "f")[0].fields, Fields({"a", "b"}));
}

TEST(Csv, RefusesLooseQuotes) {
  EXPECT_TRUE(says(complaint([] { parse_csv("a\n\"b", "f"); }), "f:2: a quote is opened but not closed"));
  EXPECT_TRUE(says(complaint([] { parse_csv("a\"b", "f"); }), "f:1: a quote inside a plain field"));
  EXPECT_TRUE(says(complaint([] { parse_csv("\"a\"b", "f"); }), "f:1: a closing quote"));
}

TEST(Manifest, NamesTheLineThatIsWrong) {
  const auto message = [](const std::string& text) { return complaint([&] { parse_manifest(text, "m.csv"); }); };
  EXPECT_TRUE(says(message(""), "m.csv is empty"));
  EXPECT_TRUE(says(message("a.png,3\n"), "must name the columns path and label"));
  EXPECT_TRUE(says(message("path,label\n"), "has a header and no images"));
  EXPECT_TRUE(says(message("path,label\na,1\nb\n"), "m.csv:3: 1 fields, the first line names 2"));
  EXPECT_TRUE(says(message("path,label\n,1\n"), "m.csv:2: the path is empty"));
  EXPECT_TRUE(says(message("path,label\na,\n"), "m.csv:2: the label is empty"));
  EXPECT_TRUE(says(message("path,label\na,-1\n"), "m.csv:2: label -1 is out of range"));
  EXPECT_TRUE(says(message("path,label\na,99999999\n"), "label 99999999 is out of range"));
  EXPECT_TRUE(says(message("path,label,split\na,1,dev\n"), "split must be train, validation or test"));
  EXPECT_TRUE(says(message("path,label,size\na,1,nan\n"), "attribute size must be a number, got \"nan\""));
  EXPECT_TRUE(says(message("path,label,size,size\na,1,1,2\n"), "two columns have the same name"));
}

}  // namespace sparsight::manifest_test
