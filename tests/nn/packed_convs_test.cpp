// Packed convolutions against at::conv2d in fp64, and norms that are folded into them.
#include "sparsight/nn/packed_convs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sparsight/nn/residual_block.h"
#include "sparsight/ops/torch_threads.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/near.h"
#include "tests/support/thread_count.h"

namespace sparsight::packed_convs_test {
namespace {

Conv make_conv(const ConvOptions& options) {
  Conv conv(options);
  const torch::NoGradGuard no_grad;
  const auto depth = static_cast<double>(options.in * options.kernel * options.kernel);
  conv->weight.copy_(test::random_tensor(conv->weight.sizes(), 1, torch::kFloat) / std::sqrt(depth));
  if (options.bias) conv->bias.copy_(test::random_tensor({options.out}, 2, torch::kFloat));
  return conv;
}

BatchNorm packed_norm(int64_t channels, uint64_t seed) {
  BatchNorm norm(BatchNormOptions{channels});
  const torch::NoGradGuard no_grad;
  norm->tensors.weight.copy_(test::random_tensor({channels}, seed, torch::kFloat));
  norm->tensors.bias.copy_(test::random_tensor({channels}, seed + 1, torch::kFloat));
  norm->tensors.running_mean.copy_(test::random_tensor({channels}, seed + 2, torch::kFloat));
  norm->tensors.running_var.copy_(test::random_tensor({channels}, seed + 3, torch::kFloat).square() + 0.1);
  return norm;
}

// Convolutions on tensors: [B,C,H,W] -> [B,C',H',W'].
class ConvsOnTensors {
 public:
  explicit ConvsOnTensors(std::vector<engine::ConvStep> steps) : convs_(std::move(steps)) {}
  at::Tensor run(const at::Tensor& x) const {
    const at::Tensor in = x.detach().contiguous(at::MemoryFormat::ChannelsLast);
    const engine::ConvChain::Map map{in.size(2), in.size(3), in.size(1)}, out = convs_.output(map);
    at::Tensor y = at::empty({in.size(0), out.channels, out.height, out.width},
                             in.options().memory_format(at::MemoryFormat::ChannelsLast));
    convs_.run(cpu::torch_threads(), in.const_data_ptr<float>(), y.data_ptr<float>(), in.size(0), map);
    return y;
  }

