// Parts of packed models against plain loops in fp64, at every level and on several threads.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sparsight/engine/conv_chain.h"
#include "sparsight/engine/patch_embedding.h"
#include "sparsight/engine/transformer_block.h"
#include "tests/kernels/every_level.h"
#include "tests/kernels/experts/plain_experts.h"

namespace sparsight::engine_test {
namespace {

using testing::Doubles;
using testing::Floats;
using testing::random_floats;

void expect_close(const Floats& got, const Doubles& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance) << i;
}

// [rows,O] of x [rows,I], weight [O,I] and bias [O].
Doubles linear(const Doubles& x, const Floats& weight, const Floats& bias) {
  const size_t outputs = bias.size(), inputs = weight.size() / outputs, rows = x.size() / inputs;
  Doubles y(rows * outputs);
  for (size_t r = 0; r < rows; ++r)
    for (size_t o = 0; o < outputs; ++o) {
      double sum = bias[o];
      for (size_t i = 0; i < inputs; ++i) sum += x[r * inputs + i] * weight[o * inputs + i];
      y[r * outputs + o] = sum;
    }
  return y;
}

Doubles normalised(const Doubles& x, const engine::Norm& norm) {
  const size_t width = norm.weight.size();
  Doubles y(x.size());
  for (size_t first = 0; first < x.size(); first += width) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < width; ++c) mean += x[first + c] / static_cast<double>(width);
    for (size_t c = 0; c < width; ++c) variance += std::pow(x[first + c] - mean, 2) / static_cast<double>(width);
    for (size_t c = 0; c < width; ++c)
      y[first + c] = (x[first + c] - mean) / std::sqrt(variance + norm.epsilon) * norm.weight[c] + norm.bias[c];
  }
  return y;
}

// Self-attention of each image, [rows,D] of qkv [rows,3D].
Doubles attended(const Doubles& qkv, size_t tokens, size_t width, size_t heads) {
  const size_t size = width / heads, rows = qkv.size() / (3 * width);
  Doubles out(rows * width);
  const auto at = [&](size_t row, size_t part, size_t column) { return qkv[row * 3 * width + part * width + column]; };
  for (size_t row = 0; row < rows; ++row)
    for (size_t head = 0; head < heads; ++head) {
      Doubles p(tokens);
      double sum = 0;
      for (size_t t = 0; t < tokens; ++t) {
        const size_t key = row / tokens * tokens + t;
        double score = 0;
        for (size_t c = head * size; c < (head + 1) * size; ++c) score += at(row, 0, c) * at(key, 1, c);
        sum += p[t] = std::exp(score / std::sqrt(static_cast<double>(size)));
      }
      for (size_t t = 0; t < tokens; ++t)
        for (size_t c = head * size; c < (head + 1) * size; ++c)
          out[row * width + c] += p[t] / sum * at(row / tokens * tokens + t, 2, c);
    }
  return out;
}

cpu::PackedLinear packed(const Floats& weight, const Floats& bias) {
  const auto outputs = static_cast<int64_t>(bias.size());
  return {weight.data(), bias.data(), static_cast<int64_t>(weight.size()) / outputs, outputs, WeightType::fp32};
}

struct BlockNumbers {
  static constexpr int64_t kWidth = 32, kHidden = 72, kHeads = 2;
  engine::Norm norm1{random_floats(kWidth, 1), random_floats(kWidth, 2), 1e-6f};
  engine::Norm norm2{random_floats(kWidth, 3), random_floats(kWidth, 4), 1e-6f};
  Floats qkv = scaled(3 * kWidth * kWidth, 5), qkv_bias = random_floats(3 * kWidth, 6);
  Floats proj = scaled(kWidth * kWidth, 7), proj_bias = random_floats(kWidth, 8);
  Floats fc1 = scaled(kHidden * kWidth, 9), fc1_bias = random_floats(kHidden, 10);
  Floats fc2 = scaled(kWidth * kHidden, 11), fc2_bias = random_floats(kWidth, 12);

  static Floats scaled(int64_t count, uint32_t seed) {
    Floats out = random_floats(count, seed);
    for (float& x : out) x *= 0.15f;
    return out;
  }
  engine::TransformerBlock block() const {
    return engine::TransformerBlock({norm1, packed(qkv, qkv_bias), packed(proj, proj_bias), kHeads,
                                     engine::Mlp{norm2, packed(fc1, fc1_bias), packed(fc2, fc2_bias)}});
  }
  Doubles plain(const Floats& x, size_t tokens) const {
    Doubles y(x.begin(), x.end());
    const Doubles mixed =
        linear(attended(linear(normalised(y, norm1), qkv, qkv_bias), tokens, kWidth, kHeads), proj, proj_bias);
    for (size_t i = 0; i < y.size(); ++i) y[i] += mixed[i];
    Doubles hidden = linear(normalised(y, norm2), fc1, fc1_bias);
    for (double& h : hidden) h = testing::gelu(h);
    const Doubles added = linear(hidden, fc2, fc2_bias);
    for (size_t i = 0; i < y.size(); ++i) y[i] += added[i];
    return y;
  }
};

}  // namespace

