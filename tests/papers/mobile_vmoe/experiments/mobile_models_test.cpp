// The models of the experiments: their settings, their costs against the formulas of the paper, and what is measured.
#include "sparsight/papers/mobile_vmoe/experiments/mobile_models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/papers/mobile_vmoe/experiments/class_groups.h"
#include "sparsight/papers/mobile_vmoe/experiments/measure_model.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace sparsight::mobile_vmoe::mobile_models_test {
namespace {

FigureRun synthetic() { return {Scale::small, "", "nowhere"}; }

MobileModel model(const std::string& routing, int64_t k = 1) {
  MobileModel model = mobile_model(mobile_options(Scale::small), routing);
  model.k = k;
  return model;
}

// The paper's transformer, without convolutions before it; patches of 4 pixels.
MobileCost cost(const MobileModel& model) {
  MobileOptions options = mobile_options(Scale::small);
  options.stem = {}, options.patch = 4, options.pool = "class";
  return mobile_cost(model, options, synthetic());
}

Json sections(const MobileModel& model) {
  return training_sections(model, mobile_options(Scale::small), synthetic(), 3);
}

TEST(MobileModels, SizesAreBlocksTimesWidthWithThePapersHeads) {
  EXPECT_EQ(read_size("12x384").depth, 12);
  EXPECT_EQ(read_size("12x384").width, 384);
  for (const auto& [width, heads] : std::map<int64_t, int64_t>{{384, 6}, {192, 3}, {96, 3}, {64, 2}, {16, 1}})
    EXPECT_EQ(count_heads(width), heads);
  for (const char* text :
       {"", "6", "x64", "6x", "6x64x", "0x64", "6 x 64", "101x64", "-6x64", "6x99999999999999999999"})
    EXPECT_NE(testing::error_text<UsageError>([&] { read_size(text); }).find("blocks x width"), std::string::npos)
        << text;
}

// Per layer with width D = 64, N = 65 tokens and hidden 4 D: 46 N D + 4 H N^2 elementwise, 12 N D^2 + 2 N^2 D
// multiply-adds; once: patches n 3 P^2 D, head D C, n D + 8 N D + C elementwise. Six layers, P = 4, n = 64, H = 2,
// C = 50:
//   F1 = 6 (12*65*4096 + 2*4225*64) + 64*48*64 + 64*50 = 6 (3,194,880 + 540,800) + 196,608 + 3,200 = 22,613,888
//   elementwise = 6 (46*65*64 + 8*4225) + 64*64 + 8*65*64 + 50 = 6 (191,360 + 33,800) + 4,096 + 33,280 + 50 = 1,388,386
//   F3 = 2 F1 + elementwise = 46,616,162
TEST(MobileModels, DenseOperationsAreThoseOfTheFormula) { EXPECT_NEAR(cost(model(kDense)).mflop, 46.616162, 1e-9); }

// One MLP: m = 2*64*256 + 256 + 64 = 33,088. With E = 10, L = 2: total = dense + L (E - 1) m + D E, and an image with k
// experts uses dense + L (k - 1) m + D E.
TEST(MobileModels, ParametersAreThoseOfTheFormula) {
  const double dense = cost(model(kDense)).parameters, m = 33.088, router = 0.64;
  for (const int64_t k : {1, 2, 5}) {
    const MobileCost moe = cost(model(kSemantic, k));
    EXPECT_NEAR(moe.parameters, dense + 2 * 9 * m + router, 1e-9);
    EXPECT_NEAR(moe.active, dense + 2 * static_cast<double>(k - 1) * m + router, 1e-9);
    EXPECT_NEAR(moe.expert, 2 * m, 1e-9);
    EXPECT_NEAR(moe.touched(9.5, k), dense + 2 * 8.5 * m + router, 1e-9);
  }
  EXPECT_NEAR(cost(model(kTokens, 2)).parameters, dense + 2 * 9 * m + 2 * router, 1e-9);  // a router in each layer
  EXPECT_EQ(cost(model(kSemantic, 10)).expert, 0);                                        // none is left out
}

// M40: hidden 4 k D in the last L blocks alone. An expert beyond the first costs 2 * 8 N D^2 operations, and
// elementwise 26 N D; the wider MLP 24 N D elementwise, one bias and five operations of GELU for each of 4 D channels.
TEST(MobileModels, M40_TheDenseCounterpartCostsAsMuchAsTheExperts) {
  const double dense = cost(model(kDense)).mflop;
  const double wide = cost(model(kDense, 3)).mflop, moe = cost(model(kSemantic, 3)).mflop;
  const double products = 2 * 2 * 2 * 8 * 65 * 4096 / 1e6;
  EXPECT_NEAR(wide - dense, products + 2 * 2 * 24 * 65 * 64 / 1e6, 1e-9);
  EXPECT_LT(std::abs(moe - wide) / wide, 0.005);
  const Json layer = sections(model(kDense, 3)).at("model").at("layer");
  EXPECT_EQ(layer, (Json::array({{{"blocks", {-2, -1}}, {"hidden", 768}}})));
}

// Scale small: stages of one residual block of 16, 32 and 64 channels, with 27*16 + 9*16*16 + 3*16 = 2,784, 9*16*32 +
// 9*32*32 + 16*32 = 14,336 and 57,344 weights and three norms each, then a projection of 64 channels instead of 48
// values to each of 16 tokens instead of 64, which are pooled without a class token and its position.
TEST(MobileModels, ScaleSmallHasConvolutionsBeforeTheTransformer) {
  const MobileModel dense = model(kDense);
  const MobileCost small = mobile_cost(dense, mobile_options(Scale::small), synthetic());
  EXPECT_NEAR(small.parameters - cost(dense).parameters,
              (2784 + 14336 + 57344 + 96 + 192 + 384 + (64 - 48) * 64 - 48 * 64 - 2 * 64) / 1e3, 1e-9);
  EXPECT_EQ(sections(dense).at("model").at("stem_norm"), "batch");
  EXPECT_EQ(sections(dense).at("model").at("pool"), "mean");
}

TEST(MobileModels, RoutingsHaveTheLossesAndTheNoiseOfThePaper) {
  const Json semantic = sections(model(kSemantic)), images = sections(model(kImages)),
             tokens = sections(model(kTokens));
  EXPECT_EQ(semantic.at("losses"), (Json{{"superclass", 0.3}}));
  EXPECT_FALSE(semantic.at("router").contains("noise"));
  EXPECT_EQ(semantic.at("moe"), (Json{{"blocks", {-2, -1}}, {"experts", 10}}));
  EXPECT_EQ(images.at("losses"), (Json{{"superclass", 0.0}, {"vmoe_importance", 0.005}, {"vmoe_load", 0.005}}));
  EXPECT_EQ(images.at("router").at("noise"), 1.0);
  EXPECT_EQ(tokens.at("router").at("name"), "softmax_topk");
  EXPECT_EQ(tokens.at("losses"), (Json{{"vmoe_importance", 0.005}, {"vmoe_load", 0.005}}));
  EXPECT_FALSE(sections(model(kDense)).contains("moe"));
  MobileModel unguided = model(kSemantic);
  unguided.lambda = 0;
  EXPECT_EQ(sections(unguided).at("losses"), (Json{{"superclass", 0.0}}));
}

// Two routers of four experts. Loads 2, 2, 0, 0 and 1, 1, 1, 1 of 4: entropies ln 2 / ln 4 = 0.5 and 1.
TEST(MeasureModel, M42_AMeasurementHasEveryFieldOfTheRecord) {
  const auto layer = [](const std::vector<int64_t>& load, double mean, int64_t most) {
    return Json{{"load", load}, {"experts_per_image", mean}, {"experts_per_image_max", most}};
  };
  const Json test = {{"accuracy", 0.5},
                     {"images", 8},
                     {"router_accuracy", 0.75},
                     {"layers", {layer({2, 2, 0, 0}, 1.5, 2), layer({1, 1, 1, 1}, 2.5, 4)}}};
  MobileModel moe = model(kTokens);
  moe.experts = 4;
  const MobileCost cost{.mflop = 7, .parameters = 100, .active = 40, .expert = 20};
  const Json measured = model_measures(test, moe, cost);
  EXPECT_NEAR(measured.at("accuracy").get<double>(), 50, 1e-9);
  EXPECT_NEAR(measured.at("router_accuracy").get<double>(), 75, 1e-9);
  EXPECT_NEAR(measured.at("entropy").get<double>(), 0.75, 1e-9);
  EXPECT_NEAR(measured.at("busiest").get<double>(), 50, 1e-9);
  EXPECT_EQ(measured.at("unused"), 2);
  EXPECT_NEAR(measured.at("distinct").get<double>(), 2, 1e-9);
  EXPECT_EQ(measured.at("distinct_most"), 4);
  EXPECT_NEAR(measured.at("touched").get<double>(), 60, 1e-9);  // 40, and 2 - 1 experts of 20
  EXPECT_EQ(measured.at("parameters"), 100);
  EXPECT_EQ(measured.at("mflop"), 7);
  EXPECT_EQ(measured.at("usage"), (Json{{0.5, 0.5, 0.0, 0.0}, {0.25, 0.25, 0.25, 0.25}}));
}

TEST(MeasureModel, ADenseModelHasNoRouting) {
  const Json measured =
      model_measures({{"accuracy", 0.5}, {"images", 8}, {"layers", Json::array()}}, model(kDense), {.active = 40});
  EXPECT_EQ(measured.at("touched"), 40);
  for (const char* key : {"router_accuracy", "entropy", "busiest", "unused", "distinct", "distinct_most", "usage"})
    EXPECT_TRUE(measured.at(key).is_null()) << key;
}

TEST(ClassGroups, AreTheDatasOwnWhereTheNumberFitsAndRandomBySeed) {
  const MobileOptions options = mobile_options(Scale::small);
  EXPECT_EQ(groups_for(model(kSemantic), options, synthetic(), 5).section, (Json{{"source", "data"}}));
  EXPECT_EQ(groups_for(model(kRandom), options, synthetic(), 5).section,
            (Json{{"source", "random"}, {"sizes", "equal"}, {"seed", 5}}));
  EXPECT_TRUE(groups_for(model(kTokens), options, synthetic(), 5).section.is_null());
  EXPECT_TRUE(groups_for(model(kDense), options, synthetic(), 5).section.is_null());
}

// Digits that look alike: loops, strokes, curves, and 4 with 9.
TEST(ClassGroups, TheDigitsHaveAMap) {
  const auto map = read_superclass_map(test::source_path("configs/mobile_vmoe/mnist_groups.txt"));
  EXPECT_EQ(map, (std::vector<int64_t>{0, 1, 2, 2, 3, 2, 0, 1, 2, 3}));
}

// Eight classes in four groups; E = 2 and E = 3 come from the confusions of one dense model, which is trained once.
TEST(ClassGroups, OtherNumbersAreFoundFromTheConfusionsOfOneDenseModel) {
  const testing::TemporaryFolder folder;
  const FigureRun run{Scale::smoke, "", folder.path("run")};
  const MobileOptions options = mobile_options(Scale::smoke);
  for (const int64_t experts : {2, 3}) {
    const std::vector<int64_t> map = found_groups(experts, options, run);
    ASSERT_EQ(map.size(), 8u);
    EXPECT_EQ(std::set<int64_t>(map.begin(), map.end()).size(), static_cast<size_t>(experts));
    EXPECT_EQ(found_groups(experts, options, run), map);
  }
  int64_t weights = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("run/models")))
    weights += entry.path().extension() == ".safetensors";
  EXPECT_EQ(weights, 1);
}

}  // namespace
}  // namespace sparsight::mobile_vmoe::mobile_models_test
