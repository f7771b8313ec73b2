#include "sparsight/core/json_fields.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sparsight::json_fields_test {
namespace {

TEST(ParseJson, DiscardsWhatIsNotJsonOrNestsTooDeep) {
  EXPECT_EQ(parse_json(R"({"a": [1, "]\"]"]})"), (Json{{"a", {1, "]\"]"}}}));
  EXPECT_TRUE(parse_json("{").is_discarded());
  const auto nested = [](size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_TRUE(parse_json(nested(100)).is_array());
  EXPECT_TRUE(parse_json(nested(101)).is_discarded());
  EXPECT_TRUE(parse_json(nested(10'000'000)).is_discarded());  // copying such a value overflows the stack
  EXPECT_TRUE(parse_json("\"" + std::string(1000, '[') + "\"").is_string());
  EXPECT_TRUE(parse_json("[" + nested(99) + ", " + nested(99) + "]").is_array());
}

}  // namespace
}  // namespace sparsight::json_fields_test
