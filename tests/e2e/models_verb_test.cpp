// The verb models. Numbers of parameters are those of timm 1.0 and torchvision 0.28 for the models of these names;
// multiply- adds are those that torchvision's documentation gives (GFLOPS).
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "tests/support/program.h"

namespace sparsight::testing::models_verb_test {
namespace {

std::map<std::string, Json> listed(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"models", "list", "--format", "json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, Json> models;
  for (const Json& model : Json::parse(result.out)) models[model["name"].get<std::string>()] = model;
  return models;
}

}  // namespace

TEST(ModelsVerb, PublishedSizesHavePublishedParameters) {
  const auto models = listed();
  const std::map<std::string, int64_t> published{
      {"vit_tiny_patch16", 5'717'416},  {"vit_small_patch16", 22'050'664},  {"vit_base_patch16", 86'567'656},
      {"vit_base_patch32", 88'224'232}, {"vit_large_patch16", 304'326'632}, {"resnet18", 11'689'512},
      {"resnet34", 21'797'672},         {"resnet50", 25'557'032},           {"resnet101", 44'549'160},
      {"resnet152", 60'192'808},        {"mobilenet_v2", 3'504'872},        {"convnext_tiny", 28'589'128}};
  for (const auto& [name, parameters] : published) {
    ASSERT_TRUE(models.contains(name)) << name;
    EXPECT_EQ(models.at(name)["parameters"], parameters) << name;
  }
  EXPECT_NEAR(models.at("resnet50")["multiply_adds"].get<double>(), 4.09e9, 0.02e9);
  EXPECT_NEAR(models.at("convnext_tiny")["multiply_adds"].get<double>(), 4.46e9, 0.02e9);
  EXPECT_NEAR(models.at("mobilenet_v2")["multiply_adds"].get<double>(), 0.30e9, 0.01e9);
}

// A size that does not fit the images has no cost.
TEST(ModelsVerb, CountsForTheImagesThatAreGiven) {
  const auto models = listed({"--image", "3,32,32", "--classes", "10"});
  EXPECT_TRUE(models.at("vit_small_patch14")["parameters"].is_null());
  EXPECT_NEAR(models.at("wrn_28_10")["parameters"].get<double>(), 36.5e6, 0.1e6);  // Zagoruyko and Komodakis 2016
}

TEST(ModelsVerb, ShowsASectionThatAConfigurationTakes) {
  const ProgramResult shown = run_program({"models", "show", "vit_6x64_patch16", "--image", "3,32,32"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const size_t begin = shown.out.find("[model]"), end = shown.out.find("\n\n", begin);
  ASSERT_NE(begin, std::string::npos) << shown.out;
  const TemporaryFolder folder;
  const std::string file = folder.write("model.toml", shown.out.substr(begin, end - begin) + "\n");
  const ProgramResult config = run_program({"config", "show", file});
  EXPECT_EQ(config.exit_code, 0) << config.err;
  EXPECT_NE(config.out.find("size = \"6x64\""), std::string::npos) << config.out;
  EXPECT_NE(shown.out.find("drop_path"), std::string::npos) << shown.out;

  const ProgramResult unknown = run_program({"models", "show", "resnet19"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("did you mean \"resnet18\""), std::string::npos) << unknown.err;
}

}  // namespace sparsight::testing::models_verb_test
