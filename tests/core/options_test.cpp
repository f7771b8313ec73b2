#include "sparsight/core/options.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"

namespace sparsight::options_test {
namespace {

struct EverythingOptions {
  bool nesterov = false;
  int64_t epochs = 10;
  double momentum = 0.9;
  std::string root;
  std::string schedule = "cosine";
  std::vector<int64_t> steps{30, 60};
  std::vector<double> mean{0.5};
  std::vector<std::string> frozen;
  Json transforms;
  Json class_weights = "none";

  void declare(OptionSet& set) {
    set.flag("nesterov", &nesterov, "Nesterov's variant");
    set.integer("epochs", &epochs, {1, 1000}, "passes over the data");
    set.real("momentum", &momentum, {0, 1}, "momentum");
    set.text("root", &root, "folder");
    set.choice("schedule", &schedule, {"cosine", "step"}, "form");
    set.integers("steps", &steps, {.low = 0}, "where the rate falls");
    set.floats("mean", &mean, {}, "mean");
    set.strings("frozen", &frozen, "names");
    set.tables("transforms", &transforms, "pipeline");
    set.choice_or_floats("class_weights", &class_weights, {"none", "balanced"}, {0, 10}, "weights");
  }
};

// The error of assigning `table` as [train].
std::string complaint(const Json& table) {
  EverythingOptions options;
  OptionSet set;
  options.declare(set);
  return testing::error_text<UsageError>([&] { assign(set, table, "train"); });
}

}  // namespace

TEST(Options, DefaultsAreWhatTheVariablesHold) {
  EverythingOptions options;
  OptionSet set;
  options.declare(set);
  const Json expected = Json::parse(R"({"nesterov": false, "epochs": 10, "momentum": 0.9, "root": "",
    "schedule": "cosine", "steps": [30, 60], "mean": [0.5], "frozen": [], "transforms": [],
    "class_weights": "none"})");
  EXPECT_EQ(values(set), expected);
}

TEST(Options, AssignSetsWhatIsGivenAndLeavesTheRest) {
  EverythingOptions options;
  OptionSet set;
  options.declare(set);
  assign(set, Json::parse(R"({"epochs": 3, "nesterov": true, "steps": [], "transforms": [{"op": "flip"}]})"), "train");
  EXPECT_EQ(options.epochs, 3);
  EXPECT_TRUE(options.nesterov);
  EXPECT_TRUE(options.steps.empty());
  EXPECT_EQ(options.transforms[0]["op"], "flip");
  EXPECT_DOUBLE_EQ(options.momentum, 0.9);
}

TEST(Options, AnIntegerIsAlsoANumber) {
  EverythingOptions options;
  OptionSet set;
  options.declare(set);
  assign(set, Json{{"momentum", 1}}, "train");
  EXPECT_DOUBLE_EQ(options.momentum, 1.0);
}

TEST(Options, AWordOrAListOfNumbers) {
  EverythingOptions options;
  OptionSet set;
  options.declare(set);
  assign(set, Json{{"class_weights", "balanced"}}, "train");
  EXPECT_EQ(options.class_weights, "balanced");
  assign(set, Json::parse(R"({"class_weights": [1, 0.5]})"), "train");
  EXPECT_EQ(options.class_weights.dump(), "[1.0,0.5]");
  EXPECT_EQ(set.find("class_weights")->type, "string or list of floats");
  EXPECT_EQ(set.find("class_weights")->allowed, "none | balanced | numbers, 0 to 10");
  EXPECT_EQ(complaint({{"class_weights", "balance"}}),
            "train.class_weights must be one of none, balanced, got \"balance\"; did you mean \"balanced\"?");
  EXPECT_EQ(complaint({{"class_weights", 3}}),
            "train.class_weights must be one of none, balanced, or a list of numbers, got an integer: 3");
  for (const char* bad : {"[-1]", "[11]", "[\"a\"]", "[null]"})
    EXPECT_NE(complaint({{"class_weights", Json::parse(bad)}}), "") << bad;
}

