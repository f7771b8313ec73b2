// The counts of the specification of pMoE's networks: parameters, and multiply-adds of an image's forward pass.
#include "sparsight/models/wide_resnet.h"

#include <gtest/gtest.h>

#include "sparsight/models/model_cost.h"

namespace sparsight::wide_resnet_cost_test {

void expect_cost(const std::vector<PartCost>& parts, int64_t parameters, int64_t multiply_adds) {
  EXPECT_EQ(total(parts).parameters, parameters);
  EXPECT_EQ(total(parts).multiply_adds, multiply_adds);
}

Cost part(const std::vector<PartCost>& parts, const std::string& name) {
  for (const PartCost& p : parts)
    if (p.part == name) return p.cost;
  ADD_FAILURE() << "no part " << name;
  return {};
}

// For images of `side` pixels; a head of one number is that of two classes.
struct Network {
  Json config;
  int64_t side = 64, outputs = 1;
};

std::vector<PartCost> wide_resnet_cost(const Network& net) {
  return model_cost(net.config, {3, net.side, net.side, net.outputs == 1 ? 2 : net.outputs});
}

Network wrn(int64_t side, int64_t outputs) {
  return {{{"model", {{"name", "wide_resnet"}}},
           {"moe", Json::object()},
           {"losses", Json::object()},
           {"experts", {{"name", "norm_conv"}, {"channels", 640}}},
           {"router", {{"name", "patch_choice"}}}},
          side,
          outputs};
}

Network routed(Network net, int64_t experts, int64_t taken, int64_t patch, int64_t kernel, bool gathered) {
  net.config["moe"] = {{"blocks", {-1}}, {"experts", experts}};
  net.config["model"]["patch"] = patch;
  net.config["router"]["patches"] = taken;
  net.config["experts"].update({{"kernel", kernel}, {"path", gathered ? "gathered" : "dense"}});
  return net;
}

Network celeba(int64_t outputs, bool gathered) { return routed(wrn(64, outputs), 8, 2, 4, 3, gathered); }

Network cifar(int64_t outputs, bool gathered) { return routed(wrn(32, outputs), 4, 16, 1, 1, gathered); }

TEST(WideResnetCost, P26_CountsTheDenseNetwork) {
  expect_cost(wide_resnet_cost(wrn(64, 1)), 7432961, 3986358912);
  expect_cost(wide_resnet_cost(wrn(64, 4)), 7434884, 3986360832);
  expect_cost(wide_resnet_cost(wrn(32, 10)), 7438730, 996595968);
  expect_cost(wide_resnet_cost(wrn(32, 4)), 7434884, 996592128);
}

TEST(WideResnetCost, P27_P30_CountsRoutedPatchesOfFaces) {
  expect_cost(wide_resnet_cost(celeba(1, false)), 7318401, 3935240832);
  expect_cost(wide_resnet_cost(celeba(4, false)), 7320324, 3935242752);
  expect_cost(wide_resnet_cost(celeba(1, true)), 7318401, 3109487232);
  expect_cost(wide_resnet_cost(celeba(4, true)), 7320324, 3109489152);
  const auto parts = wide_resnet_cost(celeba(1, true));
  EXPECT_EQ(part(parts, "groups.2.0.moe.router").parameters, 81920);
  // Convolutions 3,687,040, as many as the one that they replace, and 8 batch norms of 640 channels.
  EXPECT_EQ(part(parts, "groups.2.0.moe.experts").parameters, 3687040 + 8 * 2 * 640);
  EXPECT_EQ(part(wide_resnet_cost(wrn(64, 1)), "groups.2.0.conv2").parameters, 3687040);
}

TEST(WideResnetCost, P28_P30_CountsRoutedPixelsOfSmallPictures) {
  expect_cost(wide_resnet_cost(cifar(10, false)), 3962890, 773937408);
  expect_cost(wide_resnet_cost(cifar(4, false)), 3959044, 773933568);
  expect_cost(wide_resnet_cost(cifar(10, true)), 3962890, 754276608);
  expect_cost(wide_resnet_cost(cifar(4, true)), 3959044, 754272768);
  const auto parts = wide_resnet_cost(cifar(10, true));
  EXPECT_EQ(part(parts, "groups.2.0.moe.router").parameters, 2560);
  EXPECT_EQ(part(parts, "groups.2.0.moe.experts").parameters, 410240 + 4 * 2 * 640);
}

// Figures 17 and 18.
TEST(WideResnetCost, P26_NamesTheShapesOfTheMaps) {
  const auto shape = [](const std::vector<PartCost>& parts, const std::string& name) {
    for (const PartCost& p : parts)
      if (p.part == name) return p.output;
    return std::string("none");
  };
  const auto dense = wide_resnet_cost(wrn(64, 1)), routed = wide_resnet_cost(cifar(10, false));
  EXPECT_EQ(shape(dense, "stem"), "16x64x64");
  EXPECT_EQ(shape(dense, "groups.0.0.conv1"), "160x64x64");
  EXPECT_EQ(shape(dense, "groups.0.0.shortcut"), "160x64x64");
  EXPECT_EQ(shape(dense, "groups.1.0.conv2"), "320x32x32");
  EXPECT_EQ(shape(dense, "groups.2.0.conv2"), "640x16x16");
  EXPECT_EQ(shape(dense, "head"), "1");
  EXPECT_EQ(shape(routed, "groups.2.0.conv1"), "640x8x8");
  EXPECT_EQ(shape(routed, "groups.2.0.moe.experts"), "640x8x8");
  EXPECT_EQ(shape(routed, "groups.2.0.shortcut"), "none");
}

// Two shared experts of 3 x 3 convolutions from 640 channels to 320, at 16 x 16 positions; and their batch norms.
TEST(WideResnetCost, CountsSharedExperts) {
  Network net = celeba(1, true);
  net.config["moe"]["shared"] = 2;
  const Cost shared = part(wide_resnet_cost(net), "groups.2.0.moe.shared");
  EXPECT_EQ(shared.multiply_adds, 2 * 256 * 9 * 640 * 320);
  EXPECT_EQ(shared.parameters, 2 * (9 * 640 * 320 + 320 + 2 * 640));
}

}  // namespace sparsight::wide_resnet_cost_test
