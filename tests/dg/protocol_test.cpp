#include <algorithm>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/toml.h"
#include "sparsight/data/transforms/pipeline.h"
#include "sparsight/dg/dg_run.h"
#include "sparsight/dg/hyperparameters.h"
#include "sparsight/dg/random_range.h"
#include "sparsight/dg/sweep.h"
#include "sparsight/train/algorithm.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::protocol_test {
namespace {

Json named(const std::vector<Hyperparameter>& list, const std::string& name, bool value = true) {
  for (const Hyperparameter& parameter : list)
    if (parameter.name == name) return value ? parameter.value : parameter.fallback;
  throw std::runtime_error("no hyper-parameter " + name);
}

}  // namespace

// Section 5 of the specification: the seed (1, 0) is 785910682.
TEST(DgHyperparameters, G33_ThoseOfErmOnLargeImages) {
  const auto sampled = hyperparameters("erm", "pacs", 1, 0);
  EXPECT_EQ(named(sampled, "lr"), 2.7028930742148706e-05);
  EXPECT_EQ(named(sampled, "weight_decay"), 0.00044832883881609976);
  EXPECT_EQ(named(sampled, "batch_size"), 39);
  EXPECT_EQ(named(sampled, "resnet_dropout"), 0.5);
  const auto defaults = hyperparameters("erm", "pacs", 0, 7);
  EXPECT_EQ(named(defaults, "lr"), 5e-5);
  EXPECT_EQ(named(defaults, "weight_decay"), 0.0);
  EXPECT_EQ(named(defaults, "batch_size"), 32);
  const auto small = hyperparameters("erm", "colored_mnist", 0, 0);
  EXPECT_EQ(named(small, "lr"), 1e-3);
  EXPECT_EQ(named(small, "batch_size"), 64);
  EXPECT_EQ(named(hyperparameters("arm", "pacs", 5, 0), "batch_size"), 8);
  EXPECT_EQ(named(hyperparameters("arm", "rotated_mnist", 0, 0), "batch_size"), 64);
}

// Section 4: what each algorithm has by default, and where random search looks.
TEST(DgHyperparameters, G33_OfAlgorithms) {
  const std::tuple<const char*, const char*, Json, double, double> rows[] = {
      {"irm", "irm_lambda", 100.0, 0.1, 1e5},        {"irm", "irm_penalty_anneal_iters", 500, 1, 10000},
      {"vrex", "vrex_lambda", 10.0, 0.1, 1e5},       {"group_dro", "groupdro_eta", 0.01, 1e-3, 0.1},
      {"domain_mixup", "mixup_alpha", 0.2, 0.1, 10}, {"mldg", "mldg_beta", 1.0, 0.1, 10},
      {"coral", "mmd_gamma", 1.0, 0.1, 10},          {"dann", "lambda", 1.0, 0.01, 100},
      {"dann", "d_steps_per_g_step", 1, 1, 8},       {"fish", "meta_lr", 0.5, 0.05, 0.5},
      {"fishr", "lambda", 1000.0, 10, 10000},        {"fishr", "ema", 0.95, 0.9, 0.99},
      {"sagnet", "sag_w_adv", 0.1, 0.01, 10},        {"sd", "sd_reg", 0.1, 1e-5, 0.1}};
  for (const auto& [algorithm, name, fallback, low, high] : rows) {
    EXPECT_EQ(named(hyperparameters(algorithm, "pacs", 0, 0), name, false), fallback) << algorithm << " " << name;
    for (int64_t seed = 1; seed < 20; ++seed) {
      const double value = named(hyperparameters(algorithm, "pacs", seed, 0), name).get<double>();
      EXPECT_GE(value, low) << algorithm << " " << name;
      EXPECT_LE(value, high) << algorithm << " " << name;
    }
  }
}

