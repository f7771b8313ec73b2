// The ViT and the resampling of position embeddings against timm: tests/golden/make_vit_golden.py made the file.
#include <map>

#include <gtest/gtest.h>

#include "sparsight/io/safetensors.h"
#include "sparsight/models/vit.h"
#include "tests/support/paths.h"

namespace sparsight::vit_golden_test {
namespace {

std::map<std::string, at::Tensor> golden_tensors() {
  const TensorFile file = read_safetensors(test::source_path("tests/golden/vit_golden.safetensors"));
  return {file.tensors.begin(), file.tensors.end()};
}

// Loads every golden weight by its own name: the names, their number and the shapes must be timm's.
void load_golden(Vit& vit, const std::map<std::string, at::Tensor>& golden, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  auto parameters = vit.named_parameters();
  size_t found = 0;
  for (const auto& [name, tensor] : golden) {
    if (name.rfind(prefix, 0) != 0) continue;
    at::Tensor* parameter = parameters.find(name.substr(prefix.size()));
    ASSERT_NE(parameter, nullptr) << name;
    ASSERT_EQ(parameter->sizes(), tensor.sizes()) << name;
    parameter->copy_(tensor);
    ++found;
  }
  EXPECT_EQ(found, parameters.size());
}

}  // namespace

class VitGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(VitGolden, LogitsAgreeWithTimm) {
  const auto golden = golden_tensors();
  VitOptions options;
  options.width = 24;
  options.depth = 2;
  options.heads = 3;
  options.patch = 4;
  options.pool = GetParam();
  Vit vit(options, {{3, 16, 12, 5}, default_moe_spec()});
  load_golden(vit, golden, GetParam() + "/weights/");
  const at::Tensor logits = vit.forward({golden.at(GetParam() + "/images")}).logits;
  const at::Tensor expected = golden.at(GetParam() + "/logits");
  const double relative = ((logits - expected).abs().max() / expected.abs().max()).item<double>();
  EXPECT_LT(relative, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Pooling, VitGolden, ::testing::Values("class", "mean"));

TEST(PositionEmbeddingGolden, ResamplesAsTimm) {
  const auto golden = golden_tensors();
  const at::Tensor from = golden.at("resample/4x4");
  const auto resampled = [&](PatchGrid to) { return resample_position_embedding(from, 1, {4, 4}, to); };
  EXPECT_TRUE(torch::allclose(resampled({7, 5}), golden.at("resample/7x5"), 1e-5, 1e-5));
  EXPECT_TRUE(torch::allclose(resampled({2, 3}), golden.at("resample/2x3"), 1e-5, 1e-5));
}

}  // namespace sparsight::vit_golden_test
