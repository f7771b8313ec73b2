#include "sparsight/infer/loaded_model.h"

#include <gtest/gtest.h>

#include <limits>

#include "sparsight/core/config.h"
#include "sparsight/core/toml.h"
#include "sparsight/data/data_info_json.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::loaded_model_test {
namespace {

const std::string kResize = R"({op="resize",size=[8,8]})", kNormalize = R"({op="normalize",mean=[0.4],std=[0.3]})";

// A ViT of one MoE block for grey 8x8 images of two classes, never trained.
Checkpoint untrained_checkpoint(uint64_t seed = 1, const std::string& eval = kResize) {
  Config config;
  for (const std::string& assignment :
       {std::string("model.width=8"), std::string("model.depth=1"), std::string("model.heads=2"),
        std::string("model.patch=4"), std::string("moe.blocks=[0]"), std::string("moe.experts=2"),
        "transforms.eval=[" + eval + "]"})
    config.set(assignment);
  Checkpoint checkpoint;
  checkpoint.config = resolve(config, config_sections());
  DataInfo data;
  data.name = "glyphs";
  data.classes = {"a", "b"};
  data.domains = {"clean"};
  data.channels = 1;
  checkpoint.state = {{"step", 5}, {"data", to_json(data)}};
  const Json steps = checkpoint.config["transforms"]["eval"];
  const auto model =
      make_model(checkpoint.config, {1, 8, 8, 2}, TransformPipeline(steps, "transforms.eval").statistics());
  initialize(*model, seed);
  checkpoint.weights = named_weights(*model);
  return checkpoint;
}

std::string error_of_checkpoint(const testing::TemporaryFolder& folder, const Checkpoint& checkpoint) {
  write_checkpoint(folder.path("a"), checkpoint);
  return testing::error_text([&] { load_model(folder.path("a")); });
}

at::Tensor answer(const LoadedModel& loaded) { return loaded.forward({at::ones({1, 1, 8, 8})}).logits; }

}  // namespace

TEST(LoadModel, GivesTheModelWithItsClassesAndTransforms) {
  const testing::TemporaryFolder folder;
  write_checkpoint(folder.path("a"), untrained_checkpoint());
  const LoadedModel loaded = load_model(folder.path("a"));
  EXPECT_EQ(loaded.step, 5);
  EXPECT_EQ(loaded.data.classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(loaded.shape.channels, 1);
  EXPECT_EQ(loaded.shape.height, 8);
  ViewRandom unused(RandomStream(0, "test"));
  EXPECT_EQ(loaded.eval_transforms(at::zeros({1, 20, 30}, at::kByte), unused).size(1), 8);
  EXPECT_EQ(answer(loaded).sizes(), at::IntArrayRef({1, 2}));
}

TEST(LoadModel, PrefersTheBestCheckpointAndAveragedWeights) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("run");
  const RunFolder run = RunFolder::create(path);
  const Checkpoint plain = untrained_checkpoint(1), other = untrained_checkpoint(2);
  write_file_atomically(run.config(), to_toml(plain.config));
  EXPECT_NE(testing::error_text([&] { load_model(path); }).find("has no checkpoint yet"), std::string::npos);

  Checkpoint last = plain;
  for (const auto& [name, tensor] : other.weights) last.training.emplace_back("ema/" + name, tensor);
  write_checkpoint(run.checkpoint("last"), last);
  const at::Tensor averaged = answer(load_model(path));
  EXPECT_NE(testing::error_text([&] { load_model(path, "best"); }).find("has no best checkpoint"), std::string::npos);

  write_checkpoint(run.checkpoint("best"), plain);
  const at::Tensor best = answer(load_model(path));
  EXPECT_FALSE(at::equal(best, averaged));
  EXPECT_TRUE(at::equal(answer(load_model(path, "last")), averaged));

  write_checkpoint(run.checkpoint("best"), other);
  EXPECT_TRUE(at::equal(answer(load_model(path)), averaged));  // the average was `other`
}

