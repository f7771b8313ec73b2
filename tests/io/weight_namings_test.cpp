// Every naming of every library, by itself: names of ours become theirs and ours again, with the same bits.
// tests/judge/convert_test.py loads converted files into the libraries' own models.
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <algorithm>
#include <map>

#include "sparsight/core/error.h"
#include "sparsight/io/names/namings.h"
#include "sparsight/io/weight_names.h"
#include "tests/support/errors.h"

namespace sparsight::weight_namings_test {
namespace {

// A tensor for each of the names, all different, of six rows, so that there are thirds.
NamedTensors tensors_named(const std::vector<std::string>& names) {
  NamedTensors tensors;
  for (const std::string& name : names)
    tensors.emplace_back(name, at::arange(6, at::kFloat) + 10. * static_cast<double>(tensors.size()));
  return tensors;
}

std::vector<std::string> plain_vit() {
  return {"cls_token",
          "pos_embed",
          "patch_embed.proj.weight",
          "blocks.0.norm1.weight",
          "blocks.0.attn.qkv.weight",
          "blocks.0.attn.qkv.bias",
          "blocks.0.attn.proj.bias",
          "blocks.0.norm2.bias",
          "blocks.0.mlp.fc1.weight",
          "blocks.11.mlp.fc2.bias",
          "norm.weight",
          "head.weight"};
}

std::vector<std::string> small_resnet() {
  return {"conv1.weight",
          "bn1.running_mean",
          "bn1.num_batches_tracked",
          "layer1.0.conv1.weight",
          "layer2.0.bn2.weight",
          "layer3.1.conv2.weight",
          "layer4.0.downsample.0.weight",
          "layer4.0.downsample.1.bias",
          "layer4.2.bn3.running_var",
          "fc.weight",
          "fc.bias"};
}

std::vector<std::string> small_mobilenet() {
  return {"features.0.0.weight",       "features.0.1.bias",         "features.1.conv.0.0.weight",
          "features.1.conv.1.weight",  "features.1.conv.2.bias",    "features.2.conv.0.0.weight",
          "features.17.conv.1.1.bias", "features.17.conv.2.weight", "features.17.conv.3.running_var",
          "features.18.0.weight",      "features.18.1.weight",      "classifier.1.weight"};
}

std::vector<std::string> small_convnext() {
  return {"stem.0.weight",
          "stem.1.bias",
          "stages.0.blocks.0.gamma",
          "stages.0.blocks.0.conv_dw.weight",
          "stages.1.downsample.0.bias",
          "stages.1.downsample.1.weight",
          "stages.3.blocks.2.norm.weight",
          "stages.3.blocks.2.mlp.fc1.weight",
          "stages.3.blocks.2.mlp.fc2.bias",
          "head.norm.weight",
          "head.fc.bias"};
}

std::vector<std::string> distilled_vit() {
  std::vector<std::string> names = plain_vit();
  names.insert(names.end(), {"dist_token", "head_dist.weight"});
  return names;
}

struct Case {
  std::string library;
  std::vector<std::string> names;
};

std::string refusal(const std::string& library, const std::vector<std::string>& names) {
  return testing::error_text([&] { with_names_of(library, tensors_named(names)); });
}

}  // namespace

TEST(WeightNamings, ComeBackFromEveryLibraryWithTheirBits) {
  const std::vector<Case> cases{
      {"timm", plain_vit()},
      {"torchvision", plain_vit()},
      {"huggingface", plain_vit()},
      {"transformers-5", plain_vit()},
      {"huggingface", distilled_vit()},
      {"transformers-5", distilled_vit()},
      {"timm", distilled_vit()},
      {"timm", small_resnet()},
      {"torchvision", small_resnet()},
      {"huggingface", small_resnet()},
      {"domainbed", small_resnet()},
      {"timm", small_mobilenet()},
      {"torchvision", small_mobilenet()},
      {"timm", small_convnext()},
      {"torchvision", small_convnext()},
      {"huggingface", small_convnext()},
      {"domainbed", {"conv1.weight", "conv4.bias", "bn0.weight", "bn3.bias", "classifier.weight"}}};
  for (const auto& [library, names] : cases) {
    const NamedTensors ours = tensors_named(names), theirs = with_names_of(library, ours);
    EXPECT_GE(theirs.size(), ours.size()) << library;
    const NamedTensors again = with_our_names(theirs);
    ASSERT_EQ(again.size(), ours.size()) << library << " " << names.back();
    const std::map<std::string, at::Tensor> by_name(again.begin(), again.end());
    for (const auto& [name, tensor] : ours) {
      ASSERT_TRUE(by_name.contains(name)) << library << " " << name;
      EXPECT_TRUE(at::equal(by_name.at(name), tensor)) << library << " " << name;
    }
  }
}

// Left: torchvision.models.convnext_tiny().state_dict() and timm.create_model("mobilenetv2_100").state_dict(), of
// torchvision 0.28.0 and timm 1.0.31; right: timm's convnext_tiny and torchvision's mobilenet_v2.
TEST(WeightNamings, CountBlocksAsTheLibrariesDo) {
  const std::pair<std::string, std::string> convnext[] = {
      {"features.0.0.weight", "stem.0.weight"},
      {"features.1.0.block.0.weight", "stages.0.blocks.0.conv_dw.weight"},
      {"features.4.1.bias", "stages.2.downsample.1.bias"},
      {"features.5.8.block.5.weight", "stages.2.blocks.8.mlp.fc2.weight"},
      {"features.7.2.layer_scale", "stages.3.blocks.2.gamma"},
      {"classifier.2.bias", "head.fc.bias"}};
  const std::pair<std::string, std::string> mobilenet[] = {
      {"conv_stem.weight", "features.0.0.weight"},
      {"blocks.0.0.conv_dw.weight", "features.1.conv.0.0.weight"},
      {"blocks.0.0.bn2.bias", "features.1.conv.2.bias"},
      {"blocks.1.1.conv_pw.weight", "features.3.conv.0.0.weight"},
      {"blocks.4.2.bn2.running_var", "features.13.conv.1.1.running_var"},
      {"blocks.6.0.conv_pwl.weight", "features.17.conv.2.weight"},
      {"conv_head.weight", "features.18.0.weight"},
      {"classifier.weight", "classifier.1.weight"}};
  const auto expect_renamed = [](const auto& names) {
    NamedTensors file;
    for (const auto& [theirs, ours] : names) file.emplace_back(theirs, at::ones({1}));
    const NamedTensors renamed = with_our_names(file);
    ASSERT_EQ(renamed.size(), std::size(names));
    for (size_t i = 0; i < renamed.size(); ++i) EXPECT_EQ(renamed[i].first, names[i].second);
  };
  expect_renamed(convnext);
  expect_renamed(mobilenet);
}

// torchvision keeps a map's two axes in the factors of ConvNeXt's branches.
TEST(WeightNamings, KnowTheShapesOfTheLibraries) {
  const NamedTensors theirs = with_names_of("torchvision", tensors_named(small_convnext()));
  const auto scale = std::ranges::find(theirs, "features.1.0.layer_scale", &NamedTensors::value_type::first);
  ASSERT_NE(scale, theirs.end());
  EXPECT_EQ(scale->second.sizes(), (std::vector<int64_t>{6, 1, 1}));
}

// transformers 5 reads both spellings of its vision transformers; so does this library.
TEST(WeightNamings, ReadBothSpellingsOfTransformers) {
  const NamedTensors ours = tensors_named(plain_vit());
  const auto name_of_query = [&](const std::string& library) {
    const NamedTensors theirs = with_names_of(library, ours);
    return std::ranges::count_if(theirs, [&](const auto& entry) {
      return entry.first == (library == "huggingface" ? "vit.encoder.layer.0.attention.attention.query.weight"
                                                      : "vit.layers.0.attention.q_proj.weight");
    });
  };
  EXPECT_EQ(name_of_query("huggingface"), 1);
  EXPECT_EQ(name_of_query("transformers-5"), 1);
}

TEST(WeightNamings, HaveTheNetworksOfDomainBedTwice) {
  const NamedTensors theirs = with_names_of("domainbed", tensors_named(small_resnet()));
  EXPECT_EQ(theirs.size(), 2 * small_resnet().size());
  for (const char* name :
       {"featurizer.network.conv1.weight", "network.0.network.conv1.weight", "classifier.bias", "network.1.bias"})
    EXPECT_NE(std::ranges::find(theirs, name, &NamedTensors::value_type::first), theirs.end()) << name;
}

TEST(WeightNamings, ReadACopyWhereTheOriginalIsMissing) {
  const NamedTensors ours = tensors_named(small_resnet());
  NamedTensors theirs = with_names_of("domainbed", ours);
  ASSERT_EQ(std::erase_if(theirs, [](const auto& entry) { return entry.first == "classifier.bias"; }), 1u);
  const NamedTensors again = with_our_names(theirs);
  EXPECT_EQ(again.size(), ours.size());
  const auto bias = std::ranges::find(again, "fc.bias", &NamedTensors::value_type::first);
  ASSERT_NE(bias, again.end());
  EXPECT_TRUE(at::equal(bias->second, ours.back().second));
}

TEST(WeightNamings, RefuseWhatALibraryLacks) {
  std::vector<std::string> routed = plain_vit();
  routed.emplace_back("blocks.1.mlp.experts.w1");
  EXPECT_EQ(refusal("timm", routed),
            "blocks.1.mlp.experts.w1 has no name in timm: its VisionTransformer has no such weights");
  std::vector<std::string> scaled = plain_vit();
  scaled.emplace_back("blocks.0.ls1.gamma");
  EXPECT_EQ(refusal("torchvision", scaled),
            "blocks.0.ls1.gamma has no name in torchvision: its VisionTransformer has no such weights");
  EXPECT_EQ(refusal("huggingface", small_mobilenet()),
            "huggingface has no such model; these libraries have one: timm, torchvision");
  EXPECT_EQ(refusal("timm", {"w"}), "no library is known to have a model with these tensors, of which the first is w");
  EXPECT_NE(refusal("tim", plain_vit()).find("did you mean \"timm\"?"), std::string::npos);
  EXPECT_EQ(testing::error_text([&] {
              with_names_of("huggingface",
                            {{"patch_embed.proj.weight", at::ones({1})}, {"blocks.0.attn.qkv.weight", at::ones({4})}});
            }),
            "blocks.0.attn.qkv.weight has no 3 equal parts along its first axis, as huggingface has it");
}

TEST(WeightNamings, RefuseFilesThatHaveATensorTwice) {
  EXPECT_EQ(testing::error_text([] {
              with_our_names({{"encoder.pos_embedding", at::ones({1})},
                              {"encoder.layers.encoder_layer_0.mlp.0.bias", at::ones({1})},
                              {"encoder.layers.encoder_layer_0.mlp.linear_1.bias", at::ones({1})}});
            }),
            "two tensors of the file are blocks.0.mlp.fc1.bias; use another copy");
  NamedTensors parts = with_names_of("huggingface", tensors_named(plain_vit()));
  parts.emplace_back("vit.encoder.layer.0.attention.attention.key.weight", at::ones({2}));
  EXPECT_EQ(testing::error_text([&] { with_our_names(parts); }),
            "two tensors of the file are one part of blocks.0.attn.qkv.weight, the second is "
            "vit.encoder.layer.0.attention.attention.key.weight; use another copy");
}

}  // namespace sparsight::weight_namings_test
