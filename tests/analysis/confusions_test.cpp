#include "sparsight/analysis/confusions.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sparsight::confusions_test {
namespace {

TEST(Confusions, TheMostFrequentFirst) {
  Confusions confusions({"cat", "dog", "horse"});
  const auto add = [&](const std::vector<int64_t>& labels, const std::vector<int64_t>& guesses) {
    confusions.add(at::one_hot(at::tensor(guesses, at::kLong), 3).to(at::kFloat), at::tensor(labels, at::kLong));
  };
  add({0, 0, 1}, {0, 2, 2});
  add({1, 1, -1, 2}, {2, 0, 0, 2});
  EXPECT_EQ(confusions.list(), Json::parse(R"([{"true": "dog", "predicted": "horse", "images": 2, "of": 3},
                                               {"true": "cat", "predicted": "horse", "images": 1, "of": 2},
                                               {"true": "dog", "predicted": "cat", "images": 1, "of": 3}])"));
}

TEST(Confusions, OfManyPairsSomeAreListed) {
  Confusions confusions({});
  const int64_t classes = 1100;
  const at::Tensor labels = at::arange(classes, at::kLong);
  confusions.add(at::one_hot(labels.add(1).remainder(classes), classes).to(at::kFloat), labels);
  EXPECT_EQ(confusions.list().size(), Confusions::kMaxListed);
  EXPECT_EQ(confusions.list()[0]["predicted"], "1");
}

}  // namespace
}  // namespace sparsight::confusions_test
