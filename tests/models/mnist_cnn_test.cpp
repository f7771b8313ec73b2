// DomainBed's network for small images: counts and names of parameters, and its output by loops in fp64.
#include "sparsight/models/mnist_cnn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/cost_coverage.h"
#include "tests/support/random_tensor.h"

namespace sparsight::mnist_cnn_test {
namespace {

std::shared_ptr<MnistCnn> build_model(int64_t channels, int64_t height, int64_t width) {
  auto model =
      std::make_shared<MnistCnn>(MnistCnnOptions{}, ModelContext{{channels, height, width, 10}, default_moe_spec()});
  initialize(*model, 1);
  return model;
}

// A map of one image, [C][H][W] in a row.
struct Map {
  int64_t channels, height, width;
  std::vector<double> values;
  double& at(int64_t c, int64_t y, int64_t x) { return values[static_cast<size_t>((c * height + y) * width + x)]; }
  double padded(int64_t c, int64_t y, int64_t x) {
    return y < 0 || x < 0 || y >= height || x >= width ? 0 : at(c, y, x);
  }
};

std::vector<double> to_doubles(const at::Tensor& t) {
  const at::Tensor d = t.detach().to(torch::kDouble).contiguous();
  return {d.const_data_ptr<double>(), d.const_data_ptr<double>() + d.numel()};
}

// relu(conv(x)), 3x3 with one zero around.
Map convolved(Map x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride) {
  const int64_t outputs = weight.size(0);
  const std::vector<double> w = to_doubles(weight), b = to_doubles(bias);
  Map y{outputs, (x.height + stride - 1) / stride, (x.width + stride - 1) / stride, {}};
  y.values.resize(static_cast<size_t>(outputs * y.height * y.width));
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t r = 0; r < y.height; ++r)
      for (int64_t s = 0; s < y.width; ++s) {
        double sum = b[static_cast<size_t>(o)];
        for (int64_t c = 0; c < x.channels; ++c)
          for (int64_t k = 0; k < 9; ++k)
            sum += w[static_cast<size_t>((o * x.channels + c) * 9 + k)] *
                   x.padded(c, r * stride + k / 3 - 1, s * stride + k % 3 - 1);
        y.at(o, r, s) = std::max(0.0, sum);
      }
  return y;
}

// Eight groups of neighbouring channels; torch's epsilon.
Map normed(Map x, const at::Tensor& weight, const at::Tensor& bias) {
  const std::vector<double> w = to_doubles(weight), b = to_doubles(bias);
  const int64_t channels = x.channels / 8, size = channels * x.height * x.width;
  for (int64_t g = 0; g < 8; ++g) {
    double mean = 0, square = 0;
    for (int64_t i = g * size; i < (g + 1) * size; ++i)
      mean += x.values[static_cast<size_t>(i)] / static_cast<double>(size);
    for (int64_t i = g * size; i < (g + 1) * size; ++i)
      square += std::pow(x.values[static_cast<size_t>(i)] - mean, 2) / static_cast<double>(size);
    for (int64_t i = g * size; i < (g + 1) * size; ++i) {
      const auto c = static_cast<size_t>(i / (x.height * x.width));
      double& value = x.values[static_cast<size_t>(i)];
      value = (value - mean) / std::sqrt(square + 1e-5) * w[c] + b[c];
    }
  }
  return x;
}

}  // namespace

// By hand: convolutions 9 in out + out, norms 2 out, head 129 for each class.
TEST(MnistCnn, HasDomainBedsParameters) {
  const auto grey = build_model(1, 28, 28), coloured = build_model(2, 28, 28);
  EXPECT_EQ(test::parameter_count(*grey), 640 + 73856 + 2 * 147584 + 128 + 3 * 256 + 1290);
  EXPECT_EQ(test::parameter_count(*coloured) - test::parameter_count(*grey), 9 * 64);
  std::vector<std::string> names;
  for (const auto& p : grey->named_parameters()) names.push_back(p.key().substr(0, p.key().find('.')));
  names.erase(std::unique(names.begin(), names.end()), names.end());
  EXPECT_EQ(join(names), "conv1, conv2, conv3, conv4, bn0, bn1, bn2, bn3, classifier");
}

// PyTorch's initial values: conv2 has 576 inputs, U(± 1/24), bias included.
TEST(MnistCnn, StartsAsPyTorchsLayers) {
  const auto p = build_model(1, 28, 28)->named_parameters();
  for (const char* name : {"conv2.weight", "conv2.bias"}) {
    const double bound = p[name].abs().max().item<double>();
    EXPECT_LE(bound, 1. / 24) << name;
    EXPECT_GT(bound, 0.9 / 24) << name;
  }
  EXPECT_NEAR(p["conv2.weight"].std().item<double>(), 1 / (24 * std::sqrt(3.)), 2e-4);
  EXPECT_LE(p["classifier.bias"].abs().max().item<double>(), 1 / std::sqrt(128.));
  EXPECT_GT(p["classifier.bias"].abs().max().item<double>(), 0);
}

TEST(MnistCnn, ComputesWhatLoopsCompute) {
  const auto model = build_model(2, 9, 6);
  auto p = model->named_parameters();
  {
    const torch::NoGradGuard no_grad;  // scales and shifts of the norms that show
    for (int64_t i = 0; i < 4; ++i)
      for (const char* name : {"weight", "bias"}) {
        at::Tensor t = p[cat("bn", i, ".", name)];
        t.add_(test::random_tensor(t.sizes(), static_cast<uint64_t>(10 + i), torch::kFloat) * 0.3);
      }
  }
  const at::Tensor x = test::random_tensor({2, 2, 9, 6}, 4, torch::kFloat);
  const ModelOutput out = model->forward({x});
  for (int64_t image = 0; image < 2; ++image) {
    Map map{2, 9, 6, to_doubles(x[image])};
    for (int64_t i = 0; i < 4; ++i) {
      const auto of = [&](const std::string& layer, const char* name) { return p[cat(layer, ".", name)]; };
      const std::string conv = cat("conv", i + 1), norm = cat("bn", i);
      map = normed(convolved(map, of(conv, "weight"), of(conv, "bias"), i == 1 ? 2 : 1), of(norm, "weight"),
                   of(norm, "bias"));
    }
    ASSERT_EQ(map.height, 5);
    const at::Tensor features = torch::from_blob(map.values.data(), {128, 15}, torch::kDouble).mean(1);
    EXPECT_TRUE(torch::allclose(out.features[image].to(torch::kDouble), features, 1e-4, 1e-5));
    const at::Tensor logits = p["classifier.weight"].to(torch::kDouble).mv(features) + p["classifier.bias"];
    EXPECT_TRUE(torch::allclose(out.logits[image].to(torch::kDouble), logits, 1e-4, 1e-5));
  }
}

}  // namespace sparsight::mnist_cnn_test
