#include "sparsight/io/weight_names.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/io/checkpoint.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace sparsight::weight_names_test {

// Left: torchvision.models.vit_b_16().state_dict(); right: timm.create_model("vit_base_patch16_224").state_dict().
TEST(WeightNames, TorchvisionNamesBecomeTimmNames) {
  const std::pair<const char*, const char*> names[] = {
      {"class_token", "cls_token"},
      {"conv_proj.weight", "patch_embed.proj.weight"},
      {"conv_proj.bias", "patch_embed.proj.bias"},
      {"encoder.layers.encoder_layer_0.ln_1.weight", "blocks.0.norm1.weight"},
      {"encoder.layers.encoder_layer_0.self_attention.in_proj_weight", "blocks.0.attn.qkv.weight"},
      {"encoder.layers.encoder_layer_0.self_attention.in_proj_bias", "blocks.0.attn.qkv.bias"},
      {"encoder.layers.encoder_layer_0.self_attention.out_proj.weight", "blocks.0.attn.proj.weight"},
      {"encoder.layers.encoder_layer_0.self_attention.out_proj.bias", "blocks.0.attn.proj.bias"},
      {"encoder.layers.encoder_layer_11.ln_2.bias", "blocks.11.norm2.bias"},
      {"encoder.layers.encoder_layer_11.mlp.0.weight", "blocks.11.mlp.fc1.weight"},
      {"encoder.layers.encoder_layer_11.mlp.3.bias", "blocks.11.mlp.fc2.bias"},
      {"encoder.layers.encoder_layer_11.mlp.linear_1.weight", "blocks.11.mlp.fc1.weight"},
      {"encoder.layers.encoder_layer_11.mlp.linear_2.bias", "blocks.11.mlp.fc2.bias"},
      {"encoder.ln.weight", "norm.weight"},
      {"heads.head.weight", "head.weight"},
      {"blocks.0.norm1.weight", "blocks.0.norm1.weight"},
  };
  const at::Tensor one = at::ones({1});
  for (const auto& [torchvision, timm] : names) {
    const NamedTensors renamed = with_our_names({{"encoder.pos_embedding", one}, {torchvision, one}});
    EXPECT_EQ(renamed[0].first, "pos_embed");
    EXPECT_EQ(renamed[1].first, timm);
  }
}

TEST(WeightNames, OnlyTorchvisionFilesAreRenamed) {
  const at::Tensor one = at::ones({1});
  EXPECT_EQ(with_our_names({{"heads.head.weight", one}})[0].first, "heads.head.weight");
  EXPECT_EQ(with_our_names({{"heads.head.weight", one}, {"encoder.pos_embedding", one}})[0].first, "head.weight");
}

TEST(WeightNames, DeitThreesScalesHaveTimmNames) {
  const at::Tensor one = at::ones({1});
  const NamedTensors renamed =
      with_our_names({{"blocks.11.gamma_1", one}, {"blocks.0.gamma_2", one}, {"gamma_x", one}});
  EXPECT_EQ(renamed[0].first, "blocks.11.ls1.gamma");
  EXPECT_EQ(renamed[1].first, "blocks.0.ls2.gamma");
  EXPECT_EQ(renamed[2].first, "gamma_x");
}