 private:
  engine::ConvChain convs_;
};

ConvsOnTensors to_tensors(engine::ConvStep step) {
  std::vector<engine::ConvStep> steps;
  steps.push_back(std::move(step));
  return ConvsOnTensors(std::move(steps));
}

at::Tensor in_doubles(const Conv& conv, const at::Tensor& x) {
  Conv exact(conv->options());
  exact->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  exact->weight.copy_(conv->weight);
  if (conv->bias.defined()) exact->bias.copy_(conv->bias);
  return exact->forward(x.to(torch::kDouble));
}

struct Sizes {
  int64_t in, out, kernel, stride, height, width;
};

// A run of a patch is `kernel * in` floats: shorter and longer than 384, as is one tap of it; more maps, rows and
// channels than a task; maps of which most taps miss most outputs.
const std::vector<Sizes>& conv_sizes() {
  static const std::vector<Sizes> sizes{
      {1, 1, 1, 1, 1, 1},      {3, 16, 3, 1, 7, 5},   {3, 5, 7, 2, 23, 30},  {16, 33, 3, 2, 9, 8},
      {130, 18, 3, 1, 5, 6},   {20, 40, 1, 2, 7, 10}, {64, 100, 1, 1, 3, 3}, {9, 17, 5, 1, 1, 40},
      {400, 48, 1, 1, 13, 11}, {8, 70, 3, 1, 40, 17}, {7, 3, 3, 2, 2, 2},    {450, 17, 3, 1, 7, 7},
      {450, 5, 3, 2, 2, 3},    {200, 64, 3, 1, 3, 1}, {90, 33, 5, 1, 2, 4},  {64, 16, 7, 2, 4, 3}};
  return sizes;
}

}  // namespace

// W 2, b 1; the norm's weight 3, bias 0.5, mean 5, variance + epsilon 4: scale 1.5, shift 0.5 - 7.5 = -7. Folded:
// weight 3, bias 1 * 1.5 - 7 = -5.5. At x = 4: 12 - 5.5 = 6.5, and layer by layer (9 - 5) / 2 * 3 + 0.5 = 6.5.
TEST(PackedConvs, FoldsABatchNormByHand) {
  Conv conv(ConvOptions{1, 1, 1, 1, true});
  BatchNorm norm(BatchNormOptions{1});
  const torch::NoGradGuard no_grad;
  conv->weight.fill_(2), conv->bias.fill_(1);
  norm->tensors.weight.fill_(3), norm->tensors.bias.fill_(0.5);
  norm->tensors.running_mean.fill_(5), norm->tensors.running_var.fill_(4 - 1e-3);
  const BatchNormAffine affine = batch_norm_affine(*norm);
  EXPECT_NEAR(affine.scale.item<double>(), 1.5, 1e-6);
  EXPECT_NEAR(affine.shift.item<double>(), -7, 1e-6);
  const at::Tensor x = torch::full({1, 1, 1, 1}, 4.0f);
  EXPECT_TRUE(test::near(to_tensors(conv_step(*conv, WeightType::fp32, norm.get())).run(x), x * 0 + 6.5, 1e-5));
  // Before the convolution: relu(1.5 * 4 - 7) = 0, and relu(1.5 * 6 - 7) = 2, times 2 plus 1.
  engine::ConvStep after = conv_step(*conv, WeightType::fp32);
  after.before = packed_affine(*norm);
  const ConvsOnTensors copy = to_tensors(std::move(after));
  EXPECT_TRUE(test::near(copy.run(x), x * 0 + 1, 1e-5));
  EXPECT_TRUE(test::near(copy.run(x + 2), x * 0 + 5, 1e-5));
}

TEST(PackedConvs, AreConvolutionsAtEveryLevelAndSize) {
  test::at_each_level([](const std::string& level) {
    for (const Sizes& s : conv_sizes())
      for (const ConvPadding padding : {ConvPadding::centred, ConvPadding::same})
        for (const int64_t images : {1, 2, 5}) {
          const Conv conv = make_conv({s.in, s.out, s.kernel, s.stride, images != 2, padding});
          const at::Tensor x = test::random_tensor({images, s.in, s.height, s.width}, 3, torch::kFloat);
          const at::Tensor y = to_tensors(conv_step(*conv, WeightType::fp32)).run(x);
          EXPECT_TRUE(test::near(y, in_doubles(conv, x), 2e-5))
              << level << " " << s.in << "-" << s.out << " " << s.kernel << "/" << s.stride << ", " << images;
        }
  });
}

// relu(norm(x)), convolution, folded norm, sum, relu; padding is 0 after the first norm.
TEST(PackedConvs, FuseNormsActivationAndResidual) {
  test::at_each_level([](const std::string& level) {
    for (const int64_t channels : {3, 16, 37, 390}) {
      Conv conv = make_conv({channels, channels, 3, 1, true});
      BatchNorm before = packed_norm(channels, 10), after = packed_norm(channels, 20);
      engine::ConvStep step = conv_step(*conv, WeightType::fp32, after.get());
      step.before = packed_affine(*before);
      step.has_residual = true, step.relu = true;
      const at::Tensor x = test::random_tensor({3, channels, 7, 9}, 3, torch::kFloat);
      const at::Tensor want = at::relu(x + after->forward(conv->forward(at::relu(before->forward(x, false))), false));
      EXPECT_TRUE(test::near(to_tensors(std::move(step)).run(x), want, 1e-4)) << level << " " << channels;
    }
  });
}

TEST(PackedConvs, ResidualBlocksWithGroupNormAreTheSame) {
  test::at_each_level([](const std::string& level) {
    for (const auto& [in, out, stride] : {std::tuple{3, 8, 2}, {24, 24, 1}, {16, 40, 1}, {12, 12, 2}, {5, 7, 1}}) {
      ResidualBlock block(ResidualBlockOptions{in, out, stride});
      uint64_t seed = 30;
      {
        const torch::NoGradGuard no_grad;
        for (at::Tensor& p : block->parameters())
          p.copy_(test::random_tensor(p.sizes(), seed++, torch::kFloat) * (p.dim() > 1 ? 0.2 : 1.0));
      }
      // Far from zero: E[x²] - E[x]² would lose its digits.
      const at::Tensor x = test::random_tensor({3, in, 11, 6}, 3, torch::kFloat) + 30;
      const at::Tensor want = block->forward(x);
      const at::Tensor y = ConvsOnTensors(block->conv_steps(WeightType::fp32)).run(x);
      EXPECT_TRUE(test::near(y, want, 2e-3)) << level << " " << in << "-" << out;
    }
  });
}

TEST(PackedConvs, HaveTheSameBitsForAnyNumberOfThreadsAndImages) {
  for (const auto& [channels, side] : {std::pair{37, 30}, {130, 6}}) {
    ResidualBlock block(ResidualBlockOptions{channels, 72, 1});
    initialize(*block, 1);
    const ConvsOnTensors convs(block->conv_steps(WeightType::fp32));
    const at::Tensor x = test::random_tensor({7, channels, side, side}, 3, torch::kFloat);
    const torch::NoGradGuard no_grad;
    at::Tensor together;
    {
      const test::ThreadCount one(1);
      together = convs.run(x);
    }
    for (const int threads : {1, 2, 4}) {
      const test::ThreadCount some(threads);
      EXPECT_TRUE(torch::equal(convs.run(x), together)) << threads;
      for (const int64_t images : {1, 2, 3})
        EXPECT_TRUE(torch::equal(convs.run(x.narrow(0, 2, images)), together.narrow(0, 2, images)))
            << threads << " " << images;
    }
  }
}

// Fewer and more channels than a vector, a kernel that is larger than the map, and all edges.
TEST(PackedConvs, AreDepthwiseConvolutionsAtEveryLevelAndSize) {
  struct Depthwise {
    int64_t channels, kernel, stride, height, width;
  };
  test::at_each_level([](const std::string& level) {
    for (const Depthwise& s : {Depthwise{1, 3, 1, 1, 1},
                               {3, 3, 1, 5, 4},
                               {16, 3, 2, 7, 8},
                               {37, 5, 1, 2, 3},
                               {96, 3, 2, 9, 1},
                               {144, 3, 1, 14, 14}})
      for (const ConvPadding padding : {ConvPadding::centred, ConvPadding::same})
        for (const int64_t images : {1, 3}) {
          Conv conv(ConvOptions{.in = s.channels,
                                .out = s.channels,
                                .kernel = s.kernel,
                                .stride = s.stride,
                                .bias = true,
                                .padding = padding,
                                .groups = s.channels});
          BatchNorm norm = packed_norm(s.channels, 7);
          const torch::NoGradGuard no_grad;
          conv->weight.copy_(test::random_tensor(conv->weight.sizes(), 1, torch::kFloat));
          conv->bias.copy_(test::random_tensor({s.channels}, 2, torch::kFloat));
          const at::Tensor x = test::random_tensor({images, s.channels, s.height, s.width}, 3, torch::kFloat);
          const at::Tensor y = to_tensors(conv_step(*conv, WeightType::fp32)).run(x);
          EXPECT_TRUE(test::near(y, in_doubles(conv, x), 2e-5)) << level << " " << s.channels;
          engine::ConvStep step = conv_step(*conv, WeightType::fp32, norm.get());
          step.relu = true, step.limit = 0.5;
          const at::Tensor limited = at::clamp(norm->forward(conv->forward(x), false), 0, 0.5);
          EXPECT_TRUE(test::near(to_tensors(std::move(step)).run(x), limited, 1e-4)) << level << " " << s.channels;
        }
  });
}

// min(max(3 x - 5, 0), 6) at 1, 3 and 9 is 0, 4 and 6; NaN stays.
TEST(PackedConvs, ReluSixByHand) {
  Conv conv(ConvOptions{.in = 1, .out = 1, .kernel = 1, .bias = true});
  const torch::NoGradGuard no_grad;
  conv->weight.fill_(3), conv->bias.fill_(-5);
  engine::ConvStep step = conv_step(*conv, WeightType::fp32);
  step.relu = true, step.limit = 6;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor y = to_tensors(std::move(step)).run(torch::tensor({1.0f, 3.0f, 9.0f, nan}).view({1, 1, 1, 4}));
  EXPECT_TRUE(torch::equal(y.flatten().narrow(0, 0, 3), torch::tensor({0.0f, 4.0f, 6.0f})));
  EXPECT_TRUE(std::isnan(y.flatten()[3].item<float>()));
}

// bf16 keeps 8 bits of a weight: 2^-9 of each, 576 of them with random signs. int8 is stored as bf16.
TEST(PackedConvs, FewerBitsPerWeightChangeTheOutputALittle) {
  const Conv conv = make_conv({64, 32, 3, 1, true});
  const at::Tensor x = test::random_tensor({2, 64, 9, 9}, 3, torch::kFloat), exact = in_doubles(conv, x);
  const at::Tensor half = to_tensors(conv_step(*conv, WeightType::bf16)).run(x);
  EXPECT_TRUE(test::near(half, exact, 0.02));
  EXPECT_FALSE(test::near(half, exact, 1e-5));
  EXPECT_TRUE(torch::equal(to_tensors(conv_step(*conv, WeightType::int8)).run(x), half));
}

TEST(PackedConvs, NaNsStayWhereTheyAre) {
  const Conv conv = make_conv({8, 16, 3, 1, true});
  const BatchNorm norm = packed_norm(8, 10);
  engine::ConvStep step = conv_step(*conv, WeightType::fp32);
  step.before = packed_affine(*norm), step.relu = true;
  at::Tensor x = test::random_tensor({1, 8, 9, 9}, 3, torch::kFloat);
  x[0][3][4][5] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor y = to_tensors(std::move(step)).run(x);
  EXPECT_EQ(y.isnan().sum().item<int64_t>(), 9 * 16);
  EXPECT_EQ(y.slice(2, 3, 6).slice(3, 4, 7).isnan().sum().item<int64_t>(), 9 * 16);
}

}  // namespace sparsight::packed_convs_test
