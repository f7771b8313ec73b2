#include "sparsight/io/checked_json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

#include "tests/support/errors.h"

namespace sparsight::checked_json_test {
namespace {

const Json kRecord = {{"step", 3}, {"loss", 0.25}};
// In Python: xxhash.xxh3_64_hexdigest(b'{"step":3,"loss":0.25')
const std::string kLine = R"({"step":3,"loss":0.25,"xxh3":"faf01eed4b1a46df"})";

std::string find_problem(const std::string& text) {
  std::string problem;
  return try_parse_checked_object(text, problem) ? "" : problem;
}

}  // namespace

TEST(CheckedJson, TheChecksumIsThatOfTheTextBeforeIt) {
  EXPECT_EQ(checked_json(kRecord), kLine);
  EXPECT_EQ(checked_json_line(kRecord), kLine + "\n");
  EXPECT_EQ(parse_checked_object(kLine, "a.json"), kRecord);
  const std::string file = checked_json_file(kRecord);
  EXPECT_TRUE(file.starts_with("{\n  \"step\": 3,\n  \"loss\": 0.25,\n  \"xxh3\": \"")) << file;
  EXPECT_TRUE(file.ends_with("\"\n}\n")) << file;
  EXPECT_EQ(parse_checked_object(file, "a.json"), kRecord);
  EXPECT_EQ(Json::parse(file).erase("xxh3"), 1u) << "any reader takes it for one more member";
}

TEST(CheckedJson, TextsWithoutOneAreReadAsTheyAre) {
  EXPECT_EQ(parse_checked_object(R"({"step":3,"loss":0.25})", "a.json"), kRecord);
  EXPECT_EQ(parse_checked_object("{}", "a.json"), Json::object());
  // The last member has the form of a checksum, and is none.
  EXPECT_EQ(parse_checked_object(R"({"a":1,"data":"0123456789abcdef"})", "a.json")["data"], "0123456789abcdef");
}

// Any byte of a line and of a file has any other value. Only white space after the object may change.
TEST(CheckedJson, EveryOtherByteIsFound) {
  for (const std::string& whole : {kLine, checked_json_file(kRecord), checked_json_line({{"name", "a \"b\""}})}) {
    const Json object = parse_checked_object(whole, "whole");
    for (size_t at = 0; at < whole.size(); ++at)
      for (int byte = 0; byte < 256; ++byte) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(byte);
        if (damaged == whole) continue;
        std::string problem;
        const auto read = try_parse_checked_object(damaged, problem);
        ASSERT_TRUE(!read || *read == object) << "byte " << at << " is " << byte << ": " << damaged;
        const bool in_space = std::string(" \t\r\n").find(whole[at]) != std::string::npos &&
                              std::string(" \t\r\n").find(damaged[at]) != std::string::npos;
        ASSERT_TRUE(!read || in_space) << damaged;
      }
  }
}

TEST(CheckedJson, SaysWhatIsWrong) {
  const std::string digit = R"({"step":8,"loss":0.25,"xxh3":"faf01eed4b1a46df"})",
                    name = R"({"step":3,"loss":0.25,"xyh3":"faf01eed4b1a46df"})",
                    case_of_it = R"({"step":3,"loss":0.25,"xxh3":"Faf01eed4b1a46df"})",
                    moved = R"({"xxh3":"faf01eed4b1a46df","step":3,"loss":0.25})",
                    rewritten = R"({"step": 3, "loss": 0.25, "xxh3": "faf01eed4b1a46df"})";
  for (const std::string& damaged : {digit, name, case_of_it, moved, rewritten}) {
    EXPECT_EQ(find_problem(damaged), "does not match its checksum") << damaged;
    EXPECT_EQ(testing::error_text([&] { parse_checked_object(damaged, "a.json"); }),
              "a.json does not match its checksum");
  }
  EXPECT_EQ(find_problem(kLine.substr(0, 30)), "is not a JSON object");
  EXPECT_EQ(find_problem("[1]"), "is not a JSON object");
  EXPECT_EQ(testing::error_text([&] { parse_checked_object("{", "a.json"); }).substr(0, 18), "a.json is not JSON");
}

}  // namespace sparsight::checked_json_test
