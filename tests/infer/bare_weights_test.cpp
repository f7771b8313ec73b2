// What files of weights alone do not say. tests/e2e/attack_test.cpp uses one.
#include <filesystem>
#include <set>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/core/input_file.h"
#include "sparsight/infer/bare_weights.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/shard_index.h"
#include "sparsight/models/register_models.h"
#include "sparsight/nn/init.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/random_tensor.h"

namespace sparsight::bare_weights_test {

TEST(BareWeights, NormalisationsAreNamedOrGiven) {
  EXPECT_TRUE(parse_normalize("none").empty());
  EXPECT_EQ(parse_normalize("imagenet").mean, (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_EQ(parse_normalize("0.5:0.25").std, std::vector<double>{0.25});
  EXPECT_EQ(parse_normalize("0.1,0.2,0.3:1,2,3").mean, (std::vector<double>{0.1, 0.2, 0.3}));
  for (const char* wrong : {"imagenett", "0.5", "0.5:", ":0.5", "0.5;0.5", "0.1,0.2:1", "0.5:0", "nan:1", "0.5,:1,1"})
    EXPECT_THROW(parse_normalize(wrong), UsageError) << wrong;
}

TEST(BareWeights, AreToldFromCheckpoints) {
  const testing::TemporaryFolder folder;
  write_safetensors(folder.path("bare.safetensors"), {{{"w", torch::zeros({2})}}, {}});
  write_checkpoint(folder.path("run.safetensors"), {{{"w", torch::zeros({2})}}, {}, Json::object(), Json::object()});
  EXPECT_TRUE(is_bare_weights(folder.path("bare.safetensors")));
  EXPECT_FALSE(is_bare_weights(folder.path("run.safetensors")));
  // The content decides: an archive of torch.save under any name, and nothing else under that of one.
  EXPECT_TRUE(
      is_bare_weights(folder.write("model.th", read_file(test::source_path("tests/golden/io/plain.pt"), 1 << 20))));
  EXPECT_THROW(is_bare_weights(folder.write("model.pth", "hello, this is not a weights file")), Error);
  EXPECT_FALSE(is_bare_weights(folder.path()));
  EXPECT_FALSE(is_bare_weights(folder.path("missing.safetensors")));
  EXPECT_THROW(is_bare_weights(folder.write("cut.safetensors", "x")), Error);
  EXPECT_NE(testing::error_text<UsageError>([&] {
              load_bare_weights({.path = folder.path("bare.safetensors")});
            }).find("give --config"),
            std::string::npos);
}

namespace {

// The weights of a small model with values of order 1, and its logits for two images of noise.
struct SavedModel {
  std::string path;
  at::Tensor images, logits;
};

SavedModel save_vit(const testing::TemporaryFolder& folder, const std::string& name, const Json& more,
                    bool head = true) {
  Json options{{"width", 64}, {"depth", 2}, {"heads", 1}, {"patch", 4}};
  options.update(more);
  const auto model =
      models().make("vit", options, "model", ModelContext{{3, 16, 16, 5}, default_moe_spec(), parse_normalize("half")});
  initialize(*model, 3);
  const torch::NoGradGuard no_grad;
  uint64_t seed = 1;
  NamedTensors weights;
  for (const auto& item : model->named_parameters()) {
    at::Tensor value = item.value();
    value.add_(test::random_tensor(value.sizes(), seed++, torch::kFloat).mul(0.1));
    if (head || !item.key().starts_with("head.")) weights.emplace_back(item.key(), value);
  }
  const SavedModel saved{folder.path(name), test::random_tensor({2, 3, 16, 16}, 9, torch::kFloat).abs(), {}};
  write_safetensors(saved.path, {weights, {}});
  return {saved.path, saved.images, model->forward({.images = saved.images}).logits};
}

ModelRequest without_data(const std::string& path) {
  ModelRequest request{.path = path, .needs_data = false};
  request.bare.normalize = "half";
  return request;
}

}  // namespace

// Names and shapes alone tell the model: no configuration, no dataset.
TEST(BareWeights, AreTheModelThatTheirTensorsTell) {
  const testing::TemporaryFolder folder;
  const std::vector<Json> kinds{Json::object(),
                                {{"layer_scale", 0.1}, {"no_embed_class", true}},
                                {{"layer_scale", 0.1}, {"no_embed_class", true}, {"reg_tokens", 4}},
                                {{"pre_norm", true}, {"norm_eps", 1e-5}},
                                {{"pool", "mean"}, {"qkv_bias", false}, {"mlp_ratio", 2}},
                                {{"pre_logits", true}, {"width", 192}, {"depth", 12}, {"heads", 3}}};
  for (size_t i = 0; i < kinds.size(); ++i) {
    const SavedModel saved = save_vit(folder, cat(i, ".safetensors"), kinds[i]);
    const LoadedModel loaded = load_model_or_weights(without_data(saved.path));
    EXPECT_EQ(loaded.data.classes, (std::vector<std::string>{"class 0", "class 1", "class 2", "class 3", "class 4"}));
    EXPECT_EQ(loaded.shape.height, 16) << kinds[i].dump();
    const at::Tensor logits = loaded.model->forward({.images = saved.images}).logits;
    EXPECT_TRUE(torch::allclose(logits, saved.logits, 1e-4, 1e-4)) << kinds[i].dump();
  }
}

// As other programs divide them: an index without the metadata of one file.
TEST(BareWeights, MayBeInSeveralFiles) {
  const testing::TemporaryFolder folder;
  const SavedModel saved = save_vit(folder, "whole.safetensors", Json::object());
  const NamedTensors all = read_safetensors(saved.path).tensors;
  std::vector<TensorFile> files(2);
  Json index{{"weight_map", Json::object()}};
  std::filesystem::create_directory(folder.path("shards"));
  for (size_t i = 0; i < all.size(); ++i) {
    files[i % 2].tensors.push_back(all[i]);
    index["weight_map"][all[i].first] = cat("part", i % 2, ".safetensors");
  }
  for (size_t i = 0; i < 2; ++i) write_safetensors(folder.path(cat("shards/part", i, ".safetensors")), files[i]);
  folder.write(std::string("shards/") + kShardIndex, index.dump());
  ASSERT_TRUE(is_bare_weights(folder.path("shards")));
  const LoadedModel loaded = load_model_or_weights(without_data(folder.path("shards")));
  EXPECT_TRUE(torch::allclose(loaded.model->forward({.images = saved.images}).logits, saved.logits, 1e-4, 1e-4));
}

TEST(BareWeights, HaveTheClassNamesOfLabels) {
  const testing::TemporaryFolder folder;
  ModelRequest request = without_data(save_vit(folder, "a.safetensors", Json::object()).path);
  request.bare.labels = folder.write("names.txt", "a\nb\r\nc d\ne\nf\n");
  EXPECT_EQ(load_bare_weights(request).data.classes, (std::vector<std::string>{"a", "b", "c d", "e", "f"}));
  const auto refused = [&](const std::string& labels) {
    request.bare.labels = labels;
    return testing::error_text([&] { load_bare_weights(request); });
  };
  EXPECT_NE(refused("imagenet1k").find("names 1000 classes"), std::string::npos);
  EXPECT_NE(refused(folder.path("missing.txt")).find("no such file"), std::string::npos);
  EXPECT_NE(refused(folder.write("empty.txt", "\n")).find("is empty"), std::string::npos);
}

// Places in the list, from the ILSVRC 2012 challenge.
TEST(BareWeights, ImagenetHasAThousandLabels) {
  const std::vector<std::string> labels = read_labels("imagenet1k");
  ASSERT_EQ(labels.size(), 1000u);
  EXPECT_EQ(labels[0], "tench");
  EXPECT_EQ(labels[281], "tabby");
  EXPECT_EQ(labels[999], "toilet tissue");
  EXPECT_EQ(std::set(labels.begin(), labels.end()).size(), 1000u);
}

TEST(BareWeights, WithoutADatasetAreForPredictionAlone) {
  const testing::TemporaryFolder folder;
  ModelRequest request = without_data(save_vit(folder, "a.safetensors", Json::object()).path);
  request.needs_data = true;
  EXPECT_NE(testing::error_text<UsageError>([&] { load_bare_weights(request); }).find("--data FOLDER"),
            std::string::npos);
}

// As the files of DINOv2 are published.
TEST(BareWeights, WithoutAHeadKnowNoClasses) {
  const testing::TemporaryFolder folder;
  const ModelRequest request = without_data(save_vit(folder, "a.safetensors", Json::object(), /*head=*/false).path);
  EXPECT_NE(testing::error_text<UsageError>([&] { load_bare_weights(request); }).find("has no head"),
            std::string::npos);
}

}  // namespace sparsight::bare_weights_test
