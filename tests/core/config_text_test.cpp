#include "sparsight/core/config_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sparsight::config_text_test {
namespace {

struct LoopOptions {
  int64_t epochs = 10;
  std::string form = "a";
  void declare(OptionSet& set) {
    set.integer("epochs", &epochs, {.low = 1}, "passes over the data");
    set.choice("form", &form, {"a", "b"}, "which form");
  }
};

std::vector<Section> sections() { return {plain_section<LoopOptions>("train", "the loop")}; }

}  // namespace

TEST(ConfigText, EachLineSaysWhereItsValueCameFrom) {
  const Config config = Config::from_text("[train]\n\nepochs = 3\n", "my.toml");
  EXPECT_EQ(toml_with_origins(resolve(config, sections()), config),
            "[train]\n"
            "epochs = 3  # my.toml:3\n"
            "form = \"a\"  # default\n");
}

TEST(ConfigText, TheReferenceHasEverySettingAndKeepsTablesWhole) {
  const std::string text = configuration_reference(sections());
  EXPECT_NE(text.find("## [train]\n\nthe loop\n"), std::string::npos) << text;
  EXPECT_NE(text.find("| `epochs` | integer | `10` | at least 1 | passes over the data |\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("| `form` | string | `\"a\"` | a \\| b | which form |\n"), std::string::npos) << text;
}

}  // namespace sparsight::config_text_test
