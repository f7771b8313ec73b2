#include "sparsight/train/class_weights.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/data/sets/array_set.h"
#include "tests/support/errors.h"
#include "tests/support/warnings.h"

namespace sparsight::class_weights_test {
namespace {

ArraySet images_of(const std::vector<int64_t>& labels, bool multi_label = false) {
  const auto count = static_cast<int64_t>(labels.size());
  LabelledArray array{at::zeros({count, 1, 2, 2}, at::kByte), labels, "train", "labels"};
  if (multi_label) array.label_sets = at::ones({count, 3}, at::kBool);
  return ArraySet({.name = "toy", .classes = {"a", "b", "c"}, .domains = {"all"}}, array);
}

TrainOptions options(const Json& weights, const std::string& loss = "auto") {
  TrainOptions options;
  options.class_weights = weights;
  options.task_loss = loss;
  return options;
}

std::vector<double> weights(const Json& setting, const std::vector<int64_t>& labels) {
  const at::Tensor found = training_class_weights(options(setting), images_of(labels));
  const auto* const values = found.const_data_ptr<double>();
  return {values, values + found.numel()};
}

std::string complaint(const TrainOptions& options, bool multi_label = false) {
  return testing::error_text<UsageError>([&] { training_class_weights(options, images_of({0, 0, 1}, multi_label)); });
}

}  // namespace

TEST(ClassWeights, NoneIsUndefined) { EXPECT_FALSE(training_class_weights({}, images_of({0, 1, 2})).defined()); }

// scikit-learn: compute_class_weight("balanced", classes=[0, 1, 2], y=[0, 0, 0, 0, 1, 1, 2, 2]) is
// 8 / (3 * [4, 2, 2]) = [2/3, 4/3, 4/3].
TEST(ClassWeights, BalancedIsImagesByClassesTimesImagesOfTheClass) {
  const std::vector<double> found = weights("balanced", {0, 0, 0, 0, 1, 1, 2, 2});
  EXPECT_EQ(found, (std::vector<double>{8. / 12, 8. / 6, 8. / 6}));
}

// Two classes have images: 4 / (2 * [3, 1]).
TEST(ClassWeights, AClassWithoutImagesHasNoWeightAndIsNamed) {
  const std::string warnings = testing::collect_warnings([] {
    EXPECT_EQ(weights("balanced", {0, 0, 0, 2}), (std::vector<double>{4. / 6, 0, 2}));
  });
  EXPECT_NE(warnings.find("gives weight 0 to 1 class without training images: b"), std::string::npos) << warnings;
}

TEST(ClassWeights, AListHasOneNumberForEachClass) {
  EXPECT_EQ(weights(Json{1, 0, 2.5}, {0, 1, 2}), (std::vector<double>{1, 0, 2.5}));
  const std::string text = complaint(options(Json{1, 2}));
  EXPECT_NE(text.find("train.class_weights has 2 numbers, but the data has 3 classes"), std::string::npos) << text;
  EXPECT_NE(complaint(options(Json::array())).find("has 0 numbers"), std::string::npos);
  // The only class with a weight has no images.
  EXPECT_NE(complaint(options(Json{0, 0, 7})).find("must be above 0 for a class that has"), std::string::npos);
}

TEST(ClassWeights, AreOfASoftmaxOfOneLabelPerImage) {
  EXPECT_NE(complaint(options("balanced", "sigmoid_cross_entropy")).find("weigh the classes of a softmax"),
            std::string::npos);
  EXPECT_NE(complaint(options("balanced"), /*multi_label=*/true).find("needs one label per image"), std::string::npos);
}

}  // namespace sparsight::class_weights_test
