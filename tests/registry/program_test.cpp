// Every registered model, router and kind of experts as a program (engine/program.h): the same answers and decisions as
// the model with tensors. What has no such form is named here with its reason.
#include <gtest/gtest.h>

#include <algorithm>

#include "sparsight/core/config.h"
#include "sparsight/kernels/threads/own_threads.h"
#include "sparsight/models/make_model.h"
#include "sparsight/models/register_models.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/count_allocations.h"
#include "tests/support/errors.h"
#include "tests/support/frozen.h"
#include "tests/support/near.h"
#include "tests/support/onnx_form.h"
#include "tests/support/random_tensor.h"
#include "tests/support/sanitizers.h"

namespace sparsight::program_test {
namespace {

constexpr int64_t kClasses = 5, kSide = 16;

struct Form {
  std::string name;  // of the test
  Json settings;     // by section and key; those of [model] that the model lacks are left out
};

std::shared_ptr<ImageModel> make(const Form& form, int64_t classes = kClasses) {
  Config config;
  config.set("model", "name", form.settings["model"]["name"], "test");
  models().get(form.settings["model"]["name"].get<std::string>()).describe([&](OptionSet& set) {
    for (const auto& [key, value] : form.settings["model"].items())
      if (set.find(key)) config.set("model", key, value, "test");
  });
  for (const auto& [section, table] : form.settings.items())
    if (section != "model")
      for (const auto& [key, value] : table.items()) config.set(section, key, value, "test");
  const PixelStatistics pixels{{0.4, 0.5, 0.6}, {0.2, 0.25, 0.3}};
  auto model = make_model(resolve(config, config_sections()), {3, kSide, kSide, classes}, pixels);
  initialize(*model, 1);
  const torch::NoGradGuard no_grad;
  uint64_t seed = 100;
  for (auto& p : model->named_parameters())  // some start at 0
    p.value().add_(test::random_tensor(p.value().sizes(), ++seed, torch::kFloat) * 0.1);
  for (auto& b : model->named_buffers())
    if (b.key().ends_with("running_mean"))
      b.value().add_(test::random_tensor(b.value().sizes(), ++seed, torch::kFloat) * 0.1);
  return model;
}

at::Tensor pixels(int64_t images) {
  return at::sigmoid(test::random_tensor({images, 3, kSide, kSide}, 9, torch::kFloat)).contiguous();
}

at::Tensor as_tensor(const float* values, int64_t rows, int64_t columns) {
  return at::from_blob(const_cast<float*>(values), {rows, columns}, at::kFloat).clone();
}
std::vector<int64_t> numbers(const at::Tensor& x) {
  const at::Tensor values = x.to(at::kLong).contiguous();
  return {values.const_data_ptr<int64_t>(), values.const_data_ptr<int64_t>() + values.numel()};
}
template <class T>
std::vector<int64_t> numbers(const engine::Array<T>& x) {
  return {x.data(), x.data() + x.size()};
}
std::vector<float> floats(const at::Tensor& x) {
  const at::Tensor values = x.to(at::kFloat).contiguous();
  return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()};
}

void expect_near(const float* got, const at::Tensor& expected, double tolerance, const char* what) {
  const std::vector<float> values = floats(expected);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(got[i], values[i], tolerance) << what << " " << i;
}

void expect_same_decision(const engine::Routing& got, const Routing& expected) {
  EXPECT_EQ(got.tokens, expected.tokens);
  EXPECT_EQ(got.experts, expected.experts);
  EXPECT_EQ(got.layout.prefix, expected.layout.prefix);
  EXPECT_EQ(got.layout.grid_height, expected.layout.grid_height);
  EXPECT_EQ(got.layout.grid_width, expected.layout.grid_width);
  EXPECT_EQ(got.per_token, expected.per_token);
  EXPECT_EQ(got.varying, expected.varying);
  EXPECT_EQ(got.skips, expected.skips);
  EXPECT_EQ(numbers(got.token), numbers(expected.token));
  EXPECT_EQ(numbers(got.expert), numbers(expected.expert));
  EXPECT_EQ(numbers(got.rank), numbers(expected.rank));
  EXPECT_EQ(numbers(got.kept), numbers(expected.kept));
  EXPECT_EQ(numbers(got.order), numbers(expected.order));
  EXPECT_EQ(numbers(got.offsets), numbers(expected.offsets));
  if (expected.capacity.defined()) {
    EXPECT_EQ(numbers(got.capacity), numbers(expected.capacity));
    EXPECT_EQ(numbers(got.position), numbers(expected.position));
  } else {
    EXPECT_TRUE(got.capacity.empty());
  }
  expect_near(got.gate.data(), expected.gate, 1e-5, "gate");
  ASSERT_EQ(got.logits.size(), expected.clean_logits.defined() ? expected.clean_logits.numel() : 0);
  if (expected.clean_logits.defined()) expect_near(got.logits.data(), expected.clean_logits, 1e-4, "logit");
  ASSERT_EQ(got.scores.size(), expected.scores.defined() ? expected.scores.numel() : 0);
  if (expected.scores.defined()) expect_near(got.scores.data(), expected.scores, 1e-5, "score");
}

// The program on several numbers of images and threads.
void expect_same_answers(ImageModel& model, const ImageInfo& info = {}) {
  const torch::NoGradGuard no_grad;
  const engine::Program program = model.compile();
  EXPECT_EQ(program.classes(), model.forward({pixels(1)}).logits.size(1));
  engine::Session session;
  for (const int64_t images : {5, 1, 6})
    for (const int64_t threads : {1, 3}) {
      const at::Tensor x = pixels(images);
      ImageInfo some = info;
      if (info.image.defined()) some.image = info.image.slice(0, 0, images);
      const ModelOutput expected = model.forward({.images = x, .info = some});
      cpu::OwnThreads pool(threads);
      const engine::Answer answer =
          program.run(session, pool,
                      {.pixels = x.const_data_ptr<float>(),
                       .images = images,
                       .image_numbers = some.image.defined() ? some.image.const_data_ptr<int64_t>() : nullptr});
      const at::Tensor logits = as_tensor(answer.logits, images, program.classes());
      const double scale = std::max(1.0, expected.logits.abs().max().item<double>());
      ASSERT_TRUE(test::near(logits / scale, expected.logits / scale, 1e-5)) << images << " images";
      const at::Tensor features = as_tensor(answer.features, images, program.feature_width());
      const double of_features = std::max(1.0, expected.features.abs().max().item<double>());
      ASSERT_TRUE(test::near(features / of_features, expected.features / of_features, 1e-5));
      size_t next = 0;
      for (const engine::Routing& routing : answer.routings) {
        if (routing.mixes_tokens()) continue;
        ASSERT_LT(next, expected.routings.size());
        EXPECT_EQ(program.routes()[static_cast<size_t>(&routing - answer.routings.data())]->layer(),
                  expected.routings[next].layer);
        expect_same_decision(routing, expected.routings[next++]);
      }
      EXPECT_EQ(next, expected.routings.size());
    }
}

Json vit() { return {{"name", "vit"}, {"width", 32}, {"depth", 3}, {"heads", 2}, {"patch", 4}}; }

std::vector<Form> model_forms() {
  std::vector<Form> forms;
  for (const std::string& name : models().names())
    for (const bool routed : {false, true})
      forms.push_back({name + (routed ? "_routed" : "_dense"),
                       {{"model", {{"name", name}, {"widen", 1}, {"base_width", 16}}},
                        {"moe", {{"blocks", routed ? Json{-1} : Json::array()}}}}});
  return forms;
}

std::vector<Form> router_forms() {
  std::vector<Form> forms;
  for (const std::string& name : routers().names())
    forms.push_back({name,
                     {{"model", vit()},
                      {"moe", {{"blocks", {0, -1}}, {"experts", 4}, {"hidden", 24}}},
                      {"router", {{"name", name}}}}});
  return forms;
}

std::vector<Form> kind_forms() {
  std::vector<Form> forms;
  for (const std::string& name : expert_kinds().names())
    forms.push_back({name,
                     {{"model", vit()},
                      {"moe", {{"blocks", {1}}, {"experts", 4}, {"hidden", 24}, {"shared", 1}}},
                      {"experts", {{"name", name}}}}});
  return forms;
}

Form routed(const std::string& name, const Json& changes) {
  Json settings{{"model", vit()}, {"moe", {{"blocks", {0, 2}}, {"experts", 4}, {"hidden", 24}}}};
  settings.merge_patch(changes);
  return {name, settings};
}

// A wide ResNet whose MoE layer routes patches of several positions.
Form wide_patches(const std::string& name, const Json& experts) {
  Json of_kind{{"name", "norm_conv"}};
  of_kind.update(experts);
  return routed(name, {{"model", {{"name", "wide_resnet"}, {"depth", 10}, {"widen", 1}, {"patch", 2}}},
                       {"moe", {{"blocks", {-1}}}},
                       {"router", {{"name", "patch_choice"}, {"patches", 3}}},
                       {"experts", of_kind}});
}

std::vector<Form> other_forms() {
  return {
      routed("mean_pooling", {{"model", {{"pool", "mean"}}}}),
      routed("registers", {{"model", {{"reg_tokens", 3}, {"no_embed_class", true}, {"layer_scale", 0.5}}}}),
      routed("pre_norm", {{"model", {{"pre_norm", true}, {"pre_logits", true}, {"qkv_bias", false}}}}),
      routed("qk_norm", {{"model", {{"qk_norm", true}, {"norm_eps", 1e-3}}}}),
      routed("attention_pool", {{"model", {{"pool", "map"}, {"reg_tokens", 2}}}}),
      routed("distilled", {{"model", {{"distilled", true}, {"reg_tokens", 2}}}}),
      routed("distilled_dense", {{"model", {{"distilled", true}}}, {"moe", {{"blocks", {0}}}}}),
      routed("stem", {{"model", {{"stem", {8, 16}}, {"stem_norm", "batch"}}}}),
      routed("group_norm_stem", {{"model", {{"stem", {8}}}}}),
      routed("hidden_by_block", {{"model", {{"layer", {{{"blocks", {1}}, {"hidden", 20}}}}}}}),
      routed("experts_by_block", {{"moe", {{"layer", {{{"blocks", {2}}, {"experts", 7}}}}}}}),
      routed("model_router", {{"router", {{"name", "per_image"}, {"scope", "model"}}}}),
      routed("model_router_of_tokens", {{"router", {{"name", "softmax_topk"}, {"scope", "model"}}}}),
      routed("capacity", {{"capacity", {{"factor", 0.6}}}}),
      routed("capacity_priority", {{"capacity", {{"factor", 0.6}, {"priority", "max_gate"}, {"renormalize", true}}}}),
      routed("capacity_sums", {{"capacity", {{"factor", 0.5}, {"priority", "sum_gates"}, {"group", 2}}}}),
      routed("capacity_of_tokens",
             {{"capacity", {{"factor", 0.8}, {"eval_factor", 0.7}, {"group", 10}, {"group_unit", "tokens"}}}}),
      routed("sum_to_one", {{"moe", {{"gates", "sum_to_one"}}}}),
      routed("ungated", {{"moe", {{"gates", "one"}}}}),
      routed("shared", {{"moe", {{"shared", 2}, {"output_sigmoid", true}}}, {"model", {{"layer_scale", 0.5}}}}),
      routed("top_p_capacity", {{"router", {{"name", "top_p"}, {"p", 0.7}}}, {"capacity", {{"factor", 0.6}}}}),
      wide_patches("wide_patches", {{"gate", "input"}}),
      wide_patches("wide_patches_gated_after", {{"gate", "output"}}),
      routed("deep_experts", {{"experts", {{"depth", 3}, {"activation", "relu"}}}}),
      routed("no_expert_bias", {{"experts", {{"bias", false}}}}),
      routed("renormalized", {{"router", {{"name", "softmax_topk"}, {"renormalize", true}, {"k", 3}}}}),
      routed("gshard_threshold", {{"router", {{"name", "gshard_top2"}, {"eval_second", "threshold"}}}}),
      routed("gshard_first", {{"router", {{"name", "gshard_top2"}, {"eval_second", "none"}}}}),
      routed("grouped_sigmoid", {{"moe", {{"experts", 8}}},
                                 {"router", {{"name", "sigmoid_bias"}, {"groups", 4}, {"kept_groups", 2}, {"k", 2}}}}),
      routed("image_norm", {{"router", {{"name", "per_image"}, {"norm", "affine"}, {"input", "mean_patches"}}}}),
      routed("image_mean", {{"router", {{"name", "per_image"}, {"norm", "layer_norm"}, {"input", "mean_all"}}}}),
      routed("choice_of_images", {{"router", {{"name", "expert_choice"}, {"pool", "image"}}}}),
      routed("patch_choice_gates", {{"router", {{"name", "patch_choice"}, {"gate", "softmax_topl"}}}}),
      routed("patch_choice_ones", {{"router", {{"name", "patch_choice"}, {"gate", "ones"}}}}),
      routed("balanced_best", {{"router", {{"name", "balanced_batchwise"}, {"eval_k", 2}}}}),
      routed("balanced_groups_best",
             {{"router", {{"name", "balanced_hierarchical"}, {"groups", 2}, {"eval_k_groups", 1}, {"eval_k", 2}}}}),
      routed("soft_norm", {{"router", {{"name", "soft_moe"}, {"normalize", true}, {"slots", 2}}}}),
      routed("columns", {{"model", {{"name", "mobilenet"}, {"stem", "cifar"}, {"width", 0.25}}},
                         {"moe", {{"blocks", {2, 3}}, {"hidden", 0}}},
                         {"router", {{"name", "per_image"}, {"scope", "model"}}}}),
      routed("resnet_columns", {{"model", {{"name", "resnet"}, {"depth", 18}, {"stem", "cifar"}, {"base_width", 16}}},
                                {"moe", {{"blocks", {1, 2}}, {"hidden", 0}}},
                                {"router", {{"name", "per_image"}, {"scope", "model"}}}}),
      routed("cnn_columns", {{"model", {{"name", "cnn"}, {"widths", {8, 16}}}},
                             {"moe", {{"blocks", {0, 1}}, {"hidden", 0}}},
                             {"router", {{"name", "softmax_topk"}, {"scope", "model"}}}}),
      routed("resnet_pool", {{"model", {{"name", "resnet"}, {"depth", 18}, {"stem", "imagenet"}, {"base_width", 16}}},
                             {"moe", {{"blocks", Json::array()}}}}),
      routed("bottleneck", {{"model", {{"name", "resnet"}, {"depth", 50}, {"stem", "cifar"}, {"base_width", 8}}},
                            {"moe", {{"blocks", Json::array()}}}}),
  };
}

// Why there is no form without tensors, by name; "" for what has one.
std::string reason(const std::string& name) {
  if (name == "random") return "it draws random numbers in evaluation";
  return "";
}

std::string compile_error(const ImageModel& model) {
  return testing::error_text([&] { model.compile(); });
}

}  // namespace

