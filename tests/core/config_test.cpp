#include "sparsight/core/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::config_test {
namespace {

struct TrainSection {
  int64_t epochs = 10;
  double rate = 0.1;
  void declare(OptionSet& set) {
    set.integer("epochs", &epochs, {.low = 1}, "passes");
    set.real("rate", &rate, {.low = 0}, "step size");
  }
};

struct SgdOptions {
  double momentum = 0.9;
  void declare(OptionSet& set) { set.real("momentum", &momentum, {0, 1}, "momentum"); }
};

struct AdamOptions {
  double epsilon = 1e-8;
  void declare(OptionSet& set) { set.real("epsilon", &epsilon, {.low = 0}, "added to the root"); }
};

const Registry<std::string>& optimizers() {
  static const Registry<std::string> registry = [] {
    Registry<std::string> list("optimizer");
    list.add<SgdOptions>("sgd", "plain", [](const SgdOptions& options) { return cat("sgd ", options.momentum); });
    list.add<AdamOptions>("adam", "adaptive", [](const AdamOptions& options) { return cat("adam ", options.epsilon); });
    return list;
  }();
  return registry;
}

std::vector<Section> sections() {
  return {plain_section<TrainSection>("train", "the loop"),
          named_section("optimizer", "the update", "sgd", optimizers())};
}

Json resolved(const std::string& text) { return resolve(Config::from_text(text, "a.toml"), sections()); }

std::string complaint(const std::string& text) {
  return testing::error_text<UsageError>([&] { resolved(text); });
}

}  // namespace

TEST(Config, AnEmptyFileResolvesToDefaultsInDeclarationOrder) {
  EXPECT_EQ(resolved("").dump(), R"({"train":{"epochs":10,"rate":0.1},"optimizer":{"name":"sgd","momentum":0.9}})");
}

TEST(Config, TheNameChoosesWhichSettingsASectionHas) {
  EXPECT_EQ(resolved("[optimizer]\nname = \"adam\"\n")["optimizer"].dump(), R"({"name":"adam","epsilon":1e-08})");
  EXPECT_NE(complaint("[optimizer]\nname = \"adam\"\nmomentum = 0.5\n").find("unknown setting optimizer.momentum"),
            std::string::npos);
}

TEST(Config, FromTablesSaysWhereEverySettingIsFrom) {
  const Config config = Config::from_tables({{"train", {{"epochs", 3}}}, {"model", Json::object()}}, "the test");
  EXPECT_EQ(config.tree(), (Json{{"train", {{"epochs", 3}}}}));
  EXPECT_EQ(config.origin("train.epochs"), "the test");
  EXPECT_EQ(Config::from_tables(Json(), "the test").tree(), Json::object());
  EXPECT_EQ(testing::error_text<UsageError>([] {
              Config::from_tables({{"train", 3}}, "the test");
            }),
            "[train] must be a table, got 3");
}

TEST(Config, OverridesWinOverTheFileAndSayWhereTheyCameFrom) {
  Config config = Config::from_text("[train]\nepochs = 3\n", "a.toml");
  EXPECT_EQ(config.origin("train.epochs"), "a.toml:2");
  EXPECT_EQ(config.origin("train.rate"), "default");
  config.set("train.epochs=5");
  config.set("optimizer.name=adam");
  EXPECT_EQ(config.origin("train.epochs"), "--set");
  const Json values = resolve(config, sections());
  EXPECT_EQ(values["train"]["epochs"], 5);
  EXPECT_EQ(values["optimizer"]["name"], "adam");
}

