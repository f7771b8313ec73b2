// The transforms of DomainBed from end to end, pixels against those of torchvision on Pillow's images, made by
// tests/golden/transforms/make_domainbed.py. What the random stream of each case decides is in domainbed_cases.json,
// which both read.
#include <array>
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/shuffle.h"
#include "sparsight/data/transforms/pipeline.h"
#include "sparsight/dg/dg_run.h"
#include "tests/data/transforms/golden_image.h"

namespace sparsight::dg_pixels_test {
namespace {

constexpr int64_t kSize = 28;

Json dg_transforms(const std::string& set, const char* part) {
  DgRun run;
  run.set = set, run.model = "vit", run.image_size = kSize;
  return dg_config(run)["transforms"][part];
}

at::Tensor transformed(const Json& steps, const at::Tensor& image, const RandomStream& random) {
  ViewRandom view(random);
  const at::Tensor pixels = TransformPipeline(steps, "transforms")(image, view);
  return pixels.mul(255).round().to(at::kByte);
}

// What the stream decides for an image of [H,W]: the samples that the steps take, in their order.
Json crop_decisions(RandomStream& random, int64_t h, int64_t w) {
  Json all = Json::object();
  while (!all.contains("top")) {
    const double area = static_cast<double>(h * w) * random.uniform(0.7, 1.0);
    const double ratio = std::exp(random.uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    const int64_t width = std::llround(std::sqrt(area * ratio)), height = std::llround(std::sqrt(area / ratio));
    if (width > w || height > h) continue;
    all["height"] = height, all["width"] = width;
    all["top"] = random.below(h - height + 1), all["left"] = random.below(w - width + 1);
  }
  return all;
}

Json decisions(uint64_t seed, int64_t h, int64_t w) {
  RandomStream random(seed, "golden");
  Json all{{"seed", seed}};
  all.update(crop_decisions(random, h, w));
  all["mirrored"] = random.uniform() < 0.5;
  std::array<int, 4> order{0, 1, 2, 3};
  shuffle(order, random);
  all["jitter"] = Json::array();
  for (const int step : order) {
    const char* const names[] = {"brightness", "contrast", "saturation", "hue"};
    all["jitter"].push_back({names[step], step == 3 ? random.uniform(-0.3, 0.3) : random.uniform(0.7, 1.3)});
  }
  all["grey"] = random.uniform() < 0.1;
  return all;
}

// kind: "photographs", "wilds"
Json cases(const char* kind) {
  std::ifstream file(test::source_path("tests/golden/transforms/domainbed_cases.json"));
  return Json::parse(file)[kind];
}

// No level differs after the crop, after all that follows it, and after both. size: of the picture that is cropped.
void expect_reference(const Json& steps, const char* kind, at::IntArrayRef size) {
  const bool resized = steps[0]["op"] == "resize";
  const auto end_of_crop = steps.begin() + (resized ? 2 : 1);
  const Json only_crop(steps.begin(), end_of_crop), after(end_of_crop, steps.end());
  const at::Tensor input = golden_image("input.ppm");
  for (const Json& expected : cases(kind)) {
    const auto seed = expected["seed"].get<uint64_t>();
    const std::string name = cat("domainbed_", kind, "_", seed, ".ppm");
    EXPECT_EQ(decisions(seed, size[0], size[1]).dump(), expected.dump())
        << "write the first into domainbed_cases.json and run make_domainbed.py";
    const at::Tensor reference = golden_image(name),
                     crop = golden_image(cat("domainbed_", kind, "_crop_", seed, ".ppm"));
    EXPECT_EQ(largest_difference(transformed(only_crop, input, RandomStream(seed, "golden")), crop), 0) << name;
    RandomStream random(seed, "golden");
    crop_decisions(random, size[0], size[1]);
    EXPECT_EQ(largest_difference(transformed(after, crop, random), reference), 0) << name;
    EXPECT_EQ(largest_difference(transformed(steps, input, RandomStream(seed, "golden")), reference), 0) << name;
  }
}

}  // namespace

TEST(DomainBedTransforms, G38_TrainingEqualsTheReference) {
  expect_reference(dg_transforms("pacs", "train"), "photographs", golden_image("input.ppm").sizes().slice(1));
  int64_t mirrored = 0, grey = 0;
  const Json all = cases("photographs");
  for (const Json& one : all) mirrored += one["mirrored"].get<bool>(), grey += one["grey"].get<bool>();
  EXPECT_GT(mirrored, 0);
  EXPECT_LT(mirrored, std::ssize(all));
  EXPECT_GT(grey, 0);
  EXPECT_LT(grey, std::ssize(all));
}

TEST(DomainBedTransforms, G38_TestEqualsTheReference) {
  EXPECT_EQ(largest_difference(
                transformed(dg_transforms("pacs", "eval"), golden_image("input.ppm"), RandomStream(0, "golden")),
                golden_image("domainbed_test.ppm")),
            0);
}

// Resized to the square first, and cropped from that.
TEST(DomainBedTransforms, G38_WildsEqualsTheReference) {
  expect_reference(dg_transforms("wilds_fmow", "train"), "wilds", {kSize, kSize});
}

}  // namespace sparsight::dg_pixels_test