// One image and several, of which whole ones or parts are computed by a thread.
TEST(EngineTransformerBlock, AttendsAndTransforms) {
  const BlockNumbers numbers;
  const engine::TransformerBlock block = numbers.block();
  for (const int64_t images : {1, 2, 7}) {
    constexpr int64_t kTokens = 11, kOutputs = 3;
    const Floats x = random_floats(images * kTokens * BlockNumbers::kWidth, 20);
    const Doubles want = numbers.plain(x, kTokens);
    Doubles first;
    for (int64_t image = 0; image < images; ++image) {
      const auto begin = want.begin() + image * kTokens * BlockNumbers::kWidth;
      first.insert(first.end(), begin, begin + kOutputs * BlockNumbers::kWidth);
    }
    testing::at_every_level([&](cpu::Threads& threads) {
      Floats y(x.size()), some(first.size());
      block.run(threads, x.data(), y.data(), {images, kTokens, kTokens});
      expect_close(y, want, 1e-4);
      block.run(threads, x.data(), some.data(), {images, kTokens, kOutputs});
      expect_close(some, first, 1e-4);
    });
  }
}

// Patches of 2 x 2 pixels of one image of 2 x 4, as in tests/kernels/conv/patch_linear_test.cpp, plus positions.
TEST(EnginePatchEmbedding, AddsPositions) {
  const Floats pixels{1, 2, 3, 4, 5, 6, 7, 8}, positions{100, 0, 0, 200};
  const engine::PatchEmbedding embedding(packed({1, 1, 1, 1, 1, 0, 0, -1}, {0.5f, 10}), 2);
  testing::at_every_level([&](cpu::Threads& threads) {
    Floats tokens(6, -1);  // after a class token
    embedding.run(threads, {pixels.data(), 1, 1, 2, 4, 8, 8, 4, 1}, positions.data(), {tokens.data() + 2, 6});
    EXPECT_EQ(tokens, (Floats{-1, -1, 114.5f, 5, 22.5f, 205}));
  });
}

// relu(conv2(relu(conv1(x))) + x), 3 x 3 with zeros around the maps, channels last.
TEST(EngineConvChain, OfTwoConvolutionsAndAShortcut) {
  constexpr int64_t kChannels = 5, kHeight = 6, kWidth = 4, kImages = 3;
  const Floats first = random_floats(kChannels * kChannels * 9, 30),
               second = random_floats(kChannels * kChannels * 9, 31);
  const Floats bias = random_floats(kChannels, 32), x = random_floats(kImages * kHeight * kWidth * kChannels, 33);
  const auto index = [](int64_t image, int64_t row, int64_t column, int64_t channel) {
    return static_cast<size_t>(((image * kHeight + row) * kWidth + column) * kChannels + channel);
  };
  const auto convolved = [&](const Doubles& in, const Floats& weight) {
    Doubles out(in.size());
    for (int64_t image = 0; image < kImages; ++image)
      for (int64_t row = 0; row < kHeight; ++row)
        for (int64_t column = 0; column < kWidth; ++column)
          for (int64_t o = 0; o < kChannels; ++o) {
            double sum = bias[static_cast<size_t>(o)];
            for (int64_t i = 0; i < kChannels; ++i)
              for (int64_t tap = 0; tap < 9; ++tap) {
                const int64_t y = row + tap / 3 - 1, z = column + tap % 3 - 1;
                if (y >= 0 && y < kHeight && z >= 0 && z < kWidth)
                  sum += in[index(image, y, z, i)] * weight[static_cast<size_t>((o * kChannels + i) * 9 + tap)];
              }
            out[index(image, row, column, o)] = sum;
          }
    return out;
  };
  Doubles hidden = convolved(Doubles(x.begin(), x.end()), first);
  for (double& h : hidden) h = std::max(0.0, h);
  Doubles want = convolved(hidden, second);
  for (size_t i = 0; i < want.size(); ++i) want[i] = std::max(0.0, want[i] + x[i]);

  std::vector<engine::ConvStep> steps(2);
  for (engine::ConvStep& step : steps) {
    step.conv = cpu::PackedConv((&step == steps.data() ? first : second).data(), bias.data(), kChannels, kChannels, 3,
                                WeightType::fp32);
    step.kernel = 3, step.relu = true;
  }
  steps[0].to = steps[1].from = engine::ConvBuffer::hidden;
  steps[1].has_residual = true;
  const engine::ConvChain chain(std::move(steps));
  const engine::ConvChain::Map map{kHeight, kWidth, kChannels};
  EXPECT_EQ(chain.output(map).positions(), kHeight * kWidth);
  testing::at_every_level([&](cpu::Threads& threads) {
    Floats y(x.size());
    chain.run(threads, x.data(), y.data(), kImages, map);
    expect_close(y, want, 1e-3);
  });
}

}  // namespace sparsight::engine_test
