// Models whose images influence each other: which they are, and that a cascade says of them what the final batch says.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/attacks/cascade.h"
#include "sparsight/attacks/run/observed_model.h"
#include "sparsight/moe/register_moe.h"
#include "tests/attacks/routed_model.h"
#include "tests/support/errors.h"

namespace sparsight::coupled_images_test {
namespace {

// 8 images of 17 tokens: 136 tokens, which 4 experts and 2 groups share evenly for any k.
constexpr int64_t kImages = 8;

std::shared_ptr<ImageModel> vit_with(const std::string& router, std::vector<std::string> settings = {}) {
  Config config;
  for (const char* setting : {"model.name=vit", "model.width=12", "model.depth=2", "model.heads=2", "model.patch=2",
                              "moe.blocks=[0, 1]", "moe.experts=4"})
    config.set(setting);
  config.set("router.name=" + router);
  for (const std::string& setting : settings) config.set(setting);
  auto model = make_model(resolve(config, config_sections()), {3, 8, 8, 5});
  initialize(*model, 3);
  model->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  uint64_t seed = 10;
  for (const auto& p : model->named_parameters())
    if (p.value().dim() > 1) p.value().copy_(0.4 * test::random_tensor(p.value().sizes(), ++seed));
  return model;
}

at::Tensor random_pixels(uint64_t seed) {
  return (0.5 + 0.2 * test::random_tensor({kImages, 3, 8, 8}, seed)).clamp(0, 1);
}

// Whether the first image gets other logits beside other images.
bool depends_on_others(AttackedModel& model) {
  const torch::NoGradGuard no_grad;
  const at::Tensor image = torch::arange(kImages, torch::kLong), x = random_pixels(8);
  const at::Tensor own = model.forward(x, {image, 0}).logits[0];
  for (uint64_t seed = 20; seed < 24; ++seed) {
    at::Tensor other = random_pixels(seed);
    other[0] = x[0];
    if (!torch::allclose(model.forward(other, {image, 0}).logits[0], own, 0, 1e-9)) return true;
  }
  return false;
}

// Mixes the images of a batch: the logits of one depend on the mean of all.
class MeanOfBatch : public AttackedModel {
 public:
  ImageCoupling coupling() const override { return {.choices = true}; }

 protected:
  ModelOutput run(const at::Tensor& x, const AttackPass&) override {
    static const at::Tensor first = test::random_tensor({12, 32}, 3), second = test::random_tensor({5, 12}, 4);
    const at::Tensor flat = x.flatten(1) - 0.5, mixed = flat + 3 * flat.mean(0, true);
    ModelOutput output;
    output.logits = mixed.matmul(first.t()).sin().matmul(second.t());
    return output;
  }
};

AttackBatch mixed_images(AttackedModel& model, int64_t count, int64_t batch_size) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = (0.5 + 0.2 * test::random_tensor({count, 2, 4, 4}, 8)).clamp(0, 1),
                   image = torch::arange(count, torch::kLong);
  std::vector<at::Tensor> labels;
  for (const at::Tensor& some : image.split(batch_size))
    labels.push_back(model.forward(x.index_select(0, some), {some, 0}).logits.argmax(1));
  return {x, {torch::cat(labels)}, image};
}

}  // namespace

// A new router that lets images influence each other has to say so.
TEST(CoupledImages, A25_EveryRouterSaysWhetherOtherImagesDecide) {
  std::vector<std::string> in_evaluation, in_training;
  for (const std::string& name : routers().names())
    for (const bool choices : {false, true}) {
      AttackedImageModel model(vit_with(name), {.mode = {.choices = choices}});
      if (depends_on_others(model)) {
        EXPECT_TRUE(model.coupled()) << name << choices;
      }
      EXPECT_EQ(model.coupling().capacity, false) << name;
      if (model.coupled()) (choices ? in_training : in_evaluation).push_back(name);
    }
  EXPECT_EQ(in_evaluation, std::vector<std::string>{"expert_choice"});
  EXPECT_EQ(in_training.size(), 5u) << ::testing::PrintToString(in_training);
  AttackedImageModel of_images(vit_with("expert_choice", {"router.pool=image"}));
  EXPECT_FALSE(of_images.coupled());
  EXPECT_FALSE(depends_on_others(of_images));
}

