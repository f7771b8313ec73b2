#include "sparsight/core/toml.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace sparsight::toml_test {
namespace {

std::string complaint(const std::string& text) {
  return testing::message_of<UsageError>([&] { parse_toml(text, "a.toml"); });
}

}  // namespace

TEST(Toml, ReadsEveryKindOfValueAndTheirLines) {
  const TomlDocument document =
      parse_toml("[train]\nepochs = 3\nrate = 1e-3\non = true\nname = \"x\"\n\nlist = [1, 2]\n", "a");
  const Json expected = Json::parse(R"({"epochs": 3, "rate": 0.001, "on": true, "name": "x", "list": [1, 2]})");
  EXPECT_EQ(Json(document.tree["train"]).size(), expected.size());
  for (const auto& [key, value] : expected.items()) EXPECT_EQ(document.tree["train"][key], value) << key;
  EXPECT_EQ(document.lines.at("train.epochs"), 2);
  EXPECT_EQ(document.lines.at("train.list"), 7);
}

TEST(Toml, SyntaxErrorsNameFileAndLine) {
  EXPECT_EQ(complaint("[train]\nepochs = = 3\n").rfind("a.toml:2: ", 0), 0u) << complaint("[train]\nepochs = = 3\n");
  EXPECT_EQ(complaint("[train\n").rfind("a.toml:1: ", 0), 0u);
  EXPECT_EQ(complaint("[a]\nx = 1\nx = 2\n").rfind("a.toml:3: ", 0), 0u);
  EXPECT_EQ(complaint("x = \"no end\n").rfind("a.toml:1: ", 0), 0u);
}

TEST(Toml, DatesAndBadUtf8AreRefused) {
  EXPECT_NE(complaint("[a]\nday = 2024-01-01\n").find("got a date or time"), std::string::npos);
  EXPECT_NE(complaint("[a]\nname = \"\xff\xfe\"\n"), "");
  EXPECT_NE(complaint(std::string("[a]\nx = 1\0\n", 11)), "");
}

TEST(Toml, DeepNestingIsAnErrorAndNoCrash) { EXPECT_NE(complaint("x = " + std::string(100000, '[')), ""); }

TEST(Toml, ValuesOfTheCommandLine) {
  EXPECT_EQ(parse_toml_value("3"), Json(3));
  EXPECT_EQ(parse_toml_value("0.5"), Json(0.5));
  EXPECT_EQ(parse_toml_value("true"), Json(true));
  EXPECT_EQ(parse_toml_value("[1, 2]"), Json::parse("[1, 2]"));
  EXPECT_EQ(parse_toml_value("\"3\""), Json("3"));
  EXPECT_EQ(parse_toml_value("cosine"), Json("cosine"));
  EXPECT_EQ(parse_toml_value("data/my file"), Json("data/my file"));
  EXPECT_EQ(parse_toml_value("1\n[evil]\nx = 2"), Json("1\n[evil]\nx = 2"));  // one value, not a document
}

TEST(Toml, WritesWhatItReads) {
  const Json tree = Json::parse(R"({"train": {"rate": 0.1, "third": 0.3333333333333333, "big": 9007199254740993,
    "text": "line\nbreak \"quoted\" \\ é", "list": [{"op": "resize", "size": 32}, {"op": "flip"}], "none": [],
    "two words": 1, "one": 1.0}})");
  const TomlDocument again = parse_toml(to_toml(tree), "written");
  for (const auto& [key, value] : tree["train"].items()) EXPECT_EQ(again.tree["train"][key], value) << key;
  EXPECT_TRUE(again.tree["train"]["one"].is_number_float());  // 1.0 stays a number and does not become an integer
}

TEST(Toml, WritesNumbersThatJsonHasNot) {
  EXPECT_EQ(to_toml_value(Json(std::nan(""))), "nan");
  EXPECT_EQ(to_toml_value(Json(INFINITY)), "inf");
  EXPECT_EQ(to_toml_value(Json(-INFINITY)), "-inf");
}

TEST(Toml, TextWithADeleteCharacterComesBack) {
  const Json tree{{"run", {{"na\x7Fme", "a\x7F\u009B\u202Eb"}}}};  // TOML allows no raw DEL
  EXPECT_EQ(parse_toml(to_toml(tree), "x").tree, tree);
}

}  // namespace sparsight::toml_test