TEST(Options, UnknownKeyNamesTheNearest) {
  const std::string text = complaint({{"epoch", 3}});
  EXPECT_NE(text.find("unknown setting train.epoch; did you mean \"epochs\"? (known: nesterov, epochs"),
            std::string::npos)
      << text;
}

TEST(Options, AKeyThatIsLikeNoOtherComesWithTheList) {
  EXPECT_EQ(complaint({{"lr", 3}}),
            "unknown setting train.lr (known: nesterov, epochs, momentum, root, schedule, steps, mean, frozen, "
            "transforms, class_weights)");
}

TEST(Options, BytesThatAreNotUtf8AreShownInPrintableForm) {
  EXPECT_EQ(complaint({{"epochs", "\xff"}}), "train.epochs must be an integer, got a string: \"\xEF\xBF\xBD\"");
  EXPECT_EQ(complaint({{"schedule", "a\nb"}}), "train.schedule must be one of cosine, step, got \"a\\x0ab\"");
  EXPECT_EQ(complaint({{"a\nb", 1}}).rfind("unknown setting train.a\\x0ab (known: ", 0), 0u);
  EXPECT_EQ(shown(Json{{"a\x7f", "\t"}}), "{\"a\\u007f\":\"\\t\"}");
}

TEST(Options, WrongTypesSayWhatWasGot) {
  EXPECT_EQ(complaint({{"epochs", "three"}}), "train.epochs must be an integer, got a string: \"three\"");
  EXPECT_EQ(complaint({{"epochs", 2.5}}), "train.epochs must be an integer, got a number: 2.5");
  EXPECT_EQ(complaint({{"momentum", true}}), "train.momentum must be a number, got a bool: true");
  EXPECT_EQ(complaint({{"nesterov", 1}}), "train.nesterov must be true or false, got an integer: 1");
  EXPECT_EQ(complaint({{"root", 5}}), "train.root must be a string, got an integer: 5");
  EXPECT_EQ(complaint({{"steps", 5}}), "train.steps must be a list, got an integer: 5");
  EXPECT_EQ(complaint({{"frozen", Json::array({1})}}), "train.frozen must be a string, got an integer: 1");
  EXPECT_EQ(complaint({{"transforms", Json::array({1})}}),
            "train.transforms must be a list of tables, got an integer: 1");
}

TEST(Options, OutOfRangeSaysTheRange) {
  EXPECT_EQ(complaint({{"epochs", 0}}), "train.epochs must be from 1 to 1000, got 0");
  EXPECT_EQ(complaint({{"momentum", 1.5}}), "train.momentum must be from 0 to 1, got 1.5");
  EXPECT_EQ(complaint({{"steps", Json::array({4, -1})}}), "train.steps must be at least 0, got -1");
  EXPECT_NE(complaint({{"momentum", std::nan("")}}), "");
  EXPECT_NE(complaint({{"mean", Json::array({INFINITY})}}), "");
}

TEST(Options, AnIntegerBeyond64BitsIsRefused) { EXPECT_NE(complaint({{"epochs", uint64_t{1} << 63}}), ""); }

TEST(Options, UnknownChoiceNamesTheNearest) {
  EXPECT_EQ(complaint({{"schedule", "cosin"}}),
            "train.schedule must be one of cosine, step, got \"cosin\"; did you mean \"cosine\"?");
}

TEST(Options, ASectionThatIsNoTable) { EXPECT_EQ(complaint(Json(3)), "train must be a table, got an integer: 3"); }

TEST(Options, TheSameNameTwiceIsAnError) {
  OptionSet set;
  int64_t value = 0;
  set.integer("a", &value, {}, "");
  EXPECT_EQ(testing::error_text<UsageError>([&] { set.integer("a", &value, {}, ""); }),
            "the setting \"a\" is declared twice; give each its own name");
}

}  // namespace sparsight::options_test
