// `sparsight weights convert`: names, what it prints, what it refuses. tests/judge/convert_test.py loads its files into
// the models of the libraries.
#include <gtest/gtest.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <map>
#include <nlohmann/json.hpp>

#include "sparsight/io/checkpoint.h"
#include "sparsight/io/safetensors.h"
#include "tests/support/program.h"

namespace sparsight::testing::convert_verb_test {
namespace {

// Some weights of a vision transformer of width 2, and how it normalises pixels.
NamedTensors some_weights() {
  return {{"cls_token", at::ones({1, 1, 2})},
          {"patch_embed.proj.weight", at::ones({2, 3, 4, 4})},
          {"blocks.0.attn.qkv.weight", at::ones({6, 2})},
          {"head.bias", at::ones({5})},
          {"normalize.mean", at::full({3}, 0.5, at::kDouble)},
          {"normalize.std", at::full({3}, 0.25, at::kDouble)}};
}

}  // namespace

TEST(WeightsConvert, WritesTheNamesOfALibraryAndSaysHowPixelsAreNormalised) {
  const TemporaryFolder folder;
  const std::string from = folder.path("vit.safetensors"), to = folder.path("torchvision.safetensors");
  write_safetensors(from, {some_weights(), {}});
  const ProgramResult made = run_program({"weights", "convert", from, "--to", "torchvision", "--out", to});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.out.find("4 tensors under the names of torchvision"), std::string::npos) << made.out;
  EXPECT_NE(made.out.find("normalised by"), std::string::npos) << made.out;
  const TensorFile file = read_safetensors(to);
  const std::map<std::string, at::Tensor> tensors(file.tensors.begin(), file.tensors.end());
  EXPECT_EQ(file.metadata.at("format"), "pt");
  ASSERT_EQ(tensors.size(), 4u);
  for (const char* name : {"class_token", "conv_proj.weight",
                           "encoder.layers.encoder_layer_0.self_attention.in_proj_weight", "heads.head.bias"})
    EXPECT_TRUE(tensors.contains(name)) << name;
}

// As last.safetensors of a training with an average, which is what `eval` reports on.
TEST(WeightsConvert, WritesTheAveragedWeightsOfACheckpoint) {
  const TemporaryFolder folder;
  const std::string from = folder.path("last.safetensors"), to = folder.path("timm.safetensors");
  Checkpoint checkpoint;
  checkpoint.weights = some_weights();
  for (const auto& [name, tensor] : some_weights()) checkpoint.training.emplace_back("ema/" + name, tensor.mul(0.5));
  checkpoint.config = Json::object(), checkpoint.state = Json::object();
  write_checkpoint(from, checkpoint);
  const ProgramResult made = run_program({"weights", "convert", from, "--to", "timm", "--out", to});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const NamedTensors written = read_safetensors(to).tensors;
  ASSERT_EQ(written.size(), 4u);
  for (const auto& [name, tensor] : written) EXPECT_TRUE(at::equal(tensor, at::full_like(tensor, 0.5))) << name;
}

TEST(WeightsConvert, RefusesWhatItCannotWrite) {
  const TemporaryFolder folder;
  const std::string from = folder.path("vit.safetensors"), to = folder.path("out.safetensors");
  NamedTensors weights = some_weights();
  weights.emplace_back("blocks.0.mlp.experts.w1", at::ones({2, 2, 2}));
  write_safetensors(from, {weights, {}});
  const auto refused = [&](const std::string& library, int exit_code, const std::string& part) {
    const ProgramResult result = run_program({"weights", "convert", from, "--to", library, "--out", to});
    EXPECT_EQ(result.exit_code, exit_code) << library;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  };
  refused("timm", 1, "blocks.0.mlp.experts.w1 has no name in timm");
  refused("domainbed", 2, "domainbed has no such model; these libraries have one: torchvision");
  refused("torchvison", 2, "did you mean \"torchvision\"?");
  EXPECT_NE(run_program({"weights", "convert", folder.path("none"), "--to", "timm", "--out", to}).exit_code, 0);
  weights.pop_back();
  write_safetensors(from, {weights, {}});
  folder.write("out.safetensors", "something else");
  refused("timm", 1, "exists already with other content; name another file, or replace it with --overwrite");
}

}  // namespace sparsight::testing::convert_verb_test
