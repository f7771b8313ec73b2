#include "sparsight/core/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/errors.h"

namespace sparsight::json_text_test {
namespace {

std::string complaint(const std::string& text, const JsonLimits& limits = {}) {
  return testing::error_text([&] { parse_json(text, "a.json", limits); });
}

std::string nested(size_t depth, const char* open, const char* close) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += open;
  for (size_t i = 0; i < depth; ++i) text += close;
  return text;
}

// {"k0":0,"k1":1,...}
std::string make_object(size_t keys) {
  std::string text = "{";
  for (size_t i = 0; i < keys; ++i) text += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":" + std::to_string(i);
  return text + "}";
}

}  // namespace

TEST(JsonText, ReadsWhatTheLibraryReads) {
  const std::string text =
      R"( {"a": [1, -2, 3.5, true, null, "x\u00e9\n", {}], "b": {"c": [[]], "d": {"e": 1e300}}, "": 18446744073709551615} )";
  EXPECT_EQ(parse_json(text, "x"), Json::parse(text));
  EXPECT_EQ(parse_json(text, "x").dump(), Json::parse(text).dump());  // with the order of the keys
  for (const char* scalar : {"1", "\"x\"", "null", "[]", "{}"}) EXPECT_EQ(parse_json(scalar, "x"), Json::parse(scalar));
  const std::string many = make_object(1000);
  EXPECT_EQ(parse_json(many, "x").dump(), many);
}

TEST(JsonText, SaysWhatIsWrong) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":1}x", "nul", "\"\xff\"", "1e999", "{\"a\" 1}"})
    EXPECT_EQ(complaint(text).rfind("a.json is not JSON (byte ", 0), 0u) << text << ": " << complaint(text);
  EXPECT_EQ(complaint("{\"a\":1,\"b\":2,\"a\":3}"), "a.json has the key \"a\" twice");
  std::string many = make_object(100);
  many.insert(many.size() - 1, ",\"k7\":0");
  EXPECT_EQ(complaint(many), "a.json has the key \"k7\" twice");
  EXPECT_EQ(complaint("{\"a\":{\"x\":1},\"b\":{\"x\":1}}"), "");
  EXPECT_EQ(testing::error_text([] { parse_json_object("[1]", "a.json"); }), "a.json is not a JSON object");
  EXPECT_FALSE(try_parse_json_object("[1]"));
  EXPECT_FALSE(try_parse_json_object("{\"a\":"));
  EXPECT_EQ(try_parse_json_object("{\"a\":1}").value()["a"], 1);
}

TEST(JsonText, DepthHasALimit) {
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}")}) {
    std::string within = nested(kMaxJsonDepth, open, close);
    if (open[0] == '{') within.replace(within.find(":}"), 2, ":0}");
    EXPECT_EQ(complaint(within), "");
    EXPECT_EQ(complaint(nested(kMaxJsonDepth + 1, open, close)), "a.json nests deeper than 64 levels");
    EXPECT_EQ(complaint(nested(1'000'000, open, close)), "a.json nests deeper than 64 levels");
    EXPECT_EQ(complaint(nested(1'000'000, open, "")), "a.json nests deeper than 64 levels");
  }
}

TEST(JsonText, KeysAndValuesHaveLimits) {
  EXPECT_EQ(complaint(make_object(kMaxJsonKeys)), "");
  EXPECT_EQ(complaint(make_object(kMaxJsonKeys + 1)), "a.json has an object of more than 10000 keys");
  EXPECT_EQ(complaint("[[],[],[]]", {.values = 4}), "");
  EXPECT_EQ(complaint("[[],[],[]]", {.values = 3}), "a.json has more than 3 values");
  EXPECT_EQ(complaint("{\"a\":1}", {.values = 2}), "a.json has more than 2 values");
}

// A search for each key among the earlier ones would make 200 times 10^4^2 / 2 comparisons: minutes.
TEST(JsonText, KeysTakeLinearTime) {
  std::string text = "[";
  for (int i = 0; i < 200; ++i) text += (i > 0 ? "," : "") + make_object(kMaxJsonKeys);
  EXPECT_EQ(parse_json(text + "]", "x").size(), 200u);
}

TEST(JsonText, DeliversMembersOneByOne) {
  std::string names;
  const auto read = [&](const std::string& text, const JsonLimits& limits = {}) {
    names.clear();
    return testing::error_text([&] {
      for_each_member(text, "a.json", limits,
                      [&](const std::string& name, const Json& value) { names += name + "=" + value.dump() + " "; });
    });
  };
  EXPECT_EQ(read(R"({"a": {"x": [1, {"y": 2}], "z": 3}, "b": 4, "c": [], "d": "e"})"), "");
  EXPECT_EQ(names, R"(a={"x":[1,{"y":2}],"z":3} b=4 c=[] d="e" )");
  EXPECT_EQ(read("{}"), "");
  EXPECT_EQ(read(make_object(20'000), {.keys = 1, .values = 1}), "");  // both are those of one member
  for (const char* text : {"[1]", "3", "[]"}) EXPECT_EQ(read(text), "a.json is not a JSON object");
  EXPECT_EQ(read(R"({"a": 1, "b": 2, "a": 3})"), "a.json has the key \"a\" twice");
  EXPECT_EQ(read(R"({"a": {"b": 1, "b": 1}})"), "a.json has the key \"b\" twice");
  EXPECT_EQ(read(R"({"a": {"b": 1, "c": 1}})", {.keys = 1}), "a.json has an object of more than 1 keys");
}

TEST(JsonText, MemoryIsCounted) {
  EXPECT_EQ(json_memory(1), sizeof(Json));
  EXPECT_GT(json_memory(std::string(1000, 'x')), 1000u);
  EXPECT_GT(json_memory(Json::parse("[[],[],[]]")), 3 * 2 * sizeof(Json));
  EXPECT_GT(json_memory(Json{{std::string(1000, 'k'), 1}}), 1000u);
}

}  // namespace sparsight::json_text_test