TEST(LoadModel, SaysWhereTheCheckpointsOfAFinishedRunWent) {
  const testing::TemporaryFolder folder;
  const RunFolder run = RunFolder::create(folder.path("run"));
  write_file_atomically(run.config(), to_toml(untrained_checkpoint().config));
  run.mark_done();
  EXPECT_NE(testing::error_text([&] { load_model(run.path()); }).find("it is finished, so the file was removed"),
            std::string::npos);
  EXPECT_NE(testing::error_text<UsageError>([&] { load_model(run.config()); }).find("config.toml is a configuration"),
            std::string::npos);
}

TEST(LoadModel, KnowsWhetherTheWeightsAreAveraged) {
  const testing::TemporaryFolder folder;
  const auto averaged = [&](const Checkpoint& checkpoint, const std::vector<std::string>& overrides = {}) {
    write_checkpoint(folder.path("a"), checkpoint);
    return load_model(folder.path("a"), "", overrides).weights != "model";
  };
  Checkpoint best = untrained_checkpoint();
  best.state["progress"] = {{"step", 5}, {"best_step", 5}};
  EXPECT_FALSE(averaged(best));
  EXPECT_FALSE(averaged(best, {"train.ema_decay=0.9"}));
  best.config["train"]["ema_decay"] = 0.9;
  EXPECT_TRUE(averaged(best));
  EXPECT_TRUE(averaged(best, {"train.ema_decay=0"}));
  best.state["progress"]["best_step"] = 0;  // of a training that never evaluated, written by an earlier version
  EXPECT_FALSE(averaged(best));
  best.state.erase("progress");
  EXPECT_FALSE(averaged(best));

  Checkpoint last = best;
  for (const auto& [name, tensor] : best.weights) last.training.emplace_back("ema/" + name, tensor);
  EXPECT_TRUE(averaged(last));

  // Later versions record it.
  last.state["average"] = "swa";
  EXPECT_TRUE(averaged(last));
  EXPECT_EQ(load_model(folder.path("a")).weights, "swa");
  best.state["weights"] = "swa";
  EXPECT_TRUE(averaged(best));
  EXPECT_EQ(load_model(folder.path("a")).weights, "swa");
}

TEST(LoadModel, AsksNothingOfHowTheModelWasTrained) {
  const testing::TemporaryFolder folder;
  Checkpoint checkpoint = untrained_checkpoint();
  checkpoint.config["optimizer"] = {{"name", "of_another_program"}, {"speed", 3}};
  checkpoint.config["algorithm"] = {{"name", "unheard_of"}};
  write_checkpoint(folder.path("a"), checkpoint);
  EXPECT_EQ(load_model(folder.path("a")).step, 5);
  const auto misuse = [&](const std::string& assignment) {
    return testing::error_text<UsageError>([&] { load_model(folder.path("a"), "", {assignment}); });
  };
  EXPECT_NE(misuse("optimizer.lr=3").find("[optimizer] configures training"), std::string::npos);
  EXPECT_NE(misuse("roter.k=1").find("did you mean \"router\"?"), std::string::npos);
}

TEST(LoadModel, OverridesChangeTheModelAndItsTransforms) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("a");
  write_checkpoint(path, untrained_checkpoint());
  const auto with = [&](const std::string& assignment) { return load_model(path, "", {assignment}); };
  const auto choices = [](const LoadedModel& loaded) {
    return loaded.model->forward({at::ones({1, 1, 8, 8})}).routings[0].expert.numel();
  };
  EXPECT_EQ(choices(load_model(path)), 2 * choices(with("router.eval_k=1")));  // k = 2
  EXPECT_TRUE(load_model(path).model->pixel_statistics().empty());
  const LoadedModel shifted =
      with("transforms.eval=[{op=\"resize\",size=[8,8]},{op=\"normalize\",mean=[0.5],std=[0.5]}]");
  EXPECT_TRUE(shifted.model->pixel_statistics() == (PixelStatistics{{0.5}, {0.5}}));
  EXPECT_EQ(with("experts.activation=relu").config["experts"]["activation"], "relu");
}

