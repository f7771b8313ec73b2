// Mistakes in a user's configuration: one clear line for each, exit code 2.
#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace sparsight::testing::config_test {
namespace {

// The error of `config check` for a file with this text: exit code 2, nothing on stdout, one line.
std::string complaint(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments{"config", "check", folder.write("my.toml", text)};
  for (const std::string& assignment : overrides) arguments.insert(arguments.end(), {"--set", assignment});
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  return result.err;
}

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

}  // namespace

// configs/own_images.toml sets router.k = 2: expert_choice has no k, and that of switch_top1 is always 1.
TEST(ConfigVerb, AnotherRouterLeavesOutSettingsOfTheFilesRouter) {
  const std::string file = test::source_path("configs/own_images.toml");
  const auto show = [&](const std::vector<std::string>& overrides) {
    std::vector<std::string> arguments{"config", "show", file};
    for (const std::string& assignment : overrides) arguments.insert(arguments.end(), {"--set", assignment});
    return run_program(arguments);
  };
  for (const std::string router : {"expert_choice", "switch_top1", "dense_softmax"}) {
    const ProgramResult shown = show({"router.name=" + router});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_SAYS(shown.err, "does not apply to " + router + ": ignored\n");
    EXPECT_EQ(std::count(shown.err.begin(), shown.err.end(), '\n'), 1) << shown.err;
    EXPECT_SAYS(shown.err, "router.k = 2 of " + file + ":");
  }
  for (const std::string router : {"cosine", "gshard_top2"}) {
    const ProgramResult shown = show({"router.name=" + router});
    EXPECT_EQ(shown.err, "");
    EXPECT_SAYS(shown.out, "\nk = 2 ");
  }
  EXPECT_SAYS(show({"router.name=dense_softmax", "moe.experts=2"}).out, "\nk = 2 ");
  const ProgramResult refused = show({"router.name=expert_choice", "router.k=2"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_SAYS(refused.err, "unknown setting router.k");
}

TEST(ConfigVerb, P30_TellsWhatAModelCosts) {
  const auto cost = [](const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"config", "cost", test::source_path("configs/" + file)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const auto expect_sums = [&](const std::string& table, const std::string& parameters, const std::string& products) {
    const std::string sums = table.substr(table.find("\n  all "));
    EXPECT_SAYS(sums, " " + parameters + " ");
    EXPECT_SAYS(sums, " " + products + " ");
    EXPECT_SAYS(sums, "\n  FLOPs per image: " + products + " (multiply_adds: ");
  };
  expect_sums(cost("pmoe/wrn.toml", {}), "7,432,961", "3,986,358,912");
  expect_sums(cost("pmoe/wrn_pmoe_cifar.toml", {"--image", "3,32,32", "--classes", "10"}), "3,962,890", "773,937,408");
  expect_sums(cost("pmoe/wrn_pmoe_celeba.toml", {"--set", "experts.path=gathered"}), "7,318,401", "3,109,487,232");
  expect_sums(cost("demo.toml", {"--image", "1,32,32", "--classes", "12"}), "311,436", "17,123,584");
  // Mobile V-MoE's dense 12x192, as its table has it.
  EXPECT_SAYS(cost("demo.toml", {"--image", "3,224,224", "--classes", "1000", "--set", "model.size=12x192", "--set",
                                 "model.patch=32", "--set", "model.stem=[]", "--set", "model.mlp_ratio=4", "--set",
                                 "moe.blocks=[]", "--flops", "flops_elementwise"}),
              "FLOPs per image: 617,814,760");
}

// GMoE-S/16 with six experts in two blocks: 197 tokens of width 384, each to one expert of 2 (384 1536) products, whose
// 1,181,568 parameters are 384 1536 + 1536 + 1536 384 + 384.
TEST(ConfigVerb, CostsOfRanksComeFromTheModelsRows) {
  const ProgramResult result = run_program({"cost",
                                            "--set",
                                            "model.size=small",
                                            "--set",
                                            "model.patch=16",
                                            "--set",
                                            "moe.blocks=[-2,-1]",
                                            "--set",
                                            "moe.experts=6",
                                            "--set",
                                            "router.name=cosine",
                                            "--set",
                                            "router.k=1",
                                            "--set",
                                            "loader.batch=32",
                                            "--image",
                                            "3,224,224",
                                            "--classes",
                                            "1000",
                                            "--ranks",
                                            "1..6",
                                            "--step-seconds",
                                            "1",
                                            "--format",
                                            "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("compute_seconds"), 1);
  ASSERT_EQ(json.at("networks").size(), 3u);
  std::string assumptions;
  for (const Json& line : json.at("assumptions")) assumptions += line.get<std::string>() + "\n";
  EXPECT_SAYS(assumptions,
              "blocks.11.mlp: 7,089,408 parameters of 6 experts; 197.0 rows of an image travel, 384 "
              "numbers there and 384 back");
  const Json& rows = json.at("networks")[0].at("ranks");
  ASSERT_EQ(rows.size(), 4u);  // 1, 2, 4, 6
  EXPECT_EQ(rows[0].at("best"), "none");
  EXPECT_FALSE(rows[1].at("expert").is_null());
  EXPECT_TRUE(rows[2].at("expert").is_null());  // 4 does not divide 6
  EXPECT_EQ(rows[2].at("both").at("expert_ranks"), 2);
  // Each rank has one of six experts in two blocks, and all the rest.
  const auto data = rows[3].at("data").at("parameters").get<int64_t>();
  EXPECT_EQ(rows[3].at("expert").at("parameters"), data - 2 * 5 * 1'181'568);
}

TEST(ConfigVerb, AnUnknownConventionOfCostIsAnError) {
  const ProgramResult result =
      run_program({"config", "cost", test::source_path("configs/demo.toml"), "--flops", "flop"});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_SAYS(result.err, "did you mean \"flops\"");
}

TEST(ConfigVerb, TheCostOfImagesThatDoNotFitIsAnError) {
  const ProgramResult result =
      run_program({"config", "cost", test::source_path("configs/pmoe/joint_mnist.toml"), "--image", "1,2,2"});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_SAYS(result.err, "[model] patch = 0 does not divide images of 2x2");
}

TEST(ConfigVerb, SyntaxErrorsNameTheLine) {
  EXPECT_SAYS(complaint("[train]\nepochs = \n"), "my.toml:2: ");
  EXPECT_SAYS(complaint("[train\n"), "my.toml:1: ");
  EXPECT_SAYS(complaint("[train]\nepochs = 1\nepochs = 2\n"), "my.toml:3: ");
  EXPECT_SAYS(complaint("\x7f"
                        "ELF\x02\x01\x01"),
              "my.toml:1: ");
}

TEST(ConfigVerb, WrongTypesAndNumbersOutOfRange) {
  EXPECT_SAYS(complaint("[train]\nepochs = \"many\"\n"), "train.epochs must be an integer, got a string: \"many\"");
  EXPECT_SAYS(complaint("[run]\nseed = 1.5\n"), "run.seed must be an integer");
  EXPECT_SAYS(complaint("[train]\nepochs = -1\n"), "train.epochs must be from 1 to ");
  EXPECT_SAYS(complaint("", {"train.epochs=99999999999999999999"}), "train.epochs");
  EXPECT_SAYS(complaint("[schedule]\nname = \"cosine\"\n", {"schedule.warmup_epochs=-5"}),
              "schedule.warmup_epochs must be");
}

TEST(ConfigVerb, UnknownNamesComeWithTheNearest) {
  EXPECT_SAYS(complaint("[trian]\nepochs = 1\n"), "my.toml:2: unknown section [trian]; did you mean \"train\"?");
  EXPECT_SAYS(complaint("[train]\nepoch = 1\n"), "my.toml:2: unknown setting train.epoch; did you mean \"epochs\"?");
  EXPECT_SAYS(complaint("", {"train.lr=1"}), "unknown setting train.lr; did you mean \"optimizer.lr\"?");
  EXPECT_SAYS(complaint("", {"train.batch_size=1"}),
              "unknown setting train.batch_size; did you mean \"loader.batch\"?");
  EXPECT_SAYS(complaint("", {"moe.expert=16"}), "unknown setting moe.expert; did you mean \"experts\"?");
  EXPECT_SAYS(complaint("", {"train.zzz=1"}), "unknown setting train.zzz (known: recipe, epochs, ");
  EXPECT_SAYS(complaint("", {"optimizer.name=adamv"}), "did you mean \"adam\"?");
  EXPECT_SAYS(complaint("epochs = 1\n"), "is outside any [section]");
}

TEST(ConfigVerb, OverridesOfAnotherForm) {
  EXPECT_SAYS(complaint("", {"epochs=1"}), "did you mean \"train.epochs=1\"?");
  EXPECT_SAYS(complaint("", {"epocs=1"}), "section.key=value");
  EXPECT_SAYS(complaint("", {"train.epochs"}), "section.key=value");
}

TEST(ConfigVerb, BytesThatAreNotUtf8AreAWrongValue) {
  EXPECT_SAYS(complaint("", {"train.epochs=\xff"}), "train.epochs must be UTF-8, got \"\\xff\"");
  EXPECT_SAYS(complaint("", {"optimizer.name=\xff"}), "optimizer.name must be UTF-8, got \"\\xff\"");
}

TEST(ConfigVerb, AMissingFileIsAWrongConfiguration) {
  const ProgramResult result = run_program({"config", "check", "no/such/file.toml"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_SAYS(result.err, "cannot read the configuration no/such/file.toml: No such file or directory");
  const TemporaryFolder folder;
  folder.write("demo.toml", "");
  const ProgramResult mistyped = run_program({"train", folder.path("demo.tml")});
  EXPECT_EQ(mistyped.exit_code, 2);
  EXPECT_SAYS(mistyped.err, "did you mean \"" + folder.path("demo.toml") + "\"?");
}

TEST(ConfigVerb, CheckOpensTheDataAndBuildsTheModel) {
  const std::string demo = test::source_path("configs/demo.toml");
  const ProgramResult right = run_program({"config", "check", demo});
  EXPECT_EQ(right.exit_code, 0) << right.err;
  EXPECT_SAYS(right.err, "the configuration is valid");
  const ProgramResult odd = run_program({"config", "check", demo, "--set", "data.side=30"});
  EXPECT_EQ(odd.exit_code, 2) << odd.err;
  EXPECT_SAYS(odd.err, "does not divide images of 30x30");
  const TemporaryFolder folder;
  const ProgramResult missing = run_program(
      {"config", "check", folder.write("my.toml", "[data]\nname = \"folder\"\nroot = \"/nowhere/at/all\"\n")});
  EXPECT_EQ(missing.exit_code, 1) << missing.err;
  EXPECT_EQ(std::count(missing.err.begin(), missing.err.end(), '\n'), 1) << missing.err;
  EXPECT_SAYS(missing.err, "there is no file or folder \"/nowhere/at/all\"; set data.root");
}

TEST(ConfigVerb, ShowSaysWhereEachValueCameFrom) {
  const TemporaryFolder folder;
  const std::string file = folder.write("my.toml", "[train]\nepochs = 7\n");
  const ProgramResult result = run_program({"config", "show", file, "--set", "run.seed=5"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(result.out);
  std::string line, epochs, seed, optimizer;
  while (std::getline(lines, line)) {
    if (line.rfind("epochs = ", 0) == 0) epochs = line;
    if (seed.empty() && line.rfind("seed = ", 0) == 0) seed = line;  // of [run], the first section
    if (line.rfind("name = \"adamw\"", 0) == 0) optimizer = line;
  }
  EXPECT_SAYS(epochs, "epochs = 7");
  EXPECT_SAYS(epochs, "# " + file + ":2");
  EXPECT_SAYS(seed, "seed = 5");
  EXPECT_SAYS(seed, "# --set");
  EXPECT_SAYS(optimizer, "# default");
}

TEST(ConfigVerb, WhatShowPrintsIsAConfigurationWithTheSameValues) {
  const TemporaryFolder folder;
  const ProgramResult first = run_program({"config", "show", "--set", "train.epochs=3"});
  const ProgramResult second = run_program({"config", "show", folder.write("shown.toml", first.out)});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  const auto without_comments = [](const std::string& text) {
    std::istringstream lines(text);
    std::string line, all;
    while (std::getline(lines, line)) all += line.substr(0, line.rfind("  # ")) + "\n";
    return all;
  };
  EXPECT_EQ(without_comments(first.out), without_comments(second.out));
}

TEST(ConfigVerb, TheReferenceInDocsIsUpToDate) {
  const ProgramResult result = run_program({"config", "docs"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read(test::source_path("docs/configuration.md")), result.out)
      << "run: sparsight config docs > docs/configuration.md";
}

TEST(ConfigVerb, TheTablesOfTheDocsAreUpToDate) {
  const TemporaryFolder folder;
  const auto updated = [&](const std::string& text) {
    const std::string copy = folder.write("page.md", text);
    const ProgramResult result = run_program({"config", "docs", "--update", copy});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read(copy);
  };
  for (const std::string page : {"docs/routing.md", "docs/moe.md", "docs/dg_algorithms.md", "docs/attacks.md"}) {
    const std::string text = read(test::source_path(page));
    ASSERT_NE(text.find("<!-- end of table -->"), std::string::npos) << page;
    EXPECT_EQ(updated(text), text) << "run: sparsight config docs --update " << page;
  }
  // A setting that both have is one row.
  const std::string settings = updated("<!-- settings: attack -->\n<!-- end of table -->\n");
  EXPECT_NE(settings.find("| `targets` | `apgd_t`, `fab_t` | `9` | 1 to 1000000 |"), std::string::npos) << settings;
  const std::string stale = updated("# Page\n<!-- table: router -->\n| `gone` | |\n<!-- end of table -->\nEnd\n");
  EXPECT_TRUE(stale.starts_with("# Page\n<!-- table: router -->\n| name | meaning |\n|---|---|\n| `softmax_topk` | "));
  EXPECT_TRUE(stale.ends_with("|\n<!-- end of table -->\nEnd\n"));
  EXPECT_EQ(stale.find("gone"), std::string::npos);
  for (const auto& [text, problem] : std::vector<std::pair<std::string, std::string>>{
           {"<!-- table: routr -->\n", "router"}, {"<!-- table: losses -->\n", "has no line <!-- end of table -->"}}) {
    const std::string page = folder.write("page.md", text);
    const ProgramResult result = run_program({"config", "docs", "--update", page});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(problem), std::string::npos) << result.err;
    EXPECT_EQ(read(page), text);
  }
}

}  // namespace sparsight::testing::config_test