TEST(Config, AnotherComponentLeavesOutWhatItDoesNotHave) {
  std::vector<std::string> ignored;
  const auto with = [&](const std::string& text, const std::vector<std::string>& overrides) {
    ignored.clear();
    return resolve(overridden(Config::from_text(text, "a.toml"), overrides, sections(), &ignored), sections());
  };
  const std::string file = "[train]\nrate = 3\n[optimizer]\nmomentum = 0.5\n";
  EXPECT_EQ(with(file, {"optimizer.name=adam"})["optimizer"].dump(), R"({"name":"adam","epsilon":1e-08})");
  EXPECT_EQ(ignored,
            (std::vector<std::string>{"optimizer.momentum = 0.5 of a.toml:4 does not apply to adam: ignored"}));
  EXPECT_EQ(with(file, {"optimizer.name=sgd"})["optimizer"]["momentum"], 0.5);
  EXPECT_TRUE(ignored.empty());
  // Not what --set gives, what no component has, or what the file names a component for.
  const auto refusal = [&](const std::string& text, const std::vector<std::string>& overrides) {
    return testing::error_text<UsageError>([&] { with(text, overrides); });
  };
  EXPECT_EQ(refusal(file, {"optimizer.name=adam", "optimizer.momentum=0.1"}),
            "unknown setting optimizer.momentum (known: epsilon)");
  EXPECT_EQ(refusal("[optimizer]\nmoment = 0.5\n", {"optimizer.name=adam"}),
            "a.toml:2: unknown setting optimizer.moment (known: epsilon)");
  EXPECT_EQ(refusal("[optimizer]\nname = \"adam\"\nmomentum = 0.5\n", {}),
            "a.toml:3: unknown setting optimizer.momentum (known: epsilon)");
}

TEST(Config, AnotherComponentLeavesOutWhatItRefuses) {
  Registry<std::string> pair("optimizer");
  for (const char* name : {"sgd", "heavy_ball"})
    pair.add<SgdOptions>(name, "", [](const SgdOptions&) { return std::string(); });
  std::vector<Section> both{named_section("optimizer", "the update", "sgd", pair)};
  both[0].try_component = [](const std::string& name, const Json& settings, const Json& tree) {
    EXPECT_TRUE(tree.contains("optimizer"));
    if (name == "heavy_ball" && settings.value("momentum", 0.9) != 0.9) fail_usage("always 0.9");
  };
  const auto changed = [&](const std::string& momentum, const std::vector<std::string>& overrides) {
    const std::string text = "[optimizer]\nmomentum = " + momentum + "\n";
    return overridden(Config::from_text(text, "a.toml"), overrides, both).tree()["optimizer"].dump();
  };
  EXPECT_EQ(changed("0.5", {"optimizer.name=heavy_ball"}), R"({"name":"heavy_ball"})");
  EXPECT_EQ(changed("0.9", {"optimizer.name=heavy_ball"}), R"({"momentum":0.9,"name":"heavy_ball"})");
  // Beyond the bounds, so wrong before: resolve() says so.
  EXPECT_EQ(changed("5", {"optimizer.name=heavy_ball"}), R"({"momentum":5,"name":"heavy_ball"})");
  EXPECT_EQ(changed("0.5", {"optimizer.momentum=0.7", "optimizer.name=heavy_ball"}),
            R"({"momentum":0.7,"name":"heavy_ball"})");
}

TEST(Config, AnOverrideOfAnotherFormIsRefused) {
  for (const std::string wrong : {"epochs=3", "train.epochs", "train.=3", ".epochs=3", "=", ""}) {
    Config config = Config::from_text("", "a");
    EXPECT_NE(testing::error_text<UsageError>([&] { config.set(wrong); }), "") << wrong;
  }
}

TEST(Config, UnknownSectionsKeysAndComponentsNameTheNearest) {
  EXPECT_EQ(complaint("[trian]\nepochs = 3\n"),
            "a.toml:2: unknown section [trian]; did you mean \"train\"? (known: train, optimizer)");
  EXPECT_EQ(complaint("\n[train]\nepoch = 3\n"),
            "a.toml:3: unknown setting train.epoch; did you mean \"epochs\"? (known: epochs, rate)");
  EXPECT_NE(complaint("[optimizer]\nname = \"adan\"\n").find("did you mean \"adam\"?"), std::string::npos);
  EXPECT_EQ(complaint("[optimizer]\nname = 3\n"), "a.toml:2: optimizer.name must be a string, got 3");
}