// A checkpoint of versions whose data pipeline normalised: the same configuration, without the statistics.
TEST(LoadModel, CheckpointsFromBeforeNormalisationWasTheModelsGiveTheSameBits) {
  const testing::TemporaryFolder folder;
  const torch::NoGradGuard no_grad;
  const Checkpoint now = untrained_checkpoint(1, kResize + "," + kNormalize);
  Checkpoint earlier = now;
  std::erase_if(earlier.weights, [](const auto& entry) { return is_pixel_statistics(entry.first); });
  ASSERT_EQ(earlier.weights.size() + 2, now.weights.size());
  write_checkpoint(folder.path("now"), now);
  write_checkpoint(folder.path("earlier"), earlier);
  const at::Tensor image = (torch::rand({1, 8, 8}) * 255).to(torch::kByte);
  const auto predicted = [&](const std::string& name) {
    const LoadedModel loaded = load_model(folder.path(name));
    return loaded.model->forward({model_image(loaded, image).unsqueeze(0)}).logits;
  };
  EXPECT_TRUE(at::equal(predicted("now"), predicted("earlier")));
  // The computation of those versions: the pipeline's step on the bytes, and a model without normalisation.
  NormalizeOptions options;
  options.mean = {0.4};
  options.std = {0.3};
  ViewRandom unused(RandomStream(0, "test"));
  const auto plain = make_model(earlier.config, {1, 8, 8, 2}, {});
  LoadOptions strict;
  strict.strict = true;
  load_weights(*plain, earlier.weights, strict);
  const at::Tensor input = make_normalize(options)(image, unused).unsqueeze(0);
  EXPECT_TRUE(at::equal(plain->forward({input}).logits, predicted("earlier")));
}

TEST(LoadModel, NormalisesAsTrainedUnlessToldOtherwise) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("a");
  const PixelStatistics trained{{0.4}, {0.3}}, other{{0.5}, {0.25}};
  write_checkpoint(path, untrained_checkpoint(1, kResize + "," + kNormalize));
  const auto statistics = [&](const std::vector<std::string>& overrides) {
    return load_model(path, "", overrides).model->pixel_statistics();
  };
  EXPECT_TRUE(statistics({}) == trained);
  EXPECT_TRUE(statistics({"transforms.eval=[" + kResize + "]"}) == trained);
  EXPECT_TRUE(statistics({"transforms.eval=[" + kResize + R"(,{op="normalize",mean=[0.5],std=[0.25]}])"}) == other);
  EXPECT_TRUE(statistics({"transforms.train=[]"}) == trained);  // training transforms do not matter
}

TEST(LoadModel, StatisticsThatCannotBeAreRefused) {
  const testing::TemporaryFolder folder;
  const Checkpoint good = untrained_checkpoint(1, kResize + "," + kNormalize);
  const auto refusal = [&](const std::string& name, const at::Tensor& value) {
    Checkpoint bad = good;
    for (auto& [key, tensor] : bad.weights)
      if (key == name) tensor = value;
    const std::string message = error_of_checkpoint(folder, bad);
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  };
  EXPECT_EQ(error_of_checkpoint(folder, good), "");
  for (const double std : {0., -1., std::numeric_limits<double>::quiet_NaN()})
    EXPECT_NE(refusal("normalize.std", torch::full({1}, std, torch::kDouble)).find("must be finite and above 0"),
              std::string::npos);
  EXPECT_NE(
      refusal("normalize.mean", torch::full({1}, std::numeric_limits<double>::infinity())).find("NaN or infinity"),
      std::string::npos);
  EXPECT_NE(refusal("normalize.std", torch::ones({3}, torch::kDouble)).find("no fitting weights for normalize.std"),
            std::string::npos);
  Checkpoint unnamed = good;  // has statistics that are not in its configuration
  unnamed.config["transforms"]["eval"] = Json::array({{{"op", "resize"}, {"size", {8, 8}}}});
  EXPECT_NE(error_of_checkpoint(folder, unnamed).find("weights that the model does not have: normalize.mean"),
            std::string::npos);
}

