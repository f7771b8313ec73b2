// Compiled without fused multiply-add, and without functions of the mathematics library but the square root.
#include "sparsight/data/sets/colored_shapes.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"
#include "sparsight/data/register_data.h"

namespace sparsight {
namespace {

// dSprites' factors.
constexpr int64_t kScales = 6, kOrientations = 40, kPositions = 32;
constexpr double kStepCosine = 0.98768834059513777, kStepSine = 0.15643446504023087;  // of 2 pi / 40

// At scale 1, in units of the side.
constexpr double kHalfSquare = 0.18;         // half the side of the square
constexpr double kEllipseRatio = 2;          // long over short axis
constexpr double kPi = 3.14159265358979324;  // for equal areas
constexpr double kMargin = 0.3;              // of the centre: more than half the long axis
constexpr int64_t kSamples = 4;              // of a pixel, in each direction
constexpr double kLowestScale = 0.5;         // as dSprites; the highest is 1
constexpr float kInk = 255;                  // of the shape's channel; the paper is black
constexpr int64_t kShapes = 2;               // ellipse, square

ShapePose random_pose(RandomStream& random) {
  ShapePose pose;
  pose.scale =
      kLowestScale + (1 - kLowestScale) * static_cast<double>(random.below(kScales)) / static_cast<double>(kScales - 1);
  for (int64_t step = random.below(kOrientations); step > 0; --step) {
    const double cosine = pose.cosine * kStepCosine - pose.sine * kStepSine;
    pose.sine = pose.cosine * kStepSine + pose.sine * kStepCosine;
    pose.cosine = cosine;
  }
  pose.x = static_cast<double>(random.below(kPositions)) / static_cast<double>(kPositions - 1);
  pose.y = static_cast<double>(random.below(kPositions)) / static_cast<double>(kPositions - 1);
  return pose;
}

class ColoredShapes final : public DataSet {
 public:
  ColoredShapes(DataInfo info, const ColoredShapesOptions& options, std::string part, int64_t size, bool biased)
      : info_(std::move(info)),
        part_(std::move(part)),
        seed_(static_cast<uint64_t>(options.seed)),
        size_(size),
        red_{biased ? options.ellipse_red : 0.5, biased ? 1 - options.square_blue : 0.5} {}

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return index % kShapes; }

  // Image j of a class is red if it increases the rounded-down number of red ones.
  int64_t domain(int64_t index) const override {
    const int64_t j = index / kShapes;
    const double share = red_[label(index)];
    const auto red = [&](int64_t n) { return static_cast<int64_t>(std::floor(static_cast<double>(n) * share + 1e-9)); };
    return red(j + 1) > red(j) ? 0 : 1;
  }

  Sample get(int64_t index) const override {
    RandomStream random(seed_, "colored_shapes." + part_, static_cast<uint64_t>(index));
    Sample sample;
    sample.label = label(index);
    sample.domain = domain(index);
    sample.id = cat(part_, "/", index);
    sample.image = at::zeros({3, info_.height, info_.width}, at::kByte);
    const at::Tensor coverage = shape_coverage(sample.label == 1, random_pose(random), info_.height);
    sample.image[sample.domain == 0 ? 0 : 2].copy_((coverage * kInk).round());
    return sample;
  }

 private:
  DataInfo info_;
  std::string part_;
  uint64_t seed_;
  int64_t size_;
  double red_[kShapes];  // share of each class that is red
};

}  // namespace

at::Tensor shape_coverage(bool square, const ShapePose& pose, int64_t side) {
  const auto size = static_cast<double>(side);
  const double half = kHalfSquare * pose.scale * size,
               short_axis = 2 * half / std::sqrt(kPi * kEllipseRatio),  // pi a b = 4 half^2 with a = ratio b
      long_axis = kEllipseRatio * short_axis;
  const auto centre = [&](double at) { return size * (kMargin + (1 - 2 * kMargin) * at); };
  const double x0 = centre(pose.x), y0 = centre(pose.y);
  const auto inside = [&](double x, double y) {
    const double dx = x - x0, dy = y - y0;
    const double along = pose.cosine * dx + pose.sine * dy, across = pose.cosine * dy - pose.sine * dx;
    if (square) return std::abs(along) <= half && std::abs(across) <= half;
    const double u = along / long_axis, v = across / short_axis;
    return u * u + v * v <= 1;
  };
  at::Tensor coverage = at::empty({side, side}, at::kFloat);
  float* out = coverage.data_ptr<float>();
  for (int64_t row = 0; row < side; ++row)
    for (int64_t column = 0; column < side; ++column) {
      int64_t hits = 0;
      for (int64_t i = 0; i < kSamples; ++i)
        for (int64_t j = 0; j < kSamples; ++j)
          hits += inside(static_cast<double>(column) + (static_cast<double>(j) + 0.5) / kSamples,
                         static_cast<double>(row) + (static_cast<double>(i) + 0.5) / kSamples)
                      ? 1
                      : 0;
      *out++ = static_cast<float>(hits) / (kSamples * kSamples);
    }
  return coverage;
}

void ColoredShapesOptions::declare(OptionSet& set) {
  set.integer("side", &side, {16, 512}, "height and width in pixels");
  set.real("ellipse_red", &ellipse_red, {0, 1}, "share of the training ellipses that are red; the others are blue");
  set.real("square_blue", &square_blue, {0, 1}, "share of the training squares that are blue; the others are red");
  set.integer("train", &train, {1, 100000000},
              "images in the training split; a larger number adds images after the same first ones");
  set.integer("validation", &validation, {1, 100000000}, "images in the validation split, coloured as in training");
  set.integer("test", &test, {1, 100000000}, "images in the test split, in which half of each class is red");
  set.integer("seed", &seed, {0, INT64_MAX}, "seed of the images; run.seed does not change them");
}

DataSplits make_colored_shapes(const ColoredShapesOptions& options, const DataContext&) {
  DataInfo info;
  info.name = "colored_shapes";
  info.classes = {"ellipse", "square"};
  info.domains = {"red", "blue"};
  info.height = info.width = options.side;
  const auto make_part = [&](const std::string& name, int64_t size, bool biased) {
    return std::make_shared<ColoredShapes>(info, options, name, size, biased);
  };
  return {make_part("train", options.train, true), make_part("validation", options.validation, true),
          make_part("test", options.test, false)};
}

}  // namespace sparsight