class EveryProgram : public ::testing::TestWithParam<Form> {};

TEST_P(EveryProgram, GivesTheAnswersAndDecisionsOfTheModel) {
  auto model = make(GetParam());
  if (const std::string why = reason(GetParam().name); !why.empty())
    EXPECT_NE(compile_error(*model).find(why), std::string::npos);
  else
    expect_same_answers(*model);
}

TEST_P(EveryProgram, AllocatesNothingAfterItsFirstRuns) {
  if (test::kAddressSanitizer || test::kThreadSanitizer) GTEST_SKIP() << "sanitizers count no allocations";
  if (!reason(GetParam().name).empty()) GTEST_SKIP() << "there is no program";
  const engine::Program program = make(GetParam())->compile();
  engine::Session session;
  cpu::OwnThreads threads(1);
  const at::Tensor x = pixels(6);
  const auto run = [&](int64_t images) {
    program.run(session, threads, {.pixels = x.const_data_ptr<float>(), .images = images});
  };
  const int64_t cold = test::allocations();
  for (const int64_t images : {6, 1, 6, 5}) run(images);
  const int64_t before = test::allocations();
  EXPECT_GT(before, cold);
  for (const int64_t images : {5, 1, 6}) run(images);
  EXPECT_EQ(test::allocations() - before, 0);
}