TEST(LoadModel, OverridesThatDoNotFitTheWeightsAreRefused) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("a");
  write_checkpoint(path, untrained_checkpoint());
  const auto refusal = [&](const std::vector<std::string>& overrides) {
    const std::string message = testing::error_text([&] { load_model(path, "", overrides); });
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  };
  const std::string deeper = refusal({"run.seed=3", "model.depth=2"});
  EXPECT_NE(deeper.find(path + " with --set run.seed=3 --set model.depth=2: the file has no fitting weights for"),
            std::string::npos)
      << deeper;
  EXPECT_NE(refusal({"transforms.eval=[{op=\"resize\",size=[16,16]}]"}).find("no fitting weights for pos_embed"),
            std::string::npos);
  EXPECT_NE(refusal({"model.width=4096"}).find("far larger model than it has weights for"), std::string::npos);
  const auto misuse = [&](const std::string& assignment) {
    return testing::error_text<UsageError>([&] { load_model(path, "", {assignment}); });
  };
  EXPECT_NE(misuse("router.eval_k=3").find("3 experts per token but [moe] experts is 2"), std::string::npos);
  EXPECT_NE(misuse("router.evalk=1").find("did you mean"), std::string::npos);
  EXPECT_EQ(misuse("router.eval_k=-1"), "router.eval_k must be from 0 to 65536, got -1") << "no line of a binary file";
  EXPECT_EQ(
      misuse("router.name=cosine"),
      "the run has router.name = \"softmax_topk\", and its weights do not fit router.name = \"cosine\"; train again "
      "with --set router.name=cosine");
  EXPECT_EQ(misuse("moe.experts=16"),
            "the run has moe.experts = 2, and its weights do not fit moe.experts = 16; train again with --set "
            "moe.experts=16");
  load_model(path, "", {"router.name=softmax_topk", "moe.experts=2"});
}

TEST(ModelImage, IsWhatTheModelTakes) {
  const testing::TemporaryFolder folder;
  Checkpoint checkpoint = untrained_checkpoint();
  write_checkpoint(folder.path("a"), checkpoint);
  const LoadedModel resizing = load_model(folder.path("a"));
  EXPECT_EQ(model_image(resizing, at::zeros({1, 20, 30}, at::kByte)).sizes(), at::IntArrayRef({1, 8, 8}));
  checkpoint.config["transforms"]["eval"] = Json::array();
  checkpoint.state["data"]["height"] = checkpoint.state["data"]["width"] = 8;
  write_checkpoint(folder.path("a"), checkpoint);
  const LoadedModel plain = load_model(folder.path("a"));
  EXPECT_NE(testing::error_text([&] {
              model_image(plain, at::zeros({3, 20, 30}, at::kByte));
            }).find("the image of 30x20 pixels and 3 channels is not transformed to the 8x8 pixels and 1 channels"),
            std::string::npos);
}

// Without a resize in the transforms: the shorter side becomes 8, the centre of the other is kept. Columns 0..9 of 30
// are black, the rest white: after resizing to 8 x 12, columns 2..9 are kept, and the edge at 30/3 * 12/30 = 4 is their
// column 2.
TEST(ModelImage, ResizesAndCropsToWhatTheModelTakes) {
  const testing::TemporaryFolder folder;
  for (const char* eval : {"", R"({op="center_crop",size=8})"}) {
    Checkpoint checkpoint = untrained_checkpoint(1, eval);
    checkpoint.state["data"]["height"] = checkpoint.state["data"]["width"] = 8;
    write_checkpoint(folder.path("a"), checkpoint);
    const LoadedModel loaded = load_model(folder.path("a"));
    at::Tensor image = at::full({1, 20, 30}, 255, at::kByte);
    image.slice(2, 0, 10).zero_();
    if (std::string(eval).empty()) {
      const at::Tensor input = model_image(loaded, image);
      ASSERT_EQ(input.sizes(), at::IntArrayRef({1, 8, 8}));
      EXPECT_LT(input.slice(2, 0, 1).max().item<float>(), 0.05);
      EXPECT_GT(input.slice(2, 4, 8).min().item<float>(), 0.95);
      EXPECT_TRUE(loaded.resize_logged->load());
    } else {  // the crop alone fits, unless the image is too small for it
      EXPECT_EQ(model_image(loaded, image).min().item<float>(), 1);
      EXPECT_FALSE(loaded.resize_logged->load());
      EXPECT_EQ(model_image(loaded, image.slice(1, 0, 5)).sizes(), at::IntArrayRef({1, 8, 8}));
    }
  }
}

