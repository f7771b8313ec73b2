// The FLOPs that papers print for their vision transformers, from the settings of the models.
#include <cmath>

#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/models/vit.h"
#include "sparsight/train/run_config.h"

namespace sparsight::published_flops_test {
namespace {

constexpr ImageShape kImagenet{3, 224, 224, 1000};

struct Network {
  std::vector<std::string> settings;
  ImageShape image = kImagenet;
  int64_t batch = 1;
};

std::vector<PartCost> network_parts(const Network& network, const std::string& convention) {
  Config config = Config::from_text("", "");
  config.set("model.name=vit");
  for (const std::string& setting : network.settings) config.set(setting);
  return model_cost(resolve(config, config_sections()), network.image, {cost_convention(convention), network.batch});
}

// In units of 10^power.
double count_flops(const Network& network, const std::string& convention, double unit) {
  return static_cast<double>(flops(total(network_parts(network, convention)), cost_convention(convention))) / unit;
}

Network with(Network network, const std::vector<std::string>& more) {
  network.settings.insert(network.settings.end(), more.begin(), more.end());
  return network;
}

// Mobile V-MoE: ten experts in the last two blocks, one of them for each image, and one router for both. F3 counts no
// normalisation of the class token that it sees.
Network mobile(const std::string& size) { return {{"model.size=" + size, "model.patch=32"}}; }
const std::vector<std::string> kMobileMoe{"moe.blocks=[-2, -1]", "moe.experts=10",   "router.name=per_image",
                                          "router.k=1",          "router.norm=none", "router.scope=model"};

// GMoE's ViT-S/16.
Network gmoe(const std::vector<std::string>& more = {}) {
  return with({{"model.size=small", "model.patch=16"}, kImagenet, /*batch=*/32}, more);
}
const std::vector<std::string> kGmoe{"moe.blocks=[-2, -1]", "moe.experts=6",
                                     "router.name=cosine",  "router.width=256",
                                     "capacity.factor=1.5", "capacity.rounding=floor_per_choice"};

// What V-MoE was pretrained with: 18,291 classes and pre-logits.
Network upstream(const std::string& size) {
  return {{"model.size=" + size, "model.patch=32", "model.pre_logits=true"}, {3, 224, 224, 18291}};
}

Network vmoe(Network network, int64_t experts) {
  return with(std::move(network), {"moe.blocks=[1, 3, 5, 7, 9, 11]", cat("moe.experts=", experts), "router.k=2",
                                   "capacity.factor=1.05", "capacity.multiple=4", "capacity.group=8"});
}

}  // namespace

// Specification 6.3: F1 and F2 to 0.01 M, F3 to 0.001 M, and the integer that the paper prints (618 where its source
// has the slip 1618).
TEST(PublishedFlops, M39_TheTwelveSizesOfMobileVMoe) {
  const struct {
    std::string size;
    double paper, f1, f2, f3, f3_moe;
  } rows[] = {{"12x384", 2297, 1142.91, 2285.82, 2297.312, 2297.358},
              {"9x384", 1752, 871.73, 1743.46, 1752.121, 1752.167},
              {"6x384", 1207, 600.55, 1201.10, 1206.929, 1206.975},
              {"12x192", 618, 306.03, 612.07, 617.815, 617.838},
              {"9x192", 478, 236.80, 473.60, 477.930, 477.953},
              {"6x192", 338, 167.56, 335.13, 338.044, 338.067},
              {"12x96", 176, 86.66, 173.32, 176.377, 176.389},
              {"9x96", 140, 68.63, 137.27, 139.567, 139.579},
              {"6x96", 103, 50.60, 101.21, 102.757, 102.769},
              {"12x64", 88, 43.03, 86.06, 88.094, 88.102},
              {"9x64", 71, 34.70, 69.39, 70.927, 70.935},
              {"6x64", 54, 26.36, 52.73, 53.760, 53.767}};
  for (const auto& row : rows) {
    const Network dense = mobile(row.size), moe = with(dense, kMobileMoe);
    EXPECT_NEAR(count_flops(dense, "multiply_adds", 1e6), row.f1, 0.00501) << row.size;
    EXPECT_NEAR(count_flops(dense, "flops", 1e6), row.f2, 0.00501) << row.size;
    EXPECT_NEAR(count_flops(dense, "flops_elementwise", 1e6), row.f3, 0.000501) << row.size;
    EXPECT_EQ(std::round(count_flops(dense, "flops_elementwise", 1e6)), row.paper) << row.size;
    EXPECT_EQ(std::round(count_flops(moe, "flops_elementwise", 1e6)), row.paper) << row.size;
    EXPECT_NEAR(count_flops(moe, "flops_elementwise", 1e6), row.f3_moe, 0.000501) << row.size;
  }
}

// At patch 16: the numbers under the table.
TEST(PublishedFlops, M39_PatchesOfSixteen) {
  const Network tiny{{"model.size=12x192", "model.patch=16"}}, small{{"model.size=12x384", "model.patch=16"}};
  EXPECT_NEAR(count_flops(tiny, "multiply_adds", 1e6), 1253.68, 0.00501);
  EXPECT_NEAR(count_flops(tiny, "flops_elementwise", 1e6), 2534.17, 0.00501);
  EXPECT_NEAR(count_flops(small, "multiply_adds", 1e6), 4598.88, 0.00501);
}

// Specification 6.4: parameters in all, and those that an image uses. With a router for each layer there are D E more.
TEST(PublishedFlops, M39_ParametersOfMobileVMoe) {
  const struct {
    std::string size;
    int64_t width, dense, all, active;
  } rows[] = {{"12x384", 384, 22878952, 44151016, 22882792}, {"9x384", 384, 17555560, 38827624, 17559400},
              {"6x384", 384, 12232168, 33504232, 12236008},  {"12x192", 192, 6131560, 11459176, 6133480},
              {"9x192", 192, 4796968, 10124584, 4798888},    {"6x192", 192, 3462376, 8789992, 3464296},
              {"12x96", 96, 1739176, 3075880, 1740136},      {"9x96", 96, 1403656, 2740360, 1404616},
              {"6x96", 96, 1068136, 2404840, 1069096},       {"12x64", 64, 864872, 1461096, 865512},
              {"9x64", 64, 714920, 1311144, 715560},         {"6x64", 64, 564968, 1161192, 565608}};
  for (const auto& row : rows) {
    const Cost dense = total(network_parts(mobile(row.size), "flops")),
               moe = total(network_parts(with(mobile(row.size), kMobileMoe), "flops"));
    EXPECT_EQ(dense.parameters, row.dense) << row.size;
    EXPECT_EQ(moe.parameters, row.all) << row.size;
    EXPECT_EQ(moe.active_parameters, row.active) << row.size;
    EXPECT_EQ(moe.weight_bytes, 4 * moe.active_parameters) << row.size;  // k expert pairs are read
    const Network by_layer = with(with(mobile(row.size), kMobileMoe), {"router.scope=layer"});
    EXPECT_EQ(total(network_parts(by_layer, "flops")).parameters, row.all + 10 * row.width) << row.size;
  }
}

TEST(PublishedFlops, G55_TheCostOfGmoe) {
  const auto giga = [](const Network& network, const std::string& convention) {
    return count_flops(network, convention, 1e9);
  };
  const Network one = gmoe(kGmoe), two = with(one, {"router.k=2"});
  const Network every_two = with(one, {"moe.blocks=[1, 3, 5, 7, 9, 11]"});
  EXPECT_NEAR(giga(gmoe(), "multiply_adds"), 4.599, 0.000501);
  EXPECT_NEAR(giga(one, "multiply_adds"), 4.638, 0.000501);
  EXPECT_NEAR(giga(one, "multiply_adds_padded"), 4.871, 0.000501);
  EXPECT_NEAR(giga(two, "multiply_adds"), 5.103, 0.000501);
  EXPECT_NEAR(giga(every_two, "multiply_adds"), 4.717, 0.000501);
  EXPECT_NEAR(giga(every_two, "multiply_adds_padded"), 5.414, 0.000501);
}

TEST(PublishedFlops, A8_TheCostOfAdversarialRobustness) {
  const auto giga = [](const Network& network) { return count_flops(network, "flops_padded", 1e9); };
  EXPECT_NEAR(giga(upstream("base")), 8.846, 0.000501);
  EXPECT_NEAR(giga(vmoe(upstream("base"), 32)), 12.371, 0.000501);
  EXPECT_NEAR(giga(upstream("base++")), 17.806, 0.000501);
  EXPECT_NEAR(count_flops(vmoe(upstream("base"), 32), "flops", 1e9), 11.692, 0.000501);  // without padding
  // Two experts have buffers of 420 rows for a group's 400 tokens.
  EXPECT_NEAR(giga(vmoe(upstream("base"), 2)), 11.96, 0.00501);
  // Fine-tuned at 384 pixels, with a head of 1000 classes and nothing before it.
  const auto fine_tuned = [](const std::string& size) {
    return Network{{"model.size=" + size, "model.patch=32"}, {3, 384, 384, 1000}};
  };
  EXPECT_NEAR(giga(fine_tuned("base")), 26.09, 0.00501);
  EXPECT_NEAR(giga(vmoe(fine_tuned("base"), 32)), 36.04, 0.00501);
  EXPECT_NEAR(giga(fine_tuned("base++")), 52.44, 0.00501);
}

// 12.371 / 11.96, section 3.3 of the specification: the drift of a capacity that is rounded up to a multiple of 4.
TEST(PublishedFlops, A57_ThirtyTwoExpertsTakeAFewPercentMoreThanTwo) {
  const auto giga = [](int64_t experts) { return count_flops(vmoe(upstream("base"), experts), "flops_padded", 1e9); };
  EXPECT_NEAR(giga(32) / giga(2), 1.034, 0.0005);
  for (const int64_t experts : {4, 8, 16}) {
    EXPECT_GE(giga(experts), giga(2));
    EXPECT_LE(giga(experts), giga(32));
  }
}

TEST(PublishedFlops, A9_SizesAndPlacesOfTheMoeLayers) {
  const struct {
    const char* size;
    int64_t width, depth, hidden, heads;
  } rows[] = {{"8x512", 512, 8, 2048, 8},    {"base", 768, 12, 3072, 12},    {"base+", 832, 15, 3328, 13},
              {"base++", 896, 18, 3584, 14}, {"base+++", 960, 21, 3840, 15}, {"large", 1024, 24, 4096, 16},
              {"huge", 1280, 32, 5120, 16}};
  for (const auto& row : rows) {
    VitOptions options;
    options.size = row.size;
    options.patch = 32;
    options = with_preset(options, kImagenet);
    EXPECT_EQ(options.width, row.width) << row.size;
    EXPECT_EQ(options.depth, row.depth) << row.size;
    EXPECT_EQ(options.mlp_hidden(), row.hidden) << row.size;
    EXPECT_EQ(options.heads, row.heads) << row.size;
  }
  std::vector<std::string> layers;
  for (const PartCost& part : network_parts(vmoe({{"model.size=base", "model.patch=32"}}, 32), "flops"))
    if (part.part.ends_with(".experts")) layers.push_back(part.part);
  std::vector<std::string> expected;
  for (int64_t block = 1; block < 12; block += 2) expected.push_back(cat("blocks.", block, ".mlp.experts"));
  EXPECT_EQ(layers, expected);
}

TEST(PublishedFlops, A8_ParametersByNumberOfExperts) {
  const auto millions = [](const Network& network) {
    return static_cast<double>(total(network_parts(network, "flops")).parameters) / 1e6;
  };
  const Network base{{"model.size=base", "model.patch=32"}};
  EXPECT_NEAR(millions(base), 88.224, 0.000501);
  EXPECT_NEAR(millions({{"model.size=base++", "model.patch=32"}}), 177.316, 0.000501);
  EXPECT_NEAR(millions(vmoe(base, 2)), 116.568, 0.000501);
  EXPECT_NEAR(millions(vmoe(base, 4)), 173.246, 0.000501);
  EXPECT_NEAR(millions(vmoe(base, 8)), 286.603, 0.000501);
  EXPECT_NEAR(millions(vmoe(base, 16)), 513.317, 0.000501);
  EXPECT_NEAR(millions(vmoe(base, 32)), 966.744, 0.000501);
}

}  // namespace sparsight::published_flops_test
