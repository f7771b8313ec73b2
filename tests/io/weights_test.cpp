#include "sparsight/io/weights.h"

#include <gtest/gtest.h>

#include <limits>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::weights_test {
namespace {

struct WeightsTestModule : torch::nn::Module {
  at::Tensor body = register_parameter("body", at::zeros({2, 2}));
  at::Tensor head = register_parameter("head", at::zeros({3, 2}));
  at::Tensor count = register_buffer("count", at::zeros({}, at::kLong));
};

}  // namespace

TEST(LoadWeights, MatchesNamesAndConvertsTypes) {
  WeightsTestModule module;
  const LoadReport report = load_weights(
      module,
      {{"body", at::full({2, 2}, 0.5, at::kHalf)}, {"count", at::full({}, 4, at::kLong)}, {"extra", at::ones({1})}});
  EXPECT_EQ(report.loaded, (std::vector<std::string>{"body", "count"}));
  EXPECT_EQ(report.fresh, std::vector<std::string>{"head"});
  EXPECT_EQ(report.unused, std::vector<std::string>{"extra"});
  EXPECT_TRUE(at::equal(module.body, at::full({2, 2}, 0.5)));
  EXPECT_TRUE(module.body.requires_grad());
  EXPECT_EQ(module.count.item<int64_t>(), 4);
  EXPECT_EQ(describe(report), "2 tensors loaded, 0 adapted, 1 kept fresh, 1 unused; kept fresh: head; unused: extra");
}

TEST(LoadWeights, AnotherShapeStaysFreshUnlessItCanBeAdapted) {
  WeightsTestModule module;
  const NamedTensors tensors = {{"body", at::ones({2, 2})}, {"head", at::ones({5, 2})}};
  const LoadReport plain = load_weights(module, tensors);
  EXPECT_EQ(plain.fresh[0], "head ([5, 2] in the file, [3, 2] in the model)");
  LoadOptions options;
  options.adapt = [](const std::string&, const at::Tensor& source, const at::Tensor& target) {
    return AdaptedTensor{source.narrow(0, 0, target.size(0)), "cut"};
  };
  const LoadReport adapted = load_weights(module, tensors, options);
  EXPECT_EQ(adapted.adapted, std::vector<std::string>{"head (cut)"});
  EXPECT_TRUE(at::equal(module.head, at::ones({3, 2})));
}

TEST(LoadWeights, AMissingTensorCanBeMadeFromOthers) {
  WeightsTestModule module;
  LoadOptions options;
  options.derive = [](const std::string& name, const at::Tensor& target,
                      const std::map<std::string, at::Tensor>& file) -> std::optional<DerivedTensor> {
    if (name != "head") return std::nullopt;
    return DerivedTensor{file.at("neck").expand_as(target), "spread", {"neck"}};
  };
  const LoadReport report = load_weights(
      module, {{"body", at::ones({2, 2})}, {"neck", at::full({1, 2}, 2.0)}, {"count", at::full({}, 1, at::kLong)}},
      options);
  EXPECT_EQ(report.adapted, std::vector<std::string>{"head (spread)"});
  EXPECT_TRUE(report.fresh.empty());
  EXPECT_TRUE(report.unused.empty());
  EXPECT_TRUE(at::equal(module.head, at::full({3, 2}, 2.0)));
}

TEST(LoadWeights, AFailureLeavesTheModuleUnchanged) {
  WeightsTestModule module;
  const at::Tensor ones = at::ones({2, 2});
  const auto message = [&](const NamedTensors& tensors, bool strict) {
    LoadOptions options;
    options.strict = strict;
    return testing::error_text([&] { load_weights(module, tensors, options); });
  };
  EXPECT_NE(message({{"body", ones}}, true).find("no fitting weights for head, count"), std::string::npos);
  EXPECT_NE(
      message({{"body", ones}, {"head", at::ones({3, 2})}, {"count", at::full({}, 1, at::kLong)}, {"x", ones}}, true)
          .find("that the model does not have: x"),
      std::string::npos);
  EXPECT_NE(message({{"x", ones}}, false).find("no tensor of the file fits"), std::string::npos);
  at::Tensor nan = at::full({3, 2}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_NE(message({{"body", ones}, {"head", nan}}, false).find("tensor head holds NaN"), std::string::npos);
  EXPECT_TRUE(at::equal(module.body, at::zeros({2, 2})));
}

// Their squares overflow.
TEST(LoadWeights, LargeNumbersAreNotInfinite) {
  WeightsTestModule module;
  at::Tensor large = at::full({2, 2}, 1e30);
  load_weights(module, {{"body", large}}, {});
  EXPECT_TRUE(at::equal(module.body, large));
  large[1][1] = -std::numeric_limits<float>::infinity();
  EXPECT_NE(testing::error_text([&] {
              load_weights(module, {{"body", large}}, {});
            }).find("tensor body holds NaN or"),
            std::string::npos);
}

}  // namespace sparsight::weights_test
