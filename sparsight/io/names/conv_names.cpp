// The names of convolutional networks. Ours are torchvision's of ResNet and MobileNetV2, timm's of ConvNeXt and
// DomainBed's of its CNN.
#include <array>

#include "sparsight/core/error.h"
#include "sparsight/io/names/namings.h"

namespace sparsight {
namespace {

std::vector<NameRule> resnet_rules() {
  std::vector<NameRule> rules;
  for (const char* name :
       {"conv1.weight", "bn1.*", "layer#.#.conv#.weight", "layer#.#.bn#.*", "layer#.#.downsample.#.*", "fc.*"})
    rules.push_back(same_name(name));
  return rules;
}

// transformers counts layers and convolutions from 0, torchvision from 1.
std::vector<NameRule> transformers_resnet_rules() {
  const std::string embedder = "resnet.embedder.embedder.";
  std::vector<NameRule> rules{{{embedder + "convolution.*"}, "conv1.*"},
                              {{embedder + "normalization.*"}, "bn1.*"},
                              {{"classifier.1.*"}, "fc.*"}};
  for (int stage = 0; stage < 4; ++stage) {
    std::vector<NameRule> block{{{"shortcut.convolution.*"}, "downsample.0.*"},
                                {{"shortcut.normalization.*"}, "downsample.1.*"}};
    for (int i = 0; i < 3; ++i) {
      block.push_back({{cat("layer.", i, ".convolution.*")}, cat("conv", i + 1, ".*")});
      block.push_back({{cat("layer.", i, ".normalization.*")}, cat("bn", i + 1, ".*")});
    }
    append(rules, under(cat("resnet.encoder.stages.", stage, ".layers.#."), cat("layer", stage + 1, ".#."), block));
  }
  return rules;
}

// The state dict of DomainBed's algorithms has their networks twice: by themselves, and in a row.
std::vector<NameRule> domainbed_rules(const std::string& inside, const std::vector<NameRule>& layers,
                                      const std::string& our_head) {
  std::vector<NameRule> rules{{{"classifier.*"}, our_head, NameRule::Shape::same, {"network.1.*"}}};
  for (const NameRule& layer : layers)
    rules.push_back({{"featurizer." + inside + layer.ours},
                     layer.ours,
                     NameRule::Shape::same,
                     {"network.0." + inside + layer.ours}});
  return rules;
}

// timm's blocks of MobileNetV2 are numbered in stages, torchvision's in one row.
std::vector<NameRule> timm_mobilenet_rules() {
  std::vector<NameRule> rules{{{"conv_stem.*"}, "features.0.0.*"},
                              {{"bn1.*"}, "features.0.1.*"},
                              {{"conv_head.*"}, "features.18.0.*"},
                              {{"bn2.*"}, "features.18.1.*"},
                              {{"classifier.*"}, "classifier.1.*"}};
  const std::vector<NameRule> first{{{"conv_dw.*"}, "0.0.*"},  // without expansion
                                    {{"bn1.*"}, "0.1.*"},
                                    {{"conv_pw.*"}, "1.*"},
                                    {{"bn2.*"}, "2.*"}};
  const std::vector<NameRule> other{{{"conv_pw.*"}, "0.0.*"}, {{"bn1.*"}, "0.1.*"},    {{"conv_dw.*"}, "1.0.*"},
                                    {{"bn2.*"}, "1.1.*"},     {{"conv_pwl.*"}, "2.*"}, {{"bn3.*"}, "3.*"}};
  constexpr std::array<int, 7> kBlocksOfStage{1, 2, 3, 4, 3, 3, 1};  // table 2 of Sandler et al. 2018
  int feature = 1;
  for (size_t stage = 0; stage < kBlocksOfStage.size(); ++stage)
    for (int i = 0; i < kBlocksOfStage[stage]; ++i, ++feature)
      append(rules, under(cat("blocks.", stage, ".", i, "."), cat("features.", feature, ".conv."),
                          stage == 0 ? first : other));
  return rules;
}

std::vector<NameRule> torchvision_mobilenet_rules() {
  return {same_name("features.#.conv.#.#.*"), same_name("features.#.conv.#.*"), same_name("features.#.#.*"),
          same_name("classifier.1.*")};
}

std::vector<NameRule> timm_convnext_rules() {
  std::vector<NameRule> rules;
  for (const char* name : {"stem.#.*", "stages.#.downsample.#.*", "head.norm.*", "head.fc.*"})
    rules.push_back(same_name(name));
  for (const char* name : {"gamma", "conv_dw.*", "norm.*", "mlp.fc1.*", "mlp.fc2.*"})
    append(rules, under("stages.#.blocks.#.", "stages.#.blocks.#.", {same_name(name)}));
  return rules;
}

// torchvision has stages and the layers between them in one row.
std::vector<NameRule> torchvision_convnext_rules() {
  std::vector<NameRule> rules{
      {{"features.0.#.*"}, "stem.#.*"}, {{"classifier.0.*"}, "head.norm.*"}, {{"classifier.2.*"}, "head.fc.*"}};
  for (int stage = 0; stage < 4; ++stage) {
    if (stage > 0) rules.push_back({{cat("features.", 2 * stage, ".#.*")}, cat("stages.", stage, ".downsample.#.*")});
    append(rules, under(cat("features.", 2 * stage + 1, ".#."), cat("stages.", stage, ".blocks.#."),
                        {{{"layer_scale"}, "gamma", NameRule::Shape::channels},
                         {{"block.0.*"}, "conv_dw.*"},
                         {{"block.2.*"}, "norm.*"},
                         {{"block.3.*"}, "mlp.fc1.*"},
                         {{"block.5.*"}, "mlp.fc2.*"}}));
  }
  return rules;
}

std::vector<NameRule> transformers_convnext_rules() {
  std::vector<NameRule> rules{{{"convnext.embeddings.patch_embeddings.*"}, "stem.0.*"},
                              {{"convnext.embeddings.layernorm.*"}, "stem.1.*"},
                              {{"convnext.encoder.stages.#.downsampling_layer.#.*"}, "stages.#.downsample.#.*"},
                              {{"convnext.layernorm.*"}, "head.norm.*"},
                              {{"classifier.*"}, "head.fc.*"}};
  append(rules, under("convnext.encoder.stages.#.layers.#.", "stages.#.blocks.#.",
                      {{{"layer_scale_parameter"}, "gamma"},
                       {{"dwconv.*"}, "conv_dw.*"},
                       {{"layernorm.*"}, "norm.*"},
                       {{"pwconv1.*"}, "mlp.fc1.*"},
                       {{"pwconv2.*"}, "mlp.fc2.*"}}));
  return rules;
}

}  // namespace

std::vector<WeightNaming> resnet_namings() {
  const std::vector<std::string> ours{"conv1.weight", "layer1.0.conv1.weight"};
  const std::vector<std::string> transformers{"resnet.embedder.embedder.convolution.weight"};
  std::vector<NameRule> layers = resnet_rules();
  layers.pop_back();  // fc is their classifier
  return {
      {"huggingface", "ResNetForImageClassification", transformers, ours, transformers_resnet_rules()},
      {"transformers-5", "ResNetForImageClassification", transformers, ours, transformers_resnet_rules()},
      {"domainbed", "ResNet", {"featurizer.network.conv1.weight"}, ours, domainbed_rules("network.", layers, "fc.*")},
      {"torchvision", "ResNet", ours, ours, resnet_rules()},
      {"timm", "ResNet", ours, ours, resnet_rules()}};
}

std::vector<WeightNaming> mobilenet_namings() {
  const std::vector<std::string> ours{"features.0.0.weight", "features.18.0.weight"};
  return {{"timm",
           "mobilenetv2",
           {"conv_stem.weight", "blocks.0.0.conv_dw.weight", "blocks.6.0.conv_pwl.weight"},
           ours,
           timm_mobilenet_rules()},
          {"torchvision", "MobileNetV2", ours, ours, torchvision_mobilenet_rules()}};
}

std::vector<WeightNaming> convnext_namings() {
  const std::vector<std::string> ours{"stem.0.weight", "stages.0.blocks.0.conv_dw.weight"};
  const std::vector<std::string> transformers{"convnext.embeddings.patch_embeddings.weight"};
  return {{"torchvision",
           "ConvNeXt",
           {"features.0.0.weight", "features.1.0.block.0.weight"},
           ours,
           torchvision_convnext_rules()},
          {"huggingface", "ConvNextForImageClassification", transformers, ours, transformers_convnext_rules()},
          {"transformers-5", "ConvNextForImageClassification", transformers, ours, transformers_convnext_rules()},
          {"timm", "ConvNeXt", ours, ours, timm_convnext_rules()}};
}

std::vector<WeightNaming> mnist_cnn_namings() {
  std::vector<NameRule> layers;
  for (const char* name : {"conv#.*", "bn#.*"}) layers.push_back(same_name(name));
  return {{"domainbed",
           "MNIST_CNN",
           {"featurizer.conv1.weight", "featurizer.bn0.weight"},
           {"conv1.weight", "bn0.weight", "classifier.weight"},
           domainbed_rules("", layers, "classifier.*")}};
}

}  // namespace sparsight