// Every declared range can be sampled, and gives what the setting takes.
TEST(DgHyperparameters, EveryAlgorithmTakesWhatItSamples) {
  for (const auto& entry : algorithms().entries())
    for (int64_t seed = 1; seed < 4; ++seed)
      entry.describe([&](OptionSet& options) {
        for (const Hyperparameter& parameter : hyperparameters(entry.name, "pacs", seed, 0))
          if (parameter.key.starts_with("algorithm.")) {
            EXPECT_NO_THROW(options.find(parameter.key.substr(10))->set(parameter.value))
                << entry.name << " " << parameter.name;
          }
      });
}

// What a run of PACS, hyper-parameter seed 1 and trial 0, gets under names other than the usual ones, and by dataset:
// DomainBed's values (tests/golden/domainbed/protocol.json).
TEST(DgRun, G33_AlgorithmsGetWhatDomainBedGivesThem) {
  const auto make_config = [](const char* algorithm, int64_t seed, const char* set = "pacs", const char* model = "") {
    DgRun run;
    run.set = set, run.algorithm = algorithm, run.model = model, run.hparams_seed = seed;
    return dg_config(run);
  };
  for (const char* algorithm : {"dann", "cdann"}) {
    const Json config = make_config(algorithm, 1);
    EXPECT_EQ(config["optimizer"]["lr"], 0.00018927227584350511);          // lr_g, not lr: 2.70e-5
    EXPECT_EQ(config["optimizer"]["weight_decay"], 0.003716490191663224);  // weight_decay_g
    EXPECT_NE(config["algorithm"]["lr_d"], config["optimizer"]["lr"]);
    EXPECT_EQ(make_config(algorithm, 0, "pacs", "gmoe")["optimizer"]["lr"], 3e-5);  // the model's default
  }
  EXPECT_EQ(make_config("transfer", 0)["algorithm"]["gda"], false);
  EXPECT_EQ(make_config("transfer", 1)["algorithm"]["gda"], true);
  EXPECT_EQ(make_config("urm", 0)["algorithm"]["output"], "tanh");
  EXPECT_EQ(make_config("urm", 1)["algorithm"]["output"], "relu");
  EXPECT_EQ(make_config("eqrm", 1)["algorithm"]["burn_in"], 423.2761238000087);
  EXPECT_EQ(make_config("rdm", 1)["loader"]["batch"], 97);
  EXPECT_EQ(make_config("rdm", 0, "domain_net")["algorithm"]["lambda"], 0.5);
  EXPECT_EQ(make_config("adrmx", 1)["optimizer"]["lr"], 3e-5);
  EXPECT_EQ(make_config("adrmx", 1)["optimizer"]["weight_decay"], 0.0);  // drawn, but not used
  EXPECT_EQ(make_config("adrmx", 0, "colored_mnist")["optimizer"]["lr"], 3e-3);
}

// Section 4: what is chosen by the authors is listed with its default, and not sampled.
TEST(DgHyperparameters, G33_OfSwadAndErmSma) {
  const std::tuple<const char*, const char*, const char*, Json> rows[] = {
      {"swad", "pacs", "n_converge", 3},          {"swad", "pacs", "n_tolerance", 6},
      {"swad", "pacs", "tolerance_ratio", 0.3},   {"swad", "vlcs", "tolerance_ratio", 0.2},
      {"erm_sma", "pacs", "sma_start_iter", 100}, {"miro", "vlcs", "lambda", 0.01}};
  for (const auto& [algorithm, set, name, value] : rows)
    for (const int64_t seed : {0, 1})
      EXPECT_EQ(named(hyperparameters(algorithm, set, seed, 0), name), value) << algorithm << " " << name;
}

TEST(DgRun, TheConfigurationFollowsFromNamesAndSeeds) {
  DgRun run;
  run.set = "pacs", run.algorithm = "irm", run.model = "gmoe", run.test_envs = {2}, run.hparams_seed = 1;
  const Json config = dg_config(run);
  EXPECT_EQ(config["optimizer"]["lr"], 2.7028930742148706e-05);
  EXPECT_EQ(config["optimizer"]["name"], "adam");
  EXPECT_EQ(config["loader"]["batch"], 39);
  EXPECT_EQ(config["train"]["max_steps"], 5001);
  EXPECT_EQ(config["train"]["eval_every"], 300);
  EXPECT_EQ(config["algorithm"]["name"], "irm");
  EXPECT_EQ(config["moe"]["blocks"], (Json{8, 10}));
  EXPECT_EQ(config["run"]["seed"], run_seed(run));
  run.overrides = {"train.max_steps=7"};
  EXPECT_EQ(dg_config(run)["train"]["max_steps"], 7);
  run.algorithm = "irmm";
  EXPECT_THROW(dg_config(run), UsageError);
  run.algorithm = "irm", run.model = "resnet9";
  EXPECT_THROW(dg_config(run), UsageError);
}