TEST(LoadModel, IsReplacedByItsProgram) {
  const testing::TemporaryFolder folder;
  write_checkpoint(folder.path("a"), untrained_checkpoint());
  const torch::NoGradGuard no_grad;
  const LoadedModel plain = load_model(folder.path("a"));
  const at::Tensor expected = answer(plain);
  for (const int64_t images : {1, 16}) {
    LoadedModel loaded = load_model(folder.path("a"));
    compile(loaded, images);
    EXPECT_EQ(loaded.model, nullptr);
    EXPECT_TRUE(at::allclose(answer(loaded), expected, 1e-5, 1e-6));
  }
  LoadedModel loaded = load_model(folder.path("a"));
  compile(loaded, 1, "int8");
  EXPECT_FALSE(at::equal(answer(loaded), expected));
  EXPECT_TRUE(at::allclose(answer(loaded), expected, 0, 0.02 * expected.abs().max().item<double>() + 1e-6));
  EXPECT_NE(testing::error_text<UsageError>([&] { compile_program(plain, "int4"); }).find("known: fp32, bf16, int8"),
            std::string::npos);
}

TEST(LoadModel, AnswersAsItIsWhereThereIsNoProgram) {
  const testing::TemporaryFolder folder;
  write_checkpoint(folder.path("a"), untrained_checkpoint());
  const torch::NoGradGuard no_grad;
  LoadedModel loaded = load_model(folder.path("a"));
  Config config;
  for (const char* set : {"model.patch=4", "moe.blocks=[-1]", "router.name=random"}) config.set(set);
  loaded.model = make_model(resolve(config, config_sections()), {1, 8, 8, 2}, {});
  initialize(*loaded.model, 1);
  const at::Tensor expected = answer(loaded);
  EXPECT_NE(testing::error_text([&] { compile(loaded, 1, "int8"); }).find("cannot be used as int8: the router random"),
            std::string::npos);
  compile(loaded, 1);
  EXPECT_EQ(loaded.program, nullptr);
  EXPECT_TRUE(at::equal(answer(loaded), expected));
}

TEST(LoadModel, DamagedCheckpointsAreRefused) {
  const testing::TemporaryFolder folder;
  const Checkpoint good = untrained_checkpoint();
  EXPECT_EQ(error_of_checkpoint(folder, good), "");
  const auto expect = [&](const Checkpoint& checkpoint, const std::string& part) {
    const std::string message = error_of_checkpoint(folder, checkpoint);
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  };
  Checkpoint bad = good;
  bad.state.erase("data");
  expect(bad, "its state is damaged");
  bad = good;
  bad.state["step"] = "five";
  expect(bad, "its state is damaged");
  bad = good;
  bad.config["model"]["width"] = 16;
  expect(bad, "no fitting weights for");
  bad = good;
  bad.config["model"]["width"] = 16384;  // 3.2 GB for one qkv matrix
  expect(bad, "describes a far larger model than it has weights for");
  bad = good;
  bad.config["model"]["wdth"] = 16;
  expect(bad, "unknown setting model.wdth");
  bad = good;
  bad.weights.pop_back();
  expect(bad, "no fitting weights for");
  bad = good;
  bad.weights[0].second = at::full_like(bad.weights[0].second, std::numeric_limits<double>::quiet_NaN());
  expect(bad, "holds NaN");
}

TEST(ShapeAfter, IsWhatTheTransformsMakeOfAnImage) {
  DataInfo data;
  data.classes = {"a", "b", "c"};
  data.channels = 3;
  data.height = 10;
  data.width = 12;
  const ImageShape plain = shape_after(TransformPipeline(), data);
  EXPECT_EQ(plain.height, 10);
  EXPECT_EQ(plain.width, 12);
  EXPECT_EQ(plain.classes, 3);
}

TEST(LoadModel, AComponentOfAnotherProgramSaysSo) {
  const testing::TemporaryFolder folder;
  for (const std::string section : {"router", "model"}) {
    Checkpoint checkpoint = untrained_checkpoint();
    checkpoint.config[section]["name"] = "of_mine";
    const std::string message = error_of_checkpoint(folder, checkpoint);
    EXPECT_NE(message.find("unknown " + section + ".name \"of_mine\" (known: "), std::string::npos) << message;
    EXPECT_TRUE(message.ends_with("trained by a program that registers it: use that program")) << message;
  }
}

}  // namespace sparsight::loaded_model_test
