#include "sparsight/io/sharded_weights.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/sharded_names.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"

namespace sparsight::sharded_weights_test {
namespace {

using testing::error_text;

// A checkpoint's tensors: an MoE layer of five experts, with optimiser state, and others.
TensorFile whole() {
  const auto numbers = [](std::vector<int64_t> shape, int64_t first) {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    return (at::arange(count, at::kFloat) + first).reshape(shape);
  };
  return {{{"head.weight", numbers({3, 2}, 0)},
           {"blocks.1.mlp.experts.w1", numbers({5, 2, 4}, 100)},
           {"blocks.1.mlp.experts.b1", numbers({5, 4}, 200)},
           {"features.2.experts.0.conv.weight", numbers({2, 2}, 300)},  // blocks that are experts keep their names
           {"training/optimizer/blocks.1.mlp.experts.w1/exp_avg", numbers({5, 2, 4}, 400)},
           {"training/optimizer/blocks.1.mlp.experts.w1/step", at::ones({})}},
          {{"format", "test"}, {"state", "{\"step\":3}"}}};
}

class Shards : public ::testing::Test {
 protected:
  void SetUp() override {
    write_safetensors(folder_.path("whole.safetensors"), whole());
    shard_weights(folder_.path("whole.safetensors"), folder_.path("shards"), 2);
  }

  std::string shard(int k) const {
    return folder_.path("shards/model-0000" + std::to_string(k) + "-of-00002.safetensors");
  }
  Json index() const { return Json::parse(read_file(folder_.path("shards") + "/" + kShardIndex, 1 << 20)); }
  void change_index(const Json& index) {
    write_file_atomically(folder_.path("shards") + "/" + kShardIndex, index.dump());
  }
  std::string merge_error() {
    return error_text([&] { merge_weights(folder_.path("shards"), folder_.path("merged.safetensors")); });
  }