// Section 9 of the specification: both have a drop path of 0.1; dropout is in the experts only.
TEST(DgRun, TheDenseModelIsGmoeWithoutItsExperts) {
  DgRun run;
  run.set = "pacs", run.model = "gmoe";
  const Json gmoe = dg_config(run).at("model");
  run.model = "vit";
  const Json vit = dg_config(run).at("model");
  EXPECT_EQ(vit, gmoe);
  EXPECT_EQ(vit.at("drop_path"), 0.1);
}

// The seeds of DomainBed's sweep: md5 of "('PACS', 'ERM', [0], 0, 0)" modulo 2^31, in Python, and so on.
TEST(DgRun, G35_SeedsAreThoseOfDomainBedsNames) {
  const auto seed = [](const char* set, const char* algorithm, std::vector<int64_t> envs, int64_t hparams) {
    DgRun run;
    run.set = set, run.algorithm = algorithm, run.test_envs = std::move(envs), run.hparams_seed = hparams;
    return run_seed(run);
  };
  EXPECT_EQ(seed("pacs", "erm", {0}, 0), 94828300u);
  EXPECT_EQ(seed("rotated_mnist", "group_dro", {1, 3}, 2), 1021541257u);
}

// The pipelines can be built, and the model is to normalise by the statistics of ImageNet.
TEST(DgRun, G38_TransformsAreThoseOfDomainBed) {
  DgRun run;
  run.set = "pacs", run.model = "vit", run.image_size = 64;
  const Json transforms = dg_config(run)["transforms"];
  ViewRandom random(RandomStream(1, "test"));
  const at::Tensor image = torch::full({3, 90, 50}, 100, torch::kByte);
  for (const char* part : {"train", "eval"}) {
    const TransformPipeline pipeline(transforms[part], part);
    EXPECT_EQ(pipeline.statistics().mean, (std::vector<double>{0.485, 0.456, 0.406})) << part;
    EXPECT_EQ(pipeline(image, random).sizes(), (std::vector<int64_t>{3, 64, 64})) << part;
  }
  const std::vector<std::string> ops{"random_resized_crop", "flip", "color_jitter", "grayscale", "normalize"};
  for (size_t i = 0; i < ops.size(); ++i) EXPECT_EQ(transforms["train"][i]["op"], ops[i]);
  EXPECT_EQ(transforms["val_augment"], true);
  run.overrides = {"transforms.val_augment=false"};
  EXPECT_EQ(dg_config(run)["transforms"]["val_augment"], false);
  run.set = "rotated_mnist", run.overrides = {};
  EXPECT_EQ(dg_config(run)["transforms"]["train"], Json::array());
}

// Section 3.10: lr and weight decay of the authors, by dataset.
TEST(DgRun, G33_DefaultsOfGmoe) {
  const std::tuple<const char*, double, double> rows[] = {
      {"pacs", 3e-5, 1e-6},      {"vlcs", 3e-5, 1e-6},  {"office_home", 1e-5, 1e-6}, {"terra_incognita", 5e-5, 1e-4},
      {"domain_net", 5e-5, 0.0}, {"cub_dg", 5e-5, 0.0}, {"sviro", 3e-5, 0.0}};
  DgRun run;
  for (const auto& [set, lr, weight_decay] : rows) {
    run.set = set, run.model = "gmoe";
    const Json config = dg_config(run);
    EXPECT_EQ(config["optimizer"]["lr"], lr) << set;
    EXPECT_EQ(config["optimizer"]["weight_decay"], weight_decay) << set;
    EXPECT_EQ(config["train"]["max_steps"], run.set == "domain_net" ? 15001 : 5001) << set;
    run.hparams_seed = 1;  // random search has no weight decay
    EXPECT_EQ(dg_config(run)["optimizer"]["weight_decay"], 0.0) << set;
    run.hparams_seed = 0, run.model = "vit";
    EXPECT_EQ(dg_config(run)["optimizer"]["lr"], 5e-5) << set;
  }
  run.set = "domain_net", run.model = "gmoe";
  EXPECT_EQ(dg_config(run)["train"]["eval_every"], 500);
  run.model = "vit";
  EXPECT_EQ(dg_config(run)["train"]["eval_every"], 1000);
}

