#include "sparsight/core/toml.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace sparsight::toml_test {
namespace {

std::string complaint(const std::string& text) {
  return testing::error_text<UsageError>([&] { parse_toml(text, "a.toml"); });
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

TEST(Toml, DepthIsCountedOutsideOfStringsAndComments) {
  const auto nested = [](size_t depth) { return "x = " + std::string(depth, '[') + std::string(depth, ']') + "\n"; };
  EXPECT_EQ(complaint(nested(32)), "");
  EXPECT_EQ(complaint("y = 1\n" + nested(33)), "a.toml:2: a value of more than 32 levels; no setting has so many");
  EXPECT_NE(complaint("x = " + std::string(100000, '{')).find("more than 32 levels"), std::string::npos);
  std::string key = "a";
  for (int i = 1; i < 16; ++i) key += ".a";
  EXPECT_EQ(complaint(key + " = 1\n[b." + key.substr(2) + "]\n"), "");
  EXPECT_EQ(complaint("z = {" + key + ".a = 1}\n"), "a.toml:1: a key of more than 16 levels; no setting has so many");
  for (int i = 0; i < 16; ++i) key += key;  // toml++ would build and destroy a table of a million levels
  EXPECT_NE(complaint(key + " = 1\n").find("a key of more than 16 levels"), std::string::npos);
  EXPECT_NE(complaint("[" + key + "]\n").find("a key of more than 16 levels"), std::string::npos);
  const std::string harmless = std::string(100, '[') + std::string(100, '.');
  EXPECT_EQ(complaint("# " + harmless + "\na = \"\\\"" + harmless + "\"\nb = '" + harmless + "\\'\n"), "");
  EXPECT_EQ(complaint("a = \"\"\"\n\"" + harmless + "\"\"\"\"\"\nb = \'\'\'\n'" + harmless + "\'\'\'\nc = \"\"\n"), "");
  EXPECT_NE(complaint("a = \"\"\"\n\n\"\"\"\nb = " + std::string(100, '[')).rfind("a.toml:4: ", 0), std::string::npos);
}

// 50,000 keys that are each looked up among all earlier ones would take 10^9 comparisons.
TEST(Toml, KeysTakeLinearTime) {
  std::string text = "[a]\n";
  for (int i = 0; i < 200'000; ++i) text += "key_with_some_length_" + std::to_string(i) + " = 1\n";
  EXPECT_EQ(parse_toml(text, "a.toml").tree["a"].size(), 200'000u);
}

TEST(Toml, ADeepValueOfTheCommandLineIsText) {
  std::string path;
  for (int i = 0; i < 40; ++i) path += "../";
  EXPECT_EQ(parse_toml_value(path), Json(path));
  EXPECT_EQ(parse_toml_value(std::string(100'000, '[')), Json(std::string(100'000, '[')));
}

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

TEST(Toml, AnEndInPlaceOfAValueIsAnError) {
  for (const char* text : {"a = [}", "a = [1, }", "a = {b = }", "a = [=]", "a = }"})
    EXPECT_THROW(parse_toml(text, "x"), UsageError) << text;
  EXPECT_EQ(parse_toml_value("[}"), "[}");
}

TEST(Toml, TextWithADeleteCharacterComesBack) {
  const Json tree{{"run", {{"na\x7Fme", "a\x7F\u009B\u202Eb"}}}};  // TOML allows no raw DEL
  EXPECT_EQ(parse_toml(to_toml(tree), "x").tree, tree);
}

}  // namespace sparsight::toml_test