// In fp32, bf16 and int8: the same bits from a frozen model, and the same file from what was read.
TEST_P(EveryProgram, IsTheSameAfterBeingWrittenAndRead) {
  if (!reason(GetParam().name).empty()) GTEST_SKIP() << "there is no program";
  const auto model = make(GetParam());
  const at::Tensor x = pixels(6);
  cpu::OwnThreads threads(2);
  for (const WeightType type : {WeightType::fp32, WeightType::bf16, WeightType::int8}) {
    const engine::Program program = model->compile({.type = type});
    const std::string file = test::frozen_bytes(program);
    const engine::Program read = test::read_frozen(file);
    EXPECT_EQ(test::frozen_bytes(read), file);
    EXPECT_EQ(read.bytes(), program.bytes());
    engine::Session first, second;
    const engine::Batch batch{.pixels = x.const_data_ptr<float>(), .images = 6};
    const engine::Answer expected = program.run(first, threads, batch), got = read.run(second, threads, batch);
    for (int64_t i = 0; i < 6 * program.classes(); ++i) ASSERT_EQ(got.logits[i], expected.logits[i]);
    ASSERT_EQ(got.routings.size(), expected.routings.size());
    for (size_t r = 0; r < got.routings.size(); ++r)
      EXPECT_EQ(numbers(got.routings[r].expert), numbers(expected.routings[r].expert));
    const engine::Program on_demand = test::read_frozen(file, {.kept_columns = 1});
    engine::Session third;
    const engine::Answer read_later = on_demand.run(third, threads, batch);
    for (int64_t i = 0; i < 6 * program.classes(); ++i) ASSERT_EQ(read_later.logits[i], expected.logits[i]);
  }
}