TEST(Config, ASettingOfAnotherSectionIsNamedInFull) {
  EXPECT_EQ(complaint("[train]\nmomentum = 3\n"),
            "a.toml:2: unknown setting train.momentum; did you mean \"optimizer.momentum\"?");
  EXPECT_EQ(complaint("[train]\nmomentun = 3\n"),
            "a.toml:2: unknown setting train.momentun; did you mean \"optimizer.momentum\"?");
  EXPECT_EQ(complaint("[train]\nepsilon = 3\n"), "a.toml:2: unknown setting train.epsilon (known: epochs, rate)");
  EXPECT_EQ(complaint("[train]\nepsilon = 3\n[optimizer]\nname = \"adam\"\n"),
            "a.toml:2: unknown setting train.epsilon; did you mean \"optimizer.epsilon\"?");
}

TEST(Config, ErrorsNameTheLineOfTheFileButNoLineForOverrides) {
  EXPECT_EQ(complaint("[train]\n\nepochs = 0\n"), "a.toml:3: train.epochs must be at least 1, got 0");
  Config config = Config::from_text("[train]\nepochs = 3\n", "a.toml");
  config.set("train.epochs=0");
  EXPECT_EQ(testing::error_text<UsageError>([&] { resolve(config, sections()); }),
            "train.epochs must be at least 1, got 0");
  EXPECT_EQ(testing::error_text<UsageError>([&] { config.set("train.epochs=\xff"); }),
            "train.epochs must be UTF-8, got \"\\xff\"; give a path of other bytes a link with a UTF-8 name");
}

TEST(Config, AKeyOutsideASectionIsRefusedWithItsLine) {
  EXPECT_EQ(complaint("\nepochs = 3\n").rfind("a.toml:2: \"epochs\" is outside any [section]", 0), 0u);
}

TEST(Config, AFileThatCannotBeReadSaysWhyAndNamesTheNearest) {
  const auto complaint = [](const std::string& path) {
    return testing::error_text<UsageError>([&] { Config::from_file(path); });
  };
  EXPECT_EQ(complaint("/nonexistent/a.toml"),
            "cannot read the configuration /nonexistent/a.toml: No such file or directory");
  const testing::TemporaryFolder folder;
  EXPECT_NE(complaint("/dev/zero").find("/dev/zero: it is a device, a pipe or a socket"), std::string::npos);
  EXPECT_NE(complaint(folder.write("big.toml", std::string(5 << 20, '\n'))).find("larger than the 4194304 bytes"),
            std::string::npos);
  EXPECT_EQ(complaint(folder.path()),
            "cannot read the configuration " + folder.path() + ": it is a folder; name a file in it");
  folder.write("demo.toml", "");
  folder.write("other.toml", "");
  folder.write("dem.txt", "");
  EXPECT_EQ(complaint(folder.path("demo.tml")), "cannot read the configuration " + folder.path("demo.tml") +
                                                    ": No such file or directory; did you mean \"" +
                                                    folder.path("demo.toml") + "\"?");
  EXPECT_EQ(complaint(folder.path("far.toml")).find("did you mean"), std::string::npos);
}

TEST(Config, AFileHasTheSettingsOfItsBaseWhereItHasNoneOfItsOwn) {
  const testing::TemporaryFolder folder;
  folder.write("far.toml", "[train]\nepochs = 3\nrate = 0.3\n[optimizer]\nmomentum = 0.5\n");
  std::filesystem::create_directory(folder.path("near"));
  folder.write("near/middle.toml", "base = \"../far.toml\"\n[train]\nrate = 0.2\n");
  const std::string own = folder.write("own.toml", "base = 'near/middle.toml'\n\n[train]\nepochs = 7\n");
  const Config config = Config::from_file(own);
  EXPECT_EQ(resolve(config, sections()).dump(),
            R"({"train":{"epochs":7,"rate":0.2},"optimizer":{"name":"sgd","momentum":0.5}})");
  EXPECT_EQ(config.origin("train.epochs"), own + ":4");
  EXPECT_EQ(config.origin("train.rate"), folder.path("near/middle.toml") + ":3");
}