// Left: transformers' ViTForImageClassification(ViTConfig()).state_dict(); right: timm's ViT.
TEST(WeightNames, TransformersNamesBecomeTimmNames) {
  const std::pair<std::string, std::string> names[] = {
      {"vit.embeddings.cls_token", "cls_token"},
      {"vit.embeddings.position_embeddings", "pos_embed"},
      {"vit.embeddings.patch_embeddings.projection.weight", "patch_embed.proj.weight"},
      {"vit.encoder.layer.11.layernorm_before.weight", "blocks.11.norm1.weight"},
      {"vit.encoder.layer.0.layernorm_after.bias", "blocks.0.norm2.bias"},
      {"vit.encoder.layer.0.attention.output.dense.weight", "blocks.0.attn.proj.weight"},
      {"vit.encoder.layer.0.intermediate.dense.bias", "blocks.0.mlp.fc1.bias"},
      {"vit.encoder.layer.0.output.dense.weight", "blocks.0.mlp.fc2.weight"},
      {"vit.layernorm.weight", "norm.weight"},
      {"classifier.bias", "head.bias"},
  };
  NamedTensors file;
  for (const auto& [transformers, timm] : names) file.emplace_back(transformers, at::ones({1}));
  const NamedTensors renamed = with_our_names(file);
  ASSERT_EQ(renamed.size(), std::size(names));
  for (size_t i = 0; i < renamed.size(); ++i) EXPECT_EQ(renamed[i].first, names[i].second);
}

TEST(WeightNames, TransformersProjectionsBecomeOne) {
  const std::string attention = "deit.encoder.layer.2.attention.attention.";
  NamedTensors file{{"deit.embeddings.position_embeddings", at::ones({1, 2, 3})},
                    {attention + "value.bias", at::full({2}, 3.0)},
                    {attention + "key.bias", at::full({2}, 2.0)},
                    {attention + "query.bias", at::full({2}, 1.0)}};
  const NamedTensors renamed = with_our_names(file);
  ASSERT_EQ(renamed.size(), 2u);
  EXPECT_EQ(renamed[1].first, "blocks.2.attn.qkv.bias");
  EXPECT_TRUE(at::equal(renamed[1].second, at::tensor({1., 1., 2., 2., 3., 3.}, at::kFloat)));
  file[2].second = at::ones({3});
  EXPECT_EQ(
      testing::error_text([&] { with_our_names(file); }),
      "blocks.2.attn.qkv.bias needs deit.encoder.layer.2.attention.attention.query.bias, "
      "deit.encoder.layer.2.attention.attention.key.bias, deit.encoder.layer.2.attention.attention.value.bias, of "
      "one shape and type; use another copy");
  file.pop_back();
  EXPECT_THROW(with_our_names(file), Error);
}

// timm.models.vision_transformer._convert_dinov2: cls_token 2 + its position 1, and three positions of patches.
TEST(WeightNames, DinoTwosRegistersHaveTimmNamesAndNoPositions) {
  const NamedTensors file{{"mask_token", at::ones({1, 2})},
                          {"register_tokens", at::ones({1, 4, 2})},
                          {"cls_token", at::full({1, 1, 2}, 2.0)},
                          {"pos_embed", at::ones({1, 4, 2})}};
  const NamedTensors renamed = with_our_names(file);
  ASSERT_EQ(renamed.size(), 3u);
  EXPECT_EQ(renamed[0].first, "reg_token");
  EXPECT_TRUE(at::equal(renamed[1].second, at::full({1, 1, 2}, 3.0)));
  EXPECT_EQ(renamed[2].second.size(1), 3);
  // Without registers the class token keeps its position.
  EXPECT_EQ(with_our_names({file[0], file[2], file[3]})[1].second.size(1), 4);
}

TEST(ReadWeights, TakesCheckpointsSafetensorsAndStateDicts) {
  const testing::TemporaryFolder folder;
  write_checkpoint(folder.path("a"),
                   {{{"w", at::ones({2})}}, {{"step", at::ones({1})}}, Json::object(), Json::object()});
  ASSERT_EQ(read_weights(folder.path("a")).size(), 1u);
  EXPECT_EQ(read_weights(test::source_path("tests/golden/io/python.safetensors")).size(), 10u);
  EXPECT_EQ(read_weights(test::source_path("tests/golden/io/plain.pt")).size(), 2u);
  EXPECT_NE(testing::error_text([&] {
              read_weights(folder.write("b", "hello, this is not a weights file"));
            }).find("not a safetensors file"),
            std::string::npos);
  EXPECT_THROW(read_weights(folder.write("empty", "")), Error);
}

}  // namespace sparsight::weight_names_test
