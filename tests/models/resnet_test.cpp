// ResNet: counts and names of parameters, cost, blocks by hand, the stem, frozen batch norm, dropout of the features.
#include "sparsight/models/resnet.h"

#include <gtest/gtest.h>

#include "sparsight/nn/parameter_memory.h"
#include "tests/support/cost_coverage.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::resnet_test {
namespace {

std::shared_ptr<Resnet> small_resnet(const ResnetOptions& changes, int64_t side = 16) {
  ResnetOptions options = changes;
  options.base_width = 8;
  auto model = std::make_shared<Resnet>(options, ModelContext{{3, side, side, 5}, default_moe_spec()});
  initialize(*model, 1);
  return model;
}

at::Tensor some_images(int64_t count, int64_t side = 16) {
  return test::random_tensor({count, 3, side, side}, 3, torch::kFloat);
}

std::map<std::string, at::Tensor> copy_buffers(const Resnet& model) {
  std::map<std::string, at::Tensor> all;
  for (const auto& b : model.named_buffers()) all[b.key()] = b.value().clone();
  return all;
}

}  // namespace

// Parameters as torchvision lists them. Multiply-adds of convolutions and head, by layer; of ResNet-18: 118,013,952 in
// the stem, 462,422,016 in layer 1, 411,041,792 in each of the others, 512,000 in the head; torchvision's own tables
// have 1.814, 3.664, 4.089, 7.801 and 11.514 G.
TEST(Resnet, HasThePublishedNumbersOfParametersAndMultiplyAdds) {
  const auto expect = [](int64_t depth, int64_t parameters, int64_t multiply_adds) {
    const MetaParameters without_memory;
    const Resnet model({.depth = depth}, ModelContext{{3, 224, 224, 1000}, default_moe_spec()});
    EXPECT_EQ(test::parameter_count(model), parameters) << depth;
    const Cost cost = total(model.cost({}));
    EXPECT_EQ(cost.parameters, parameters) << depth;
    EXPECT_EQ(cost.multiply_adds, multiply_adds) << depth;
  };
  expect(18, 11689512, 1814073344);
  expect(34, 21797672, 3663761408);
  expect(50, 25557032, 4089184256);
  expect(101, 44549160, 7801405440);
  expect(152, 60192808, 11513626624);
  EXPECT_EQ(118013952 + 462422016 + 3 * 411041792 + 512000, 1814073344);
}

TEST(Resnet, RefusesOtherDepths) {
  EXPECT_EQ(testing::error_text<UsageError>([] { small_resnet({.depth = 20}); }),
            "[model] depth must be 18, 34, 50, 101 or 152, got 20");
}

TEST(Resnet, NamesItsWeightsAsTorchvision) {
  const auto model = small_resnet({.depth = 50});
  const auto parameters = model->named_parameters();
  using Sizes = std::vector<int64_t>;
  const auto sizes = [&](const char* name) {
    return parameters.contains(name) ? parameters[name].sizes().vec() : Sizes{};
  };
  EXPECT_EQ(parameters.keys().front(), "conv1.weight");
  EXPECT_EQ(parameters.size(), 161u);  // of torchvision's: 53 convolutions, 53 norms of two, head of two
  EXPECT_EQ(sizes("conv1.weight"), (Sizes{8, 3, 7, 7}));
  EXPECT_EQ(sizes("layer1.0.conv1.weight"), (Sizes{8, 8, 1, 1}));
  EXPECT_EQ(sizes("layer1.0.conv2.weight"), (Sizes{8, 8, 3, 3}));
  EXPECT_EQ(sizes("layer1.0.conv3.weight"), (Sizes{32, 8, 1, 1}));
  EXPECT_EQ(sizes("layer1.0.downsample.0.weight"), (Sizes{32, 8, 1, 1}));
  EXPECT_EQ(sizes("layer4.2.conv1.weight"), (Sizes{64, 256, 1, 1}));
  EXPECT_EQ(sizes("layer4.2.bn3.bias"), (Sizes{256}));
  EXPECT_EQ(sizes("fc.weight"), (Sizes{5, 256}));
  EXPECT_FALSE(parameters.contains("layer1.1.downsample.0.weight"));
  EXPECT_TRUE(model->named_buffers().contains("layer2.0.downsample.1.running_var"));
  // The first layer of basic blocks has no other shape than the stem.
  EXPECT_FALSE(small_resnet({.depth = 34})->named_parameters().contains("layer1.0.downsample.0.weight"));
}

