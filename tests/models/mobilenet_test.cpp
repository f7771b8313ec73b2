// MobileNetV2: channels, counts and names of parameters, cost, stems, frozen batch norm, head.
#include "sparsight/models/mobilenet.h"

#include <gtest/gtest.h>

#include "sparsight/io/weights.h"
#include "sparsight/models/adapt_weights.h"
#include "sparsight/nn/parameter_memory.h"
#include "tests/support/cost_coverage.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::mobilenet_test {
namespace {

std::shared_ptr<Mobilenet> small_mobilenet(MobilenetOptions options, int64_t side = 32) {
  options.width = 0.25;
  auto model = std::make_shared<Mobilenet>(options, ModelContext{{3, side, side, 5}, default_moe_spec()});
  initialize(*model, 1);
  return model;
}

at::Tensor some_images(int64_t count, int64_t side = 32) {
  return test::random_tensor({count, 3, side, side}, 3, torch::kFloat);
}

struct Counts {
  int64_t parameters = 0, multiply_adds = 0;
};

// Table 2 of the paper at 224 pixels and 1000 classes, written out: input size, t, c, n, s; channels that are not a
// multiple of eight are rounded.
Counts of_table(double width, const std::function<int64_t(int64_t)>& rounded) {
  struct Row {
    int64_t side, t, c, n, s;
  };
  Counts all;
  const auto conv = [&](int64_t weights, int64_t channels, int64_t side) {  // and its batch norm
    all.parameters += weights + 2 * channels;
    all.multiply_adds += weights * side * side;
  };
  int64_t in = rounded(32);
  conv(27 * in, in, 112);
  for (const Row& row : {Row{112, 1, 16, 1, 1},
                         {112, 6, 24, 2, 2},
                         {56, 6, 32, 3, 2},
                         {28, 6, 64, 4, 2},
                         {14, 6, 96, 3, 1},
                         {14, 6, 160, 3, 2},
                         {7, 6, 320, 1, 1}})
    for (int64_t i = 0; i < row.n; ++i) {
      const int64_t out = rounded(row.c), hidden = row.t * in, after = row.side / row.s,
                    before = i == 0 ? row.side : after;
      if (row.t > 1) conv(in * hidden, hidden, before);
      conv(9 * hidden, hidden, after);
      conv(hidden * out, out, after);
      in = out;
    }
  const int64_t last = width > 1 ? rounded(1280) : 1280;
  conv(in * last, last, 7);
  all.parameters += last * 1000 + 1000;
  all.multiply_adds += last * 1000;
  return all;
}

}  // namespace

// 0.75 * 24 = 18 is nearer to 16, but 16 < 0.9 * 18 = 16.2, so 24; 0.5 * 24 = 12 lies between 8 and 16: 16; 0.35 * 32
// = 11.2: 8 < 10.08, so 16; 0.1 * 16 = 1.6: at least 8.
TEST(Mobilenet, ChannelsAreMultiplesOfEight) {
  EXPECT_EQ(round_to_eights(18), 24);
  EXPECT_EQ(round_to_eights(12), 16);
  EXPECT_EQ(round_to_eights(0.35 * 32), 16);
  EXPECT_EQ(round_to_eights(1.6), 8);
  EXPECT_EQ(round_to_eights(44.8), 48);
  EXPECT_EQ(round_to_eights(1280), 1280);
}

// 3,504,872 parameters and 300,774,272 multiply-adds are torchvision's numbers of its mobilenet_v2, 3.4 M and 300 M in
// table 4 of the paper; its authors' list of models has 209 M and 97 M multiply-adds for the widths 0.75 and 0.5.
TEST(Mobilenet, HasThePublishedNumbersOfParametersAndMultiplyAdds) {
  const auto expect = [](double width, const Counts& counts) {
    const MetaParameters without_memory;
    const Mobilenet model({.width = width}, ModelContext{{3, 224, 224, 1000}, default_moe_spec()});
    EXPECT_EQ(test::parameter_count(model), counts.parameters) << width;
    const Cost cost = total(model.cost({}));
    EXPECT_EQ(cost.parameters, counts.parameters) << width;
    EXPECT_EQ(cost.multiply_adds, counts.multiply_adds) << width;
  };
  const Counts whole = of_table(1, [](int64_t c) { return c; });
  EXPECT_EQ(whole.parameters, 3504872);
  EXPECT_EQ(whole.multiply_adds, 300774272);
  expect(1, whole);
  // Channels of the widths, by the rule above: 32, 16, 24, 32, 64, 96, 160, 320.
  const auto listed = [](std::map<int64_t, int64_t> channels) {
    return [channels](int64_t c) { return channels.at(c); };
  };
  const Counts three_quarters =
      of_table(0.75, listed({{32, 24}, {16, 16}, {24, 24}, {64, 48}, {96, 72}, {160, 120}, {320, 240}}));
  EXPECT_EQ(three_quarters.multiply_adds / 1000000, 209);
  expect(0.75, three_quarters);
  const Counts half = of_table(0.5, listed({{32, 16}, {16, 8}, {24, 16}, {64, 32}, {96, 48}, {160, 80}, {320, 160}}));
  EXPECT_EQ(half.multiply_adds / 1000000, 97);
  expect(0.5, half);
  expect(
      1.4,
      of_table(1.4, listed({{32, 48}, {16, 24}, {24, 32}, {64, 88}, {96, 136}, {160, 224}, {320, 448}, {1280, 1792}})));
}

