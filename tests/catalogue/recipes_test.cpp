// The recipes of Daxberger et al. 2023 ("Mobile V-MoEs"), as a configuration resolves them.
#include "sparsight/catalogue/recipes.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/toml.h"
#include "sparsight/data/transforms/pipeline.h"
#include "sparsight/models/make_model.h"
#include "sparsight/optim/schedule.h"
#include "sparsight/train/algorithm_context.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/training_setup.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"

namespace sparsight::recipes_test {
namespace {

Config configured(const std::string& recipe, const std::vector<std::string>& overrides = {}) {
  Config config = Config::from_text("[train]\nrecipe = \"" + recipe + "\"\n", "my.toml");
  for (const std::string& assignment : overrides) config.set(assignment);
  return config;
}

Json resolved(const std::string& recipe, const std::vector<std::string>& overrides = {}) {
  return resolve(configured(recipe, overrides), config_sections());
}

Json part(const Json& table, const std::vector<std::string>& keys) {
  Json chosen = Json::object();
  for (const std::string& key : keys) chosen[key] = table.at(key);
  return chosen;
}

// The learning rate of a resolved configuration at a step.
double rate(const Json& config, TrainingLength length, int64_t step) {
  return config["optimizer"]["lr"].get<double>() * make_component(schedules(), config, "schedule", length)(step);
}

TEST(Recipes, M31_DeitIsWhole) {
  const Json config = resolved("deit");
  EXPECT_EQ(part(config["train"], {"epochs", "clip_norm", "ema_decay"}),
            Json({{"epochs", 300}, {"clip_norm", 0.0}, {"ema_decay", 0.99996}}));
  EXPECT_EQ(part(config["loader"], {"batch", "views", "sampling"}),
            Json({{"batch", 1024}, {"views", 3}, {"sampling", "shuffle"}}));
  EXPECT_EQ(
      part(config["optimizer"], {"name", "lr", "beta1", "beta2", "eps", "weight_decay"}),
      Json({{"name", "adamw"}, {"lr", 1e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"weight_decay", 0.05}}));
  EXPECT_EQ(part(config["model"], {"name", "dropout", "hidden_dropout", "drop_path"}),
            Json({{"name", "vit"}, {"dropout", 0.0}, {"hidden_dropout", 0.0}, {"drop_path", 0.1}}));
  EXPECT_EQ(part(config["transforms"], {"label_smoothing", "mixup", "cutmix"}),
            Json({{"label_smoothing", 0.1}, {"mixup", 0.8}, {"cutmix", 1.0}}));
  std::vector<std::string> steps;
  for (const Json& step : config["transforms"]["train"]) steps.push_back(step["op"]);
  EXPECT_EQ(steps,
            (std::vector<std::string>{"random_resized_crop", "flip", "rand_augment", "normalize", "random_erasing"}));
  const Json& augment = config["transforms"]["train"][2];
  EXPECT_EQ(part(augment, {"operations", "ops", "magnitude", "sigma", "probability"}),
            Json({{"operations", "increasing"}, {"ops", 2}, {"magnitude", 9}, {"sigma", 0.5}, {"probability", 0.5}}));
  EXPECT_EQ(config["transforms"]["train"][4]["probability"], 0.25);
  const TransformPipeline train(config["transforms"]["train"], "train"), eval(config["transforms"]["eval"], "eval");
  EXPECT_EQ(train.statistics().mean, (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_TRUE(train.statistics() == eval.statistics());
}

TEST(Recipes, M31_DeitsRatesAtEpochs) {
  const Json config = resolved("deit");
  const TrainingLength length{1251, 300 * 1251};
  EXPECT_NEAR(rate(config, length, 0), 1e-6, 1e-18);
  EXPECT_NEAR(rate(config, length, 5 * 1251), 9.993e-4, 5e-8);
  EXPECT_NEAR(rate(config, length, 150 * 1251), 5.05e-4, 1e-15);
  EXPECT_NEAR(rate(config, length, 150 * 1251 + 700), 5.05e-4, 1e-15);
  EXPECT_NEAR(rate(config, length, 300 * 1251), 1e-5, 1e-18);
}

// lr = 5e-4 batch / 512, where accumulated batches count; its first and last values stay 1e-6 and 1e-5.
TEST(Recipes, DeitsRateFollowsTheBatch) {
  EXPECT_DOUBLE_EQ(resolved("deit", {"loader.batch=128"})["optimizer"]["lr"].get<double>(), 1.25e-4);
  const Json accumulated = resolved("deit", {"loader.batch=128", "train.accumulate=4"});
  EXPECT_DOUBLE_EQ(accumulated["optimizer"]["lr"].get<double>(), 5e-4);
  EXPECT_NEAR(rate(accumulated, {10, 3000}, 0), 1e-6, 1e-18);
  EXPECT_NEAR(rate(accumulated, {10, 3000}, 3000), 1e-5, 1e-18);
  const Json given = resolved("deit", {"optimizer.lr=0.002"});
  EXPECT_NEAR(rate(given, {10, 3000}, 0), 1e-6, 1e-18);
  EXPECT_NEAR(rate(given, {10, 3000}, 1500), (2e-3 + 1e-5) / 2, 1e-15);
}

TEST(Recipes, M32_VitIsWhole) {
  const Json config = resolved("vit");
  EXPECT_EQ(part(config["train"], {"epochs", "clip_norm", "ema_decay"}),
            Json({{"epochs", 300}, {"clip_norm", 1.0}, {"ema_decay", 0.0}}));
  EXPECT_EQ(part(config["loader"], {"batch", "views"}), Json({{"batch", 4096}, {"views", 1}}));
  EXPECT_EQ(part(config["optimizer"], {"name", "lr", "beta1", "beta2", "weight_decay"}),
            Json({{"name", "adamw"}, {"lr", 3e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"weight_decay", 0.3}}));
  EXPECT_EQ(part(config["model"], {"dropout", "hidden_dropout", "drop_path"}),
            Json({{"dropout", 0.1}, {"hidden_dropout", 0.1}, {"drop_path", 0.0}}));
  EXPECT_EQ(config["experts"]["dropout"], 0.1);
  EXPECT_EQ(part(config["transforms"], {"label_smoothing", "mixup", "cutmix"}),
            Json({{"label_smoothing", 0.0}, {"mixup", 0.0}, {"cutmix", 0.0}}));
  EXPECT_EQ(config["transforms"]["train"].size(), 3u);
  const TransformPipeline train(config["transforms"]["train"], "train");
  EXPECT_EQ(train.statistics().mean, std::vector<double>{0.5});  // pixels from -1 to 1
  EXPECT_EQ(train.statistics().std, std::vector<double>{0.5});
  const TrainingLength length{312, 93600};
  EXPECT_NEAR(rate(config, length, 4999), 1.5e-3, 1e-15);
  EXPECT_NEAR(rate(config, length, 9999), 3e-3, 1e-15);
  EXPECT_NEAR(rate(config, length, 93600), 0, 1e-18);
}

TEST(Recipes, M32_VitLightDiffersInThreeThings) {
  const Json light = resolved("vit_light"), whole = resolved("vit");
  EXPECT_EQ(light["optimizer"]["lr"], 1e-3);
  EXPECT_EQ(light["optimizer"]["weight_decay"], 0.1);
  EXPECT_EQ(part(light["model"], {"dropout", "hidden_dropout"}), Json({{"dropout", 0.0}, {"hidden_dropout", 0.0}}));
  EXPECT_EQ(light["experts"]["dropout"], 0.0);
  for (const char* section : {"loader", "schedule", "transforms"}) EXPECT_EQ(light[section], whole[section]);
}

TEST(Recipes, WhatIsSetWins) {
  const Json config = resolved("deit", {"optimizer.weight_decay=0.2", "transforms.mixup=0", "train.epochs=7"});
  EXPECT_EQ(config["optimizer"]["weight_decay"], 0.2);
  EXPECT_EQ(config["optimizer"]["lr"], 1e-3);
  EXPECT_EQ(config["transforms"]["mixup"], 0);
  EXPECT_EQ(config["transforms"]["cutmix"], 1.0);
  EXPECT_EQ(config["train"]["epochs"], 7);
  const Json sgd = resolved("deit", {"optimizer.name=sgd", "schedule.warmup_steps=100"});
  EXPECT_EQ(sgd["optimizer"],
            resolve(Config::from_text("[optimizer]\nname = \"sgd\"", "a"), config_sections())["optimizer"]);
  EXPECT_EQ(sgd["schedule"]["warmup_epochs"], 0);
  const Json cnn = resolved("vit", {"model.name=resnet"});
  EXPECT_EQ(cnn["model"]["dropout"], 0.1);
  EXPECT_FALSE(cnn["model"].contains("hidden_dropout"));
}

TEST(Recipes, AreNamedAsTheOriginOfTheirValues) {
  const Config config = with_presets(configured("vit", {"train.epochs=7"}), config_sections());
  EXPECT_EQ(config.origin("optimizer.lr"), "recipe vit");
  EXPECT_EQ(config.origin("train.epochs"), "--set");
  EXPECT_EQ(config.origin("router.k"), "default");
}

TEST(Recipes, AnUnknownOneIsRefused) {
  EXPECT_EQ(testing::error_text<UsageError>([] { resolved("diet"); }),
            "my.toml:2: train.recipe must be one of none, deit, vit, vit_light, mobile_vmoe, got \"diet\"; did you "
            "mean \"deit\"?");
}

// Daxberger et al. 2023, section 4.
TEST(Recipes, MobileVmoeFollowsTheWidth) {
  const auto same_as = [](const std::string& recipe, const std::vector<std::string>& model) {
    nlohmann::json ours = resolved("mobile_vmoe", model), theirs = resolved(recipe, model);
    ours["train"].erase("recipe"), theirs["train"].erase("recipe");
    return ours == theirs;
  };
  for (const char* size : {"12x384", "9x384", "6x384", "12x192", "9x192", "6x192", "tiny"})
    EXPECT_TRUE(same_as("deit", {cat("model.size=", size)})) << size;
  for (const char* size : {"12x96", "9x96", "6x96", "12x64", "9x64", "6x64"})
    EXPECT_TRUE(same_as("vit", {cat("model.size=", size)})) << size;
  EXPECT_TRUE(same_as("deit", {"model.width=192", "model.heads=3"}));
  EXPECT_TRUE(same_as("vit", {"model.width=128"}));
  EXPECT_TRUE(same_as("vit", {}));
}

// The configurations of this repository name no recipe, so they are what they were.
TEST(Recipes, WithoutOneAConfigurationStaysAsItIs) {
  int files = 0;
  for (const char* folder : {"configs", "configs/pmoe", "configs/smoke"})
    for (const auto& entry : std::filesystem::directory_iterator(test::source_path(folder))) {
      if (entry.path().extension() != ".toml") continue;
      const Config config = Config::from_file(entry.path());
      if (config.tree().value("train", Json::object()).contains("recipe")) continue;
      EXPECT_EQ(with_presets(config, config_sections()).tree(), config.tree()) << entry.path();
      ++files;
    }
  EXPECT_GT(files, 8);
}

// A model with one router for the whole image, by name: what decays and what does not.
TEST(Recipes, M31_DecayGroupsOfARoutedModel) {
  const Json config =
      resolved("deit", {"data.name=glyphs", "data.side=16", "data.train=8", "data.validation=4", "data.test=4",
                        "model.width=8", "model.heads=2", "model.depth=3", "moe.blocks=[-2,-1]", "moe.experts=4",
                        "router.name=per_image", "loader.batch=4"});
  const auto model = make_model(config, {3, 16, 16, 5});
  std::vector<std::string> decayed, kept;
  for (const OptimizedParameter& parameter : trainable_parameters(*model, read_section<TrainOptions>(config, "train")))
    (parameter.decay ? decayed : kept).push_back(parameter.name);
  const auto holds = [](const std::vector<std::string>& names, const std::string& ending) {
    return std::ranges::any_of(names, [&](const std::string& name) { return name.ends_with(ending); });
  };
  for (const char* name :
       {"patch_embed.proj.weight", "blocks.0.attn.qkv.weight", "blocks.0.attn.proj.weight", "blocks.0.mlp.fc1.weight",
        "blocks.0.mlp.fc2.weight", "experts.w1", "experts.w2", "router.weight", "head.weight"}) {
    EXPECT_TRUE(holds(decayed, name)) << name;
    EXPECT_FALSE(holds(kept, name)) << name;
  }
  for (const char* name :
       {"cls_token", "pos_embed", "blocks.0.norm1.weight", "blocks.2.norm2.bias", "norm.weight",
        "blocks.0.attn.qkv.bias", "blocks.0.mlp.fc1.bias", "experts.b1", "experts.b2", "head.bias"}) {
    EXPECT_TRUE(holds(kept, name)) << name;
    EXPECT_FALSE(holds(decayed, name)) << name;
  }
  const std::vector<std::string> parts = config.at("train").at("no_decay").get<std::vector<std::string>>();
  for (const char* part : {"cls_token", "dist_token", "reg_token"})
    EXPECT_NE(std::ranges::find(parts, part), parts.end()) << part;
}

// A run keeps every setting, so its recipe has nothing to preset when it resumes.
TEST(Recipes, ResolveAgainToTheSameSettings) {
  for (const std::string& recipe : recipe_names()) {
    const Json once = resolved(recipe);
    const Json again = resolve(Config::from_text(to_toml(once), "config.toml"), config_sections());
    EXPECT_EQ(nlohmann::json(again), nlohmann::json(once)) << recipe;  // whatever the order of keys
  }
}

// Photographs of different sizes: tests/data/transforms/fit_to_data_test.cpp.
TEST(Recipes, FitImagesOf32Pixels) {
  const auto sizes = [](const std::vector<std::string>& data) {
    std::vector<std::string> all{"model.width=8", "model.heads=2", "model.depth=2", "loader.batch=4"};
    all.insert(all.end(), data.begin(), data.end());
    const TrainingSetup setup = make_training_setup(resolved("deit", all), /*fresh=*/false);
    const Json& steps = setup.config["transforms"];
    return std::vector<std::string>{steps["train"][0]["size"].dump(), steps["eval"][0]["size"].dump(),
                                    steps["eval"][1]["size"].dump(), cat(setup.shape.height)};
  };
  EXPECT_EQ(sizes({"data.name=glyphs", "data.side=32", "data.train=8", "data.validation=4", "data.test=4"}),
            (std::vector<std::string>{"32", "[32]", "32", "32"}));
}

}  // namespace
}  // namespace sparsight::recipes_test