// tests/engine/onnx_runtime_test.py compares the files with the programs.
TEST_P(EveryProgram, IsAnOnnxFileToo) {
  if (!reason(GetParam().name).empty()) GTEST_SKIP() << "there is no program";
  const auto model = make(GetParam());
  const std::string suite = ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
  for (const auto& [name, type] : {std::pair{"fp32", WeightType::fp32}, std::pair{"bf16", WeightType::bf16},
                                   std::pair{"int8", WeightType::int8}}) {
    const engine::Program program = model->compile({.type = type});
    if (test::onnx_folder().empty())
      EXPECT_GT(test::onnx_bytes(program).size(), static_cast<size_t>(program.classes()));
    else
      test::write_onnx_form(test::onnx_folder(), suite.substr(0, suite.find('/')) + "." + GetParam().name + "." + name,
                            program, floats(pixels(5)), name);
  }
}

TEST(Program, CountsCapacityGroupsAndTurnsByTheNumbersOfImages) {
  for (const Json& changes :
       {Json{{"capacity", {{"factor", 0.5}, {"group", 2}}}}, Json{{"router", {{"name", "round_robin"}}}}}) {
    auto model = make(routed("", changes));
    expect_same_answers(*model, {.image = torch::tensor({3, 9, 2, 4, 8, 5}, torch::kLong)});
  }
}

