// ConvNeXt against timm: tests/golden/make_convnext_golden.py made the file.
#include <gtest/gtest.h>

#include <map>

#include "sparsight/io/safetensors.h"
#include "sparsight/models/convnext.h"
#include "tests/golden/hashed_weights.h"
#include "tests/support/paths.h"
#include "tests/support/program_answers.h"

namespace sparsight::convnext_golden_test {

TEST(ConvNextGolden, LogitsAgreeWithTimm) {
  const TensorFile file = read_safetensors(test::source_path("tests/golden/convnext_golden.safetensors"));
  const std::map<std::string, at::Tensor> golden(file.tensors.begin(), file.tensors.end());
  const std::map<std::string, ConvNextOptions> cases{{"tiny", {.size = "tiny"}},
                                                     {"small", {.depths = {1, 2, 1, 1}, .widths = {16, 24, 32, 48}}}};
  for (const auto& [name, options] : cases) {
    const at::Tensor images = golden.at(name + "/images"), features = golden.at(name + "/features"),
                     logits = golden.at(name + "/logits");
    ConvNext model(options, {{3, images.size(2), images.size(3), 5}, default_moe_spec()});
    test::set_hashed_weights(model);
    const torch::NoGradGuard no_grad;
    const ModelOutput out = model.forward({images});
    EXPECT_LT(test::relative_difference(out.features, features), 1e-4) << name;
    EXPECT_LT(test::relative_difference(out.logits, logits), 1e-4) << name;
    EXPECT_GT(test::relative_difference(logits[0], logits[1]), 1e-2) << name;  // the images count
    EXPECT_LT(test::relative_difference(test::program_logits(model, images), logits), 1e-4) << name;
  }
}

}  // namespace sparsight::convnext_golden_test
