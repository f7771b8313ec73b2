#include "sparsight/data/transforms/fit_to_data.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/data/transforms/pipeline.h"
#include "tests/support/errors.h"

namespace sparsight::fit_to_data_test {
namespace {

DataInfo images(int64_t channels, int64_t height, int64_t width) {
  DataInfo info;
  info.channels = channels;
  info.height = height;
  info.width = width;
  return info;
}

const Json kSteps = Json::parse(R"([{"op": "resize", "size": [0], "filter": "bicubic"},
                                    {"op": "center_crop", "size": 0},
                                    {"op": "rand_augment", "fill_color": [124, 116, 104]},
                                    {"op": "normalize", "preset": "imagenet"}])");

TEST(FitToData, ImagesOfOneSizeKeepTheirShorterSide) {
  const Json steps = fit_to_data(kSteps, images(3, 32, 40));
  EXPECT_EQ(steps[0]["size"].dump(), "[32]");
  EXPECT_EQ(steps[1]["size"], 32);
  EXPECT_EQ(steps[2], kSteps[2]);
  EXPECT_EQ(steps[3], kSteps[3]);
}

TEST(FitToData, PhotographsHaveImageNetsSizes) {
  const Json steps = fit_to_data(kSteps, images(3, 0, 0));
  EXPECT_EQ(steps[0]["size"].dump(), "[256]");
  EXPECT_EQ(steps[1]["size"], 224);
}

// (0.485 + 0.456 + 0.406) / 3 = 0.449, (0.229 + 0.224 + 0.225) / 3 = 0.226, (124 + 116 + 104) / 3 = 114.67
TEST(FitToData, GreyImagesHaveTheMeansOfTheColours) {
  const Json steps = fit_to_data(kSteps, images(1, 28, 28));
  EXPECT_EQ(steps[2]["fill_color"].dump(), "[115]");
  EXPECT_FALSE(steps[3].contains("preset"));
  EXPECT_NEAR(steps[3]["mean"][0].get<double>(), 0.449, 1e-12);
  EXPECT_NEAR(steps[3]["std"][0].get<double>(), 0.226, 1e-12);
}

TEST(FitToData, LeavesWhatIsSet) {
  const Json steps = Json::parse(R"([{"op": "resize", "size": [40]}, {"op": "random_crop", "size": 32, "padding": 4},
                                     {"op": "normalize", "mean": [0.5], "std": [0.25]}, {"op": "flip"}])");
  EXPECT_EQ(fit_to_data(steps, images(1, 28, 28)), steps);
  EXPECT_EQ(fit_to_data(Json::array(), images(3, 0, 0)), Json::array());
}

// Where nothing has fitted them: an image's own shorter side.
TEST(FitToData, SizesOfZeroFollowTheImage) {
  ViewRandom random(RandomStream(0, "test"));
  const auto run = [&](const char* steps, int64_t height, int64_t width) {
    return TransformPipeline(Json::parse(steps), "transforms.eval")(at::full({3, height, width}, 9, at::kByte), random);
  };
  EXPECT_EQ(run(R"([{"op": "resize", "size": [0]}])", 20, 30).sizes(), (at::IntArrayRef{3, 20, 30}));
  EXPECT_EQ(run(R"([{"op": "center_crop", "size": 0}])", 20, 30).sizes(), (at::IntArrayRef{3, 20, 20}));
  EXPECT_EQ(run(R"([{"op": "random_resized_crop", "size": 0}])", 30, 20).sizes(), (at::IntArrayRef{3, 20, 20}));
  EXPECT_EQ(testing::error_text<UsageError>([&] { run(R"([{"op": "resize", "size": [0, 5]}])", 20, 30); }),
            "resize needs two sides above 0, or one of 0, got size = [0, 5]");
}

}  // namespace
}  // namespace sparsight::fit_to_data_test
