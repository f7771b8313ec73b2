// Presets of one setting for several sections (core/config.h).
#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/core/config_text.h"
#include "tests/support/errors.h"

namespace sparsight::presets_test {
namespace {

struct LoopOptions {
  std::string recipe = "none";
  int64_t epochs = 10;
  void declare(OptionSet& set) {
    set.text("recipe", &recipe, "what presets");
    set.integer("epochs", &epochs, {1, 100}, "passes");
  }
};

struct SgdOptions {
  double rate = 0.5, momentum = 0;
  void declare(OptionSet& set) {
    set.real("rate", &rate, {0, 9}, "step");
    set.real("momentum", &momentum, {0, 1}, "memory");
  }
};

struct PlainOptions {
  double rate = 0.25;
  void declare(OptionSet& set) { set.real("rate", &rate, {0, 9}, "step"); }
};

const Registry<std::string>& optimizers() {
  static const Registry<std::string> registry = [] {
    Registry<std::string> list("optimizer");
    list.add<PlainOptions>("plain", "", [](const PlainOptions&) { return std::string(); });
    list.add<SgdOptions>("sgd", "", [](const SgdOptions&) { return std::string(); });
    return list;
  }();
  return registry;
}

// The rate follows the configuration's epochs.
std::vector<Section> sections(const std::string& component) {
  Section loop = plain_section<LoopOptions>("train", "the loop");
  loop.preset = [component](const Json& tree) {
    const Json train = tree.value("train", Json::object());
    if (train.value("recipe", Json()) != "quick") return Preset{};
    Json optimizer{{"rate", 0.1 * train.value("epochs", 3)}, {"momentum", 0.9}};
    if (!component.empty()) optimizer["name"] = component;
    return Preset{"recipe quick", {{"train", {{"epochs", 3}}}, {"optimizer", optimizer}, {"elsewhere", {{"x", 1}}}}};
  };
  return {loop, named_section("optimizer", "the update", "plain", optimizers())};
}

Json resolved(const std::string& text, const std::string& component = "sgd") {
  return resolve(Config::from_text(text, "a.toml"), sections(component));
}

TEST(Presets, AreDefaultsOfSeveralSections) {
  EXPECT_EQ(
      resolved("[train]\nrecipe = \"quick\"\n").dump(),
      R"({"train":{"recipe":"quick","epochs":3},"optimizer":{"name":"sgd","rate":0.30000000000000004,"momentum":0.9}})");
  EXPECT_EQ(resolved("").dump(), R"({"train":{"recipe":"none","epochs":10},"optimizer":{"name":"plain","rate":0.25}})");
}

TEST(Presets, GiveWayToTheConfiguration) {
  const Json config = resolved("[train]\nrecipe = \"quick\"\nepochs = 20\n[optimizer]\nmomentum = 0.5\n");
  EXPECT_EQ(config["train"]["epochs"], 20);
  EXPECT_EQ(config["optimizer"]["momentum"], 0.5);
  EXPECT_EQ(config["optimizer"]["rate"], 2.0);  // what follows from a value of the configuration
}

TEST(Presets, OfAnotherComponentAreLeftOut) {
  EXPECT_EQ(resolved("[train]\nrecipe = \"quick\"\n[optimizer]\nname = \"plain\"\n")["optimizer"].dump(),
            R"({"name":"plain","rate":0.25})");
  // Without a component of its own a preset is for any that has the settings.
  EXPECT_EQ(resolved("[train]\nrecipe = \"quick\"\n[optimizer]\nname = \"plain\"\n", "")["optimizer"].dump(),
            R"({"name":"plain","rate":0.30000000000000004})");
}

TEST(Presets, AreNamedWhereTheirValuesAreShown) {
  const Config config = with_presets(
      Config::from_text("[train]\nrecipe = \"quick\"\n[optimizer]\nmomentum = 0.5\n", "a.toml"), sections("sgd"));
  EXPECT_EQ(config.origin("train.epochs"), "recipe quick");
  EXPECT_EQ(config.origin("optimizer.name"), "recipe quick");
  EXPECT_EQ(config.origin("optimizer.momentum"), "a.toml:4");
  EXPECT_FALSE(config.tree().contains("elsewhere"));
  EXPECT_NE(toml_with_origins(resolve(config, sections("sgd")), config).find("epochs = 3        # recipe quick"),
            std::string::npos);
}

// What a run saves has every value, so nothing is preset again.
TEST(Presets, ChangeNothingOfAWholeConfiguration) {
  Config whole;
  const Json all = resolved("[train]\nrecipe = \"quick\"\nepochs = 5\n");
  for (const auto& [section, table] : all.items())
    for (const auto& [key, value] : table.items()) whole.set(section, key, value, "run");
  EXPECT_EQ(with_presets(whole, sections("sgd")).tree(), whole.tree());
}

TEST(Presets, LeaveComplaintsAboutNamesToTheCheck) {
  EXPECT_EQ(testing::error_text<UsageError>([] {
              resolved("[train]\nrecipe = \"quick\"\n[optimizer]\nname = \"adam\"\n");
            }).substr(0, 39),
            "a.toml:4: unknown optimizer.name \"adam\"");
}

}  // namespace
}  // namespace sparsight::presets_test
