#include "sparsight/data/shards/index_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/io/checked_json.h"
#include "tests/data/readers/fixtures.h"

namespace sparsight::index_file_test {

using testing::complaint;
using testing::says;

const ShardIndex kFirst{
    "train-0.tar",
    "train",
    10240,
    "00ff",
    {{"0.jpg", 512, 100, "7", "0123456789abcdef"}, {"1.jpg", 2048, 200, "cat", "fedcba9876543210"}}};
const ShardIndex kSecond{"v/0.tar", "", 5120, "", {{"0.png", 512, 0, "007", ""}}};

std::vector<ShardIndex> read(const std::string& text) {
  std::vector<ShardIndex> shards;
  read_index_file(text, "shards.jsonl", [&](ShardIndex index) { shards.push_back(std::move(index)); });
  return shards;
}

std::string problem(const std::string& text) {
  const std::string message = complaint([&] { read(text); });
  EXPECT_EQ(message.rfind("shards.jsonl", 0), 0u) << message;
  return message;
}

void expect_same(const ShardIndex& a, const ShardIndex& b) {
  EXPECT_EQ(a.shard, b.shard);
  EXPECT_EQ(a.split, b.split);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.sha256, b.sha256);
  ASSERT_EQ(a.images.size(), b.images.size());
  for (size_t i = 0; i < a.images.size(); ++i) {
    EXPECT_EQ(a.images[i].name, b.images[i].name);
    EXPECT_EQ(a.images[i].offset, b.images[i].offset);
    EXPECT_EQ(a.images[i].bytes, b.images[i].bytes);
    EXPECT_EQ(a.images[i].label, b.images[i].label);
    EXPECT_EQ(a.images[i].checksum, b.images[i].checksum);
  }
}

TEST(IndexFile, ComesBackAsItWas) {
  const std::vector<ShardIndex> shards = read(index_file_begin(2) + index_file_line(kFirst) + index_file_line(kSecond));
  ASSERT_EQ(shards.size(), 2u);
  expect_same(shards[0], kFirst);
  expect_same(shards[1], kSecond);
}

TEST(IndexFile, RefusesEveryCutAndEveryFlippedBit) {
  const std::string text = index_file_begin(1) + index_file_line(kFirst);
  for (size_t size = 0; size + 1 < text.size(); ++size) EXPECT_NE(problem(text.substr(0, size)), "") << size;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 4;
    EXPECT_NE(problem(damaged), "") << i << ": " << damaged[i];
  }
}

TEST(IndexFile, RefusesWhatDoesNotFitTogether) {
  const auto changed = [](const std::function<void(Json&)>& change) {
    Json line = Json::parse(index_file_line(kFirst));
    line.erase("xxh3");
    change(line);
    return problem(index_file_begin(1) + checked_json_line(line));
  };
  EXPECT_TRUE(says(changed([](Json& line) { line.erase("sizes"); }), ":2 has no sizes"));
  EXPECT_TRUE(says(changed([](Json& line) { line["sizes"].push_back(3); }), "have different lengths"));
  EXPECT_TRUE(says(changed([](Json& line) { line["checksums"].erase(0); }), "have different lengths"));
  EXPECT_TRUE(says(changed([](Json& line) { line["images"] = 3; }), "images is not a list"));
  EXPECT_TRUE(says(changed([](Json& line) { line["images"][0] = 3; }), "images must be text, got 3"));
  EXPECT_TRUE(says(changed([](Json& line) { line["sizes"][0] = -1; }), "sizes must be whole numbers"));
  EXPECT_TRUE(says(changed([](Json& line) { line["sizes"][0] = 1.5; }), "sizes must be whole numbers"));
  EXPECT_TRUE(says(changed([](Json& line) { line["sizes"][0] = 18446744073709551615u; }), "sizes must be whole"));
  EXPECT_TRUE(says(changed([](Json& line) { line["sizes"][0] = 10000; }), "0.jpg is not inside its shard"));
  EXPECT_TRUE(says(changed([](Json& line) { line["offsets"][0] = 0; }), "0.jpg is not inside its shard"));
  EXPECT_TRUE(says(changed([](Json& line) { line["bytes"] = int64_t{1} << 51; }), "bytes must be whole numbers"));
  EXPECT_TRUE(says(changed([](Json& line) { line["labels"][0] = ""; }), "labels must be whole numbers"));
  EXPECT_TRUE(says(changed([](Json& line) { line["checksums"][0] = "0123456789ABCDEF"; }), "hexadecimal"));
  EXPECT_TRUE(says(changed([](Json& line) { line["shard"] = "../a.tar"; }), "is no path below"));
  EXPECT_TRUE(says(changed([](Json& line) {
                     for (const char* key : {"images", "offsets", "sizes", "labels", "checksums"})
                       line[key] = Json::array();
                   }),
                   "has no images"));
}

TEST(IndexFile, RefusesOtherFiles) {
  EXPECT_TRUE(says(problem(""), "is empty"));
  EXPECT_TRUE(says(problem("{}\n"), "is not an index of shards"));
  EXPECT_TRUE(says(problem(checked_json_line({{"format", "sparsight-shards"}, {"version", 2}, {"shards", 0}})),
                   "has version 2"));
  EXPECT_TRUE(says(problem(index_file_begin(2) + index_file_line(kFirst)), "has 1 of its 2 shards; it was cut off"));
  EXPECT_TRUE(says(problem(index_file_begin(2) + index_file_line(kFirst) + index_file_line(kFirst)),
                   ":3 names train-0.tar again"));
}

}  // namespace sparsight::index_file_test
