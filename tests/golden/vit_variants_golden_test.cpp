// Vision transformers with norms of queries and keys, with a distillation token and with attention pooling, against
// timm: tests/golden/make_vit_variants_golden.py made the file.
#include <map>

#include <gtest/gtest.h>

#include "sparsight/io/safetensors.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/vit.h"
#include "tests/golden/hashed_weights.h"
#include "tests/support/paths.h"
#include "tests/support/program_answers.h"

namespace sparsight::vit_variants_golden_test {
namespace {

VitOptions small_vit_options() {
  VitOptions options;
  options.width = 24;
  options.depth = 2;
  options.heads = 3;
  options.patch = 4;
  return options;
}

}  // namespace

TEST(VitVariantsGolden, LogitsAgreeWithTimm) {
  const TensorFile file = read_safetensors(test::source_path("tests/golden/vit_variants_golden.safetensors"));
  const std::map<std::string, at::Tensor> golden(file.tensors.begin(), file.tensors.end());
  for (const std::string name : {"qk_norm", "distilled", "map"}) {
    VitOptions options = small_vit_options();
    options.qk_norm = name == "qk_norm";
    options.distilled = name == "distilled";
    if (name == "map") options.pool = "map";
    Vit vit(options, {{3, 16, 12, 5}, default_moe_spec()});
    NamedTensors weights;
    const std::string start = name + "/weights/";
    for (const auto& [key, tensor] : file.tensors)
      if (key.starts_with(start)) weights.emplace_back(key.substr(start.size()), tensor);
    LoadOptions all;
    all.strict = true;  // the names, their number and the shapes must be timm's
    load_weights(vit, weights, all);
    const torch::NoGradGuard no_grad;
    const at::Tensor images = golden.at(name + "/images"), expected = golden.at(name + "/logits");
    EXPECT_LT(test::relative_difference(vit.forward({images}).logits, expected), 1e-4) << name;
    EXPECT_LT(test::relative_difference(test::program_logits(vit, images), expected), 1e-4) << name;
  }
}

}  // namespace sparsight::vit_variants_golden_test