TEST(CoupledImages, A25_ExactPassesAreRefused) {
  AttackedImageModel pooled(vit_with("expert_choice")), limited(vit_with("softmax_topk", {"capacity.eval_factor=1"}));
  const auto message = [](AttackedModel& inner) {
    ObservedModel model(inner, /*exact=*/true);
    return testing::error_text<UsageError>([&] {
      model.forward(random_pixels(8), {torch::arange(kImages, torch::kLong), 0});
    });
  };
  EXPECT_NE(message(pooled).find("routers of this model choose experts among all images of a batch"),
            std::string::npos);
  EXPECT_NE(message(limited).find("share the experts' capacity"), std::string::npos);
}

TEST(CoupledImages, A59_PassesAreRandomWhereARouterSamples) {
  const auto randomised = [](const std::string& router, std::vector<std::string> settings, bool noise) {
    AttackedImageModel model(vit_with(router, std::move(settings)), {.mode = {.noise = noise}});
    const torch::NoGradGuard no_grad;
    model.forward(random_pixels(8), {torch::arange(kImages, torch::kLong), 0});
    return model.randomised();
  };
  EXPECT_FALSE(randomised("softmax_topk", {"router.noise=1"}, false));
  EXPECT_TRUE(randomised("softmax_topk", {"router.noise=1"}, true));
  EXPECT_FALSE(randomised("softmax_topk", {"router.noise=0"}, true));
  EXPECT_TRUE(randomised("softmax_topk", {"router.noise=1", "router.eval_noise=true"}, false));
  EXPECT_TRUE(randomised("random", {}, false));
  EXPECT_TRUE(randomised("gshard_top2", {"router.eval_second=random"}, false));
  EXPECT_FALSE(randomised("gshard_top2", {}, false));
  EXPECT_FALSE(randomised("soft_moe", {}, true));
  EXPECT_FALSE(randomised("softmax_topk", {"moe.blocks=[]"}, true));
}

// The result is what a pass over its batches says, and the stages add up to it.
TEST(CoupledImages, A33_ACascadeEndsAtWhatItsBatchesSay) {
  MeanOfBatch model;
  const AttackBatch batch = mixed_images(model, 40, 10);
  std::vector<CascadeStage> stages = cascade_stages("standard");
  for (CascadeStage& stage : stages) stage.settings[stage.attack == "square" ? "queries" : "steps"] = 8;
  for (const double epsilon : {.005, .01, .02}) {
    const CascadeResult result = run_cascade(model, batch, {{Norm::linf, epsilon, {}}, 7}, stages, 10);
    std::vector<at::Tensor> correct;
    for (const at::Tensor& some : batch.image.split(10))
      correct.push_back(classified_correctly(model.forward(result.pixels.index_select(0, some), {some, 0}).logits,
                                             batch.labels.label.index_select(0, some)));
    EXPECT_TRUE(torch::equal(result.robust, result.clean & torch::cat(correct))) << epsilon;
    int64_t robust = 40;
    for (const StageResult& stage : result.stages) {
      EXPECT_EQ(stage.robust_before, robust) << stage.name;
      EXPECT_GE(stage.gained, 0) << stage.name;
      robust -= stage.gained;
    }
    EXPECT_EQ(result.robust.sum().item<int64_t>(), robust);
    EXPECT_LT(robust, 40);
    EXPECT_TRUE(torch::equal(result.stage >= 0, ~result.robust));
  }
}

// A router loss is one number of the batch, so that fooled images stay in it in the next stages.
TEST(CoupledImages, A16_ObjectivesOfABatchKeepAllOfItsImages) {
  AttackedImageModel model(test::routed_vit({"losses.vmoe_importance=0.01"}), {.mode = test::losses_mode()});
  const AttackBatch batch = test::routed_images(model, 8);
  for (const bool with_losses : {false, true}) {
    std::vector<int64_t> attacked;
    AttackContext context{{Norm::linf, .03, {}}, 4};
    context.observe = [&](const AttackStep& step) { attacked.push_back(step.image.size(0)); };
    Json settings{{"steps", 4}};
    if (with_losses) settings["router_losses"] = {"vmoe_importance"};
    const CascadeResult result =
        run_stages(model, batch, context, {{"a", "apgd", settings}, {"b", "pgd", settings}}, 8);
    EXPECT_GT(result.stages[0].gained, 0);
    ASSERT_GT(result.stages[1].robust_before, 0);
    EXPECT_EQ(attacked.back(), with_losses ? 8 : result.stages[1].robust_before);
    EXPECT_FALSE(model.coupled());
  }
}

}  // namespace sparsight::coupled_images_test
