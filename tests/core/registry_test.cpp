#include "sparsight/core/registry.h"

#include <memory>

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace sparsight::registry_test {
namespace {

struct ScaleOptions {
  int64_t factor = 2;
  void declare(OptionSet& set) { set.integer("factor", &factor, {.low = 1}, "what it multiplies with"); }
};

struct ShiftOptions {
  double by = 0;
  void declare(OptionSet& set) { set.real("by", &by, {}, "what it adds"); }
};

// Each product is a function of the context alone.
Registry<std::function<double(double)>, double> operations() {
  Registry<std::function<double(double)>, double> registry("operation");
  registry.add<ScaleOptions>("scale", "multiplies", [](const ScaleOptions& options, double bias) {
    return [=](double x) { return x * static_cast<double>(options.factor) + bias; };
  });
  registry.add<ShiftOptions>("shift", "adds", [](const ShiftOptions& options, double bias) {
    return [=](double x) { return x + options.by + bias; };
  });
  return registry;
}

}  // namespace

TEST(Registry, MakesTheNamedThingWithItsSettingsAndContext) {
  EXPECT_DOUBLE_EQ(operations().make("scale", Json{{"factor", 3}}, "op", 10)(2), 16);  // 2 * 3 + 10
  EXPECT_DOUBLE_EQ(operations().make("scale", Json::object(), "op", 0)(2), 4);         // default factor
  EXPECT_DOUBLE_EQ(operations().make("shift", Json{{"by", 0.5}}, "op", 0)(2), 2.5);
}

TEST(Registry, KeepsTheOrderOfRegistration) {
  EXPECT_EQ(operations().names(), (std::vector<std::string>{"scale", "shift"}));
}

TEST(Registry, UnknownNameAnswersWithTheNearestAndTheList) {
  EXPECT_EQ(testing::error_text<UsageError>([] { operations().get("scales"); }),
            "unknown operation \"scales\"; did you mean \"scale\"? (known: scale, shift)");
  EXPECT_EQ(testing::error_text<UsageError>([] { operations().get("rotate\n"); }),
            "unknown operation \"rotate\\x0a\" (known: scale, shift)");
}

TEST(Registry, SettingsOfAnotherEntryAreUnknown) {
  const std::string text = testing::error_text<UsageError>([] {
    operations().make("shift", {{"factor", 3}}, "op", 0);
  });
  EXPECT_NE(text.find("unknown setting op.factor"), std::string::npos) << text;
}

TEST(Registry, SettingsOfAllEntriesAreTaken) {
  auto registry = operations();
  registry.share<ShiftOptions>();
  const auto make = [](const auto&, double) { return [](double x) { return x; }; };
  EXPECT_EQ(testing::error_text<UsageError>([&] { registry.add<ShiftOptions>("mine", "", make); }),
            "the operation \"mine\" declares a setting \"by\", which every operation has; give it another name");
  struct Named {
    std::string name;
    void declare(OptionSet& set) { set.text("name", &name, ""); }
  };
  EXPECT_EQ(testing::error_text<UsageError>([&] { registry.add<Named>("mine", "", make); }),
            "the operation \"mine\" declares a setting \"name\", which every operation has; give it another name");
  registry.add<ScaleOptions>("mine", "", make);
  EXPECT_EQ(registry.names().back(), "mine");
}

TEST(Registry, DescribesOptionsAtTheirDefaults) {
  Json described;
  operations().get("scale").describe([&](OptionSet& set) { described = values(set); });
  EXPECT_EQ(described, (Json{{"factor", 2}}));
}

}  // namespace sparsight::registry_test