TEST(DgRun, AFolderWithAnotherRunIsRefused) {
  const testing::TemporaryFolder folder;
  DgRun run;
  run.model = "vit";
  folder.write("config.toml", to_toml(dg_config(run)));
  EXPECT_NO_THROW(check_same_run(dg_config(run), folder.path()));
  run.test_envs = {3};
  const std::string message = testing::error_text([&] { check_same_run(dg_config(run), folder.path()); });
  EXPECT_NE(message.find(" holds another run: its data/test_envs/0 is 0, not 3;"), std::string::npos) << message;
  EXPECT_NE(message.find("choose another folder"), std::string::npos) << message;
}

TEST(DgRun, G62_ParityIsOneModelAway) {
  DgRun run;
  run.set = "pacs", run.model = "gmoe_parity";
  const Json parity = dg_config(run);
  EXPECT_EQ(parity["capacity"]["eval_factor"], 1.5);
  EXPECT_EQ(parity["losses"]["vmoe_load_of"], "scores");
  EXPECT_EQ(parity["losses"]["unbiased_variance"], true);
  EXPECT_EQ(parity["loader"]["eval_batch"], 64);
  run.model = "gmoe";
  EXPECT_EQ(dg_config(run)["capacity"]["eval_factor"], 0.0);
}

TEST(DgSweep, G43_ListsTheRightRuns) {
  EXPECT_EQ(test_sets(4, true).size(), 10u);
  EXPECT_EQ(test_sets(6, true).size(), 21u);
  const std::vector<std::vector<int64_t>> single = test_sets(3, false), all = test_sets(4, true);
  EXPECT_EQ(single, (std::vector<std::vector<int64_t>>{{0}, {1}, {2}}));
  EXPECT_EQ(all,
            (std::vector<std::vector<int64_t>>{{0}, {1}, {2}, {3}, {0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}));
  DgSweep sweep;
  sweep.run.set = "pacs";
  EXPECT_EQ(sweep_runs(sweep).size(), 600u);
  sweep.run.set = "domain_net";
  EXPECT_EQ(sweep_runs(sweep).size(), 1260u);
  sweep.algorithms = {"erm", "irm"};
  EXPECT_EQ(sweep_runs(sweep).size(), 2520u);
  sweep.algorithms = {};
  EXPECT_THROW(sweep_runs(sweep), UsageError);
}

TEST(DgSweep, G47_ComparesModels) {
  DgSweep sweep;
  sweep.run.set = "pacs", sweep.run.model = "resnet18";
  sweep.trials = 1, sweep.hparams = 1, sweep.pairs = false;
  EXPECT_EQ(sweep_runs(sweep).size(), 4u);
  EXPECT_EQ(sweep_runs(sweep)[0].model, "resnet18");
  sweep.models = {"resnet50", "vit", "gmoe"};
  const std::vector<DgRun> runs = sweep_runs(sweep);
  ASSERT_EQ(runs.size(), 12u);
  for (size_t i = 0; i < runs.size(); ++i) EXPECT_EQ(runs[i].model, sweep.models[i / 4]);
  EXPECT_EQ(dg_arguments(runs[11])["model"], "gmoe");
  DgRun run;
  EXPECT_EQ(dg_arguments(run)["model"], "mnist_cnn");
}

}  // namespace sparsight::protocol_test