  testing::TemporaryFolder folder_;
};

}  // namespace

TEST_F(Shards, HaveEachExpertInOneFileAsTransformersReadsThem) {
  const TensorFile first = read_safetensors(shard(1)), second = read_safetensors(shard(2));
  EXPECT_EQ(first.metadata.at("format"), "pt");
  const Json map = index().at("weight_map");
  EXPECT_EQ(map.at("head.weight"), "model-00001-of-00002.safetensors");
  EXPECT_EQ(map.at("blocks.1.mlp.experts.2.w1"), "model-00001-of-00002.safetensors");
  EXPECT_EQ(map.at("blocks.1.mlp.experts.3.w1"), "model-00002-of-00002.safetensors");
  EXPECT_EQ(map.size(), 3 + 3 * 5);
  EXPECT_EQ(index().at("metadata").at("total_size"), 4 * (6 + 40 + 20 + 4 + 40 + 1));
  for (const auto& [name, tensor] : second.tensors)
    if (name == "blocks.1.mlp.experts.4.b1") EXPECT_TRUE(tensor.equal(at::arange(4, at::kFloat) + 216));
  EXPECT_EQ(second.tensors.size(), 2 * 3);  // experts 3 and 4 of three tensors
}

TEST_F(Shards, MergeToTheSameFile) {
  merge_weights(folder_.path("shards"), folder_.path("merged.safetensors"));
  EXPECT_EQ(read_file(folder_.path("merged.safetensors"), 1 << 20),
            read_file(folder_.path("whole.safetensors"), 1 << 20));
  merge_weights(folder_.path("shards") + "/" + kShardIndex, folder_.path("again.safetensors"));  // by the index
  const ShardedWeights weights(folder_.path("shards"));
  EXPECT_TRUE(weights.read("blocks.1.mlp.experts.b1").equal(whole().tensors[2].second));
}

TEST_F(Shards, AreReadLikeTheOneFile) {
  const ShardedWeights weights(folder_.path("shards"));
  const auto wanted = [](const std::string& name) { return name.starts_with("blocks."); };
  const TensorFile some = weights.read_all(wanted, [](const std::string& name, const at::Tensor& tensor) {
    return name.ends_with("w1") ? tensor.narrow(0, 1, 2) : tensor;
  });
  EXPECT_EQ(some.metadata, whole().metadata);
  ASSERT_EQ(some.tensors.size(), 2u);
  EXPECT_EQ(some.tensors[0].first, "blocks.1.mlp.experts.w1");
  EXPECT_TRUE(some.tensors[0].second.equal(whole().tensors[1].second.narrow(0, 1, 2)));
  EXPECT_TRUE(some.tensors[1].second.equal(whole().tensors[2].second));
}

TEST_F(Shards, ADamagedTensorIsNamed) {
  std::string bytes = read_file(shard(2), 1 << 20);
  bytes.back() ^= 1;
  write_file_atomically(shard(2), bytes);
  EXPECT_NE(
      error_text([&] { ShardedWeights(folder_.path("shards")).read_all(nullptr); }).find("does not match its checksum"),
      std::string::npos);
}

TEST_F(Shards, AMissingFileIsNamed) {
  std::filesystem::remove(shard(2));
  EXPECT_EQ(merge_error(), shard(2) +
                               " is missing: model.safetensors.index.json says that it has expert 3 of "
                               "blocks.1.mlp.experts.w1; copy all files of the index");
}

TEST_F(Shards, AMissingExpertIsNamed) {
  TensorFile second = read_safetensors(shard(2));
  std::erase_if(second.tensors, [](const auto& entry) { return entry.first == "blocks.1.mlp.experts.4.w1"; });
  write_safetensors(shard(2), second);
  EXPECT_EQ(merge_error(), "expert 4 of blocks.1.mlp.experts.w1 is missing: it is not in " + shard(2));
  Json changed = index();
  changed["weight_map"].erase("blocks.1.mlp.experts.4.w1");
  change_index(changed);
  EXPECT_EQ(merge_error(), "expert 4 of blocks.1.mlp.experts.w1 is missing: no file has it");
  EXPECT_FALSE(std::filesystem::exists(folder_.path("merged.safetensors")));
}

TEST_F(Shards, ADoubledExpertIsNamed) {
  TensorFile first = read_safetensors(shard(1));
  first.tensors.emplace_back("blocks.1.mlp.experts.4.b1", at::ones({4}));
  write_safetensors(shard(1), first);
  EXPECT_EQ(merge_error(),
            "expert 4 of blocks.1.mlp.experts.b1 is doubled: it is in " + shard(2) + " and in " + shard(1));
}

TEST_F(Shards, AForeignExpertIsNamed) {
  TensorFile second = read_safetensors(shard(2));
  second.tensors.emplace_back("blocks.1.mlp.experts.5.b1", at::ones({4}));
  write_safetensors(shard(2), second);
  EXPECT_EQ(merge_error(), "expert 5 of blocks.1.mlp.experts.b1 in " + shard(2) +
                               " is foreign: model.safetensors.index.json does not name it");
  Json changed = index();
  changed["weight_map"]["blocks.1.mlp.experts.5.b1"] = "model-00002-of-00002.safetensors";
  change_index(changed);
  EXPECT_EQ(merge_error(), "expert 5 of blocks.1.mlp.experts.b1 is foreign: the layer has 5 experts");
}

TEST_F(Shards, AFileElsewhereIsRefused) {
  Json changed = index();
  changed["weight_map"]["head.weight"] = "../whole.safetensors";
  change_index(changed);
  EXPECT_NE(merge_error().find("not the name of a file beside it"), std::string::npos) << merge_error();
}

TEST_F(Shards, MoreFilesThanExpertsAreRefused) {
  const std::string error =
      error_text<UsageError>([&] { shard_weights(folder_.path("whole.safetensors"), folder_.path("more"), 6); });
  EXPECT_EQ(error, "blocks.1.mlp.experts. has 5 experts, too few for 6 files; choose --files 5 or less");
}

TEST(ExpertNames, AreThoseOfOneAndOfAllExperts) {
  const auto all = parse_stacked_name("blocks.1.mlp.experts.w1");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->of_expert(3), "blocks.1.mlp.experts.3.w1");
  const auto one = parse_single_name("blocks.1.mlp.experts.3.w1");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->expert, 3);
  EXPECT_EQ(one->tensor.of_all(), "blocks.1.mlp.experts.w1");
  for (const char* const other : {"head.weight", "blocks.1.mlp.experts.", "my_experts.w1", "experts.0.conv.weight"}) {
    EXPECT_FALSE(parse_stacked_name(other)) << other;
    EXPECT_FALSE(parse_single_name(other)) << other;
  }
}

}  // namespace sparsight::sharded_weights_test