TEST(Program, HasTheTwoLogitsOfModelsWithOneOutput) {
  for (const std::string name : {"patch_cnn", "wide_resnet"}) {
    auto model = make({"", {{"model", {{"name", name}, {"widen", 1}}}, {"moe", {{"blocks", {-1}}}}}}, 2);
    expect_same_answers(*model);
  }
}

TEST(Program, RefusesWhatTheTokensLack) {
  const auto refused = [](const Json& changes) {
    const engine::Program program = make(routed("", changes))->compile();
    engine::Session session;
    cpu::OwnThreads threads(1);
    const at::Tensor x = pixels(1);
    return testing::error_text(
        [&] { program.run(session, threads, {.pixels = x.const_data_ptr<float>(), .images = 1}); });
  };
  EXPECT_EQ(refused({{"router", {{"name", "patch_choice"}, {"eval_patches", 17}}}}),
            "[router] each expert takes 17 patches but an image has 16 patches; lower patches (in evaluation "
            "eval_patches) or use smaller patches");
  EXPECT_EQ(refused({{"model", {{"pool", "mean"}}}, {"router", {{"name", "per_image"}, {"input", "class_token"}}}}),
            "[router] input = \"class_token\", but the model has no class token; set router.input = \"mean_all\"");
}

TEST(Program, RefusesWhatOnlyTensorsCanDo) {
  const auto refused = [](const Json& changes) { return compile_error(*make(routed("", changes))); };
  EXPECT_NE(refused({{"router", {{"name", "softmax_topk"}, {"eval_noise", true}}}}).find("eval_noise"),
            std::string::npos);
  EXPECT_NE(refused({{"router", {{"name", "softmax_topk"}, {"ties", "random"}}}}).find("ties"), std::string::npos);
  EXPECT_NE(refused({{"capacity", {{"factor", 1.0}, {"priority", "given"}}}}).find("given"), std::string::npos);
}

std::string test_name(const ::testing::TestParamInfo<Form>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Models, EveryProgram, ::testing::ValuesIn(model_forms()), test_name);
INSTANTIATE_TEST_SUITE_P(Routers, EveryProgram, ::testing::ValuesIn(router_forms()), test_name);
INSTANTIATE_TEST_SUITE_P(Kinds, EveryProgram, ::testing::ValuesIn(kind_forms()), test_name);
INSTANTIATE_TEST_SUITE_P(Settings, EveryProgram, ::testing::ValuesIn(other_forms()), test_name);

}  // namespace sparsight::program_test