// By hand from the names of its parameters. The stride is in the 3x3 convolution.
TEST(Resnet, ABottleneckIsWhatItsNamesSay) {
  ResnetBlock block({.in = 3, .width = 2, .stride = 2, .bottleneck = true});
  initialize(block, 1);
  const auto p = block.named_parameters();
  const at::Tensor x = test::random_tensor({2, 3, 6, 6}, 1, torch::kFloat);
  const double scale = 1 / std::sqrt(1 + 1e-5);  // running mean 0, variance 1
  at::Tensor u = at::relu(at::conv2d(x, p["conv1.weight"]) * scale);
  u = at::relu(at::conv2d(u, p["conv2.weight"], {}, 2, 1) * scale);
  u = at::conv2d(u, p["conv3.weight"]) * scale;
  const at::Tensor shortcut = at::conv2d(x, p["downsample.0.weight"], {}, 2) * scale;
  EXPECT_TRUE(torch::allclose(block.forward(x, false), at::relu(shortcut + u), 1e-5, 1e-6));
}

TEST(Resnet, ABasicBlockAddsItsInput) {
  ResnetBlock block({.in = 3, .width = 3});
  initialize(block, 1);
  const auto p = block.named_parameters();
  ASSERT_EQ(p.size(), 6u);
  const at::Tensor x = test::random_tensor({2, 3, 5, 4}, 1, torch::kFloat);
  const double scale = 1 / std::sqrt(1 + 1e-5);
  const at::Tensor u = at::relu(at::conv2d(x, p["conv1.weight"], {}, 1, 1) * scale);
  const at::Tensor want = at::relu(x + at::conv2d(u, p["conv2.weight"], {}, 1, 1) * scale);
  EXPECT_TRUE(torch::allclose(block.forward(x, false), want, 1e-5, 1e-6));
}

TEST(Resnet, TheStemOfSmallImagesKeepsTheResolution) {
  const auto shape = [](const std::string& stem, const std::string& tap) {
    ModelInput input{some_images(2, 32)};
    input.taps = {tap};
    return small_resnet({.stem = stem}, 32)->forward(input).taps.at(tap).sizes().vec();
  };
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(shape("imagenet", "bn1"), (Sizes{2, 8, 16, 16}));
  EXPECT_EQ(shape("imagenet", "layer1.0"), (Sizes{2, 8, 8, 8}));
  EXPECT_EQ(shape("cifar", "bn1"), (Sizes{2, 8, 32, 32}));
  EXPECT_EQ(shape("cifar", "layer1.0"), (Sizes{2, 8, 32, 32}));
  EXPECT_EQ(shape("cifar", "layer4.0"), (Sizes{2, 64, 4, 4}));
}

// PyTorch's average of mean 0 and the first batch's: a tenth of the latter.
TEST(Resnet, TheRunningStatisticsMoveByATenth) {
  const auto model = small_resnet({});
  const at::Tensor x = some_images(6);
  model->forward({x, ForwardMode::training()});
  const at::Tensor mean = at::conv2d(x, model->named_parameters()["conv1.weight"], {}, 2, 3).mean({0, 2, 3});
  EXPECT_TRUE(torch::allclose(model->named_buffers()["bn1.running_mean"], 0.1 * mean, 1e-4, 1e-6));
}

// DomainBed's ResNet.freeze_bn(): BatchNorm2d.eval() alone, so scale and shift keep their gradients.
TEST(Resnet, FrozenBatchNormTrainsAsItEvaluates) {
  const auto model = small_resnet({.frozen_batch_norm = true}), moving = small_resnet({});
  const at::Tensor x = some_images(6);
  const auto before = copy_buffers(*model), others = copy_buffers(*moving);
  const at::Tensor logits = model->forward({x, ForwardMode::training()}).logits;
  EXPECT_TRUE(torch::equal(logits, model->forward({x}).logits));
  EXPECT_FALSE(torch::allclose(moving->forward({x, ForwardMode::training()}).logits, logits, 1e-2, 1e-2));
  ASSERT_FALSE(before.empty());
  for (const auto& [name, value] : before) EXPECT_TRUE(torch::equal(model->named_buffers()[name], value)) << name;
  for (const auto& [name, value] : others) EXPECT_FALSE(torch::equal(moving->named_buffers()[name], value)) << name;
  logits.square().sum().backward();
  for (const char* name : {"bn1.weight", "bn1.bias", "layer4.1.bn2.weight", "layer2.0.downsample.1.bias"})
    EXPECT_GT(model->named_parameters()[name].grad().abs().max().item<double>(), 0) << name;
}

// 6 x 64 features, of which a half is dropped and the others doubled.
TEST(Resnet, DropoutIsOfTheFeatures) {
  const auto model = small_resnet({.frozen_batch_norm = true, .dropout = 0.5});
  const at::Tensor x = some_images(6), plain = model->forward({x}).features;
  const ModelOutput out = model->forward({x, ForwardMode::training(), {1, 2}});
  const at::Tensor dropped = out.features == 0, positive = plain > 0;
  EXPECT_TRUE(torch::allclose(at::where(dropped, at::zeros_like(plain), 2 * plain), out.features, 1e-5, 1e-6));
  const double share = (dropped & positive).sum().item<double>() / positive.sum().item<double>();
  EXPECT_NEAR(share, 0.5, 0.15);
  EXPECT_TRUE(torch::equal(model->classify(out.features), out.logits));
}

}  // namespace sparsight::resnet_test