TEST(Config, ASectionThatNamesAnotherComponentHasNothingOfTheBase) {
  const testing::TemporaryFolder folder;
  folder.write("base.toml", "[train]\nepochs = 3\n[optimizer]\nname = \"sgd\"\nmomentum = 0.5\n");
  const auto optimizer = [&](const std::string& section) {
    const std::string file = folder.write("own.toml", "base = \"base.toml\"\n[optimizer]\n" + section);
    return resolve(Config::from_file(file), sections())["optimizer"].dump();
  };
  EXPECT_EQ(optimizer("name = \"adam\"\n"), R"({"name":"adam","epsilon":1e-08})");
  EXPECT_EQ(optimizer("name = \"sgd\"\n"), R"({"name":"sgd","momentum":0.5})");
}

TEST(Config, SaysWhatIsWrongWithABase) {
  const testing::TemporaryFolder folder;
  const auto complaint_of = [&](const std::string& own) {
    const std::string file = folder.write("own.toml", own);
    return testing::error_text<UsageError>([&] { resolve(Config::from_file(file), sections()); });
  };
  const std::string line = folder.path("own.toml") + ":1: ";
  EXPECT_EQ(complaint_of("base = 3\n"), line + "base must be the path of a configuration, got 3");
  EXPECT_EQ(complaint_of("base = \"\"\n"), line + "base must be the path of a configuration, got \"\"");
  folder.write("other.toml", "base = \"own.toml\"\n");
  EXPECT_EQ(complaint_of("base = \"othr.toml\"\n"),
            line + "in its base: cannot read the configuration " + folder.path("othr.toml") +
                ": No such file or directory; did you mean \"" + folder.path("other.toml") + "\"?");
  EXPECT_EQ(complaint_of("base = \"other.toml\"\n"), line + "in its base: " + folder.path("other.toml") +
                                                         ":1: base leads back to " + folder.path("own.toml") +
                                                         ", which has this file as its base");
  EXPECT_EQ(complaint_of("base = \"own.toml\"\n"),
            line + "base leads back to " + folder.path("own.toml") + ", which has this file as its base");
  for (int i = 0; i < 12; ++i)
    folder.write(cat("chain", i, ".toml"), i == 11 ? "" : cat("base = \"chain", i + 1, ".toml\"\n"));
  EXPECT_NE(complaint_of("base = \"chain0.toml\"\n").find("this is the base number 9; at most 8"), std::string::npos);
  folder.write("other.toml", "[train]\nepoch = 3\n");
  EXPECT_EQ(
      complaint_of("base = \"other.toml\"\n"),
      folder.path("other.toml") + ":2: unknown setting train.epoch; did you mean \"epochs\"? (known: epochs, rate)");
  EXPECT_NE(complaint_of("[base]\nx = 3\n").find("unknown section [base]"), std::string::npos);
}

TEST(Config, SectionsBindToStructsAndComponents) {
  const Json values = resolved("[train]\nepochs = 4\n[optimizer]\nname = \"adam\"\nepsilon = 0.5\n");
  EXPECT_EQ(read_section<TrainSection>(values, "train").epochs, 4);
  EXPECT_EQ(make_component(optimizers(), values, "optimizer"), "adam 0.5");
}

TEST(Config, ResolvingItsOwnResultChangesNothing) {
  const Json once = resolved("[train]\nrate = 0.3\n[optimizer]\nname = \"adam\"\n");
  std::string text = "[train]\nepochs = 10\nrate = 0.3\n[optimizer]\nname = \"adam\"\nepsilon = 1e-08\n";
  EXPECT_EQ(resolved(text), once);
}

}  // namespace sparsight::config_test
