#include "sparsight/data/shards/shard_names.h"

#include <gtest/gtest.h>

#include "tests/data/readers/fixtures.h"

namespace sparsight::shard_names_test {

using testing::complaint;
using testing::says;
using Names = std::vector<std::string>;

std::string problem(const std::string& pattern) {
  return complaint([&] { expand_shards(pattern, "data.train_shards"); });
}

TEST(ShardNames, ExpandRangesAndLists) {
  EXPECT_EQ(expand_shards("a.tar", "x"), Names{"a.tar"});
  EXPECT_EQ(expand_shards("t-{008..010}.tar", "x"), (Names{"t-008.tar", "t-009.tar", "t-010.tar"}));
  EXPECT_EQ(expand_shards("{9..11}", "x"), (Names{"9", "10", "11"}));
  EXPECT_EQ(expand_shards("{a,b}/{0..1}.tar", "x"), (Names{"a/0.tar", "a/1.tar", "b/0.tar", "b/1.tar"}));
  EXPECT_EQ(expand_shards("a.tar::b-{3..3}.tar", "x"), (Names{"a.tar", "b-3.tar"}));
}

TEST(ShardNames, RefuseWhatIsNoPattern) {
  for (const char* pattern : {"{0..3", "0..3}", "}{", "{}", "{3..0}", "{a..c}", "{0..}", "{x}", "{0..1..2}", "{{0..1}}",
                              "{0..99999999999999999999}", "{-1..2}"})
    EXPECT_TRUE(says(problem(pattern), "has braces that are no range")) << pattern;
  EXPECT_TRUE(says(problem("{0..999}{0..999}{0..9}"), "names more than 1000000 shards"));
  EXPECT_TRUE(says(problem("{0..999}{0..99}" + std::string(1000, 'n')), "names too long for so many"));
  EXPECT_TRUE(says(problem("{a,b,a}.tar"), "names a.tar twice"));
  for (const char* pattern : {"", "/a.tar", "../a.tar", "a/./b.tar", "a//b.tar", "a\n.tar", "a.tar::"})
    EXPECT_TRUE(says(problem(pattern), "shards are paths below data.root")) << pattern;
}

}  // namespace sparsight::shard_names_test