TEST(Mobilenet, NamesItsWeightsAsTorchvision) {
  const MetaParameters without_memory;
  const Mobilenet model({}, ModelContext{{3, 224, 224, 1000}, default_moe_spec()});
  const auto parameters = model.named_parameters();
  using Sizes = std::vector<int64_t>;
  const auto sizes = [&](const char* name) {
    return parameters.contains(name) ? parameters[name].sizes().vec() : Sizes{};
  };
  EXPECT_EQ(parameters.size(), 158u);  // of torchvision's: 52 convolutions, 52 norms of two, head of two
  EXPECT_EQ(sizes("features.0.0.weight"), (Sizes{32, 3, 3, 3}));
  EXPECT_EQ(sizes("features.1.conv.0.0.weight"), (Sizes{32, 1, 3, 3}));
  EXPECT_EQ(sizes("features.1.conv.1.weight"), (Sizes{16, 32, 1, 1}));
  EXPECT_EQ(sizes("features.17.conv.2.weight"), (Sizes{320, 960, 1, 1}));
  EXPECT_EQ(sizes("features.17.conv.3.bias"), (Sizes{320}));
  EXPECT_EQ(sizes("features.18.0.weight"), (Sizes{1280, 320, 1, 1}));
  EXPECT_EQ(sizes("classifier.1.weight"), (Sizes{1000, 1280}));
  EXPECT_TRUE(model.named_buffers().contains("features.2.conv.1.1.running_var"));
}

TEST(Mobilenet, TheStemOfSmallImagesKeepsTheResolution) {
  const auto side = [](const std::string& stem, const std::string& tap) {
    ModelInput input{some_images(1)};
    input.taps = {tap};
    return small_mobilenet({.stem = stem})->forward(input).taps.at(tap).size(2);
  };
  for (const auto& [tap, large, small] : {std::tuple{"features.0", 16, 32},
                                          {"features.1", 16, 32},
                                          {"features.2", 8, 32},
                                          {"features.4", 4, 16},
                                          {"features.7", 2, 8},
                                          {"features.14", 1, 4},
                                          {"features.18", 1, 4}}) {
    EXPECT_EQ(side("imagenet", tap), large) << tap;
    EXPECT_EQ(side("cifar", tap), small) << tap;
  }
}

TEST(Mobilenet, FrozenBatchNormTrainsAsItEvaluates) {
  const auto model = small_mobilenet({.frozen_batch_norm = true, .dropout = 0});
  const at::Tensor x = some_images(4), before = model->named_buffers()["features.3.conv.3.running_mean"].clone();
  EXPECT_TRUE(torch::equal(model->forward({x, ForwardMode::training()}).logits, model->forward({x}).logits));
  EXPECT_TRUE(torch::equal(model->named_buffers()["features.3.conv.3.running_mean"], before));
  const auto moving = small_mobilenet({.dropout = 0});
  moving->forward({x, ForwardMode::training()});
  EXPECT_FALSE(torch::equal(moving->named_buffers()["features.3.conv.3.running_mean"], before));
}

// Weights of colour images in a model of grey ones: the kernels' sums.
TEST(Mobilenet, AGreyImageGivesTheLogitsOfTheColourModel) {
  const auto colour = small_mobilenet({});
  Mobilenet grey({.width = 0.25}, ModelContext{{1, 32, 32, 5}, default_moe_spec()});
  LoadOptions options;
  options.adapt = weight_adapter(grey);
  const LoadReport report = load_weights(grey, named_weights(*colour), options);
  ASSERT_EQ(report.adapted.size(), 1u) << describe(report);
  EXPECT_TRUE(report.adapted[0].starts_with("features.0.0.weight")) << report.adapted[0];
  const at::Tensor x = some_images(2).narrow(1, 0, 1), want = colour->forward({x.expand({2, 3, 32, 32})}).features;
  EXPECT_TRUE(test::near(grey.forward({x}).features, want, 1e-5 * want.abs().max().item<double>()));
}

// torchvision: normal_(0, 0.01) and zeros; 1280 * 1000 samples.
TEST(Mobilenet, TheHeadStartsAsTorchvisions) {
  MobilenetHead head(1280, 1000);
  initialize(*head, 1);
  EXPECT_NEAR(head->weight.std().item<double>(), 0.01, 1e-4);
  EXPECT_EQ(head->bias.abs().max().item<double>(), 0);
}

TEST(Mobilenet, DropoutIsOfTheFeatures) {
  const auto model = small_mobilenet({.frozen_batch_norm = true, .dropout = 0.5});
  const at::Tensor x = some_images(4), plain = model->forward({x}).features;
  const ModelOutput out = model->forward({x, ForwardMode::training(), {1, 2}});
  const at::Tensor dropped = out.features == 0;
  EXPECT_TRUE(test::near(out.features, at::where(dropped, at::zeros_like(plain), 2 * plain), 1e-5));
  const at::Tensor positive = plain > 0;
  const double share = (dropped & positive).sum().item<double>() / positive.sum().item<double>();
  EXPECT_NEAR(share, 0.5, 0.1);
}

}  // namespace sparsight::mobilenet_test
