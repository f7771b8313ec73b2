// The verbs that take a trained model take one whose weights are in several files, and name what is missing of it.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sparsight/data/readers/png_write.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/shard_index.h"
#include "tests/e2e/output.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::sharded_model_test {
namespace {

namespace fs = std::filesystem;

class ShardedModel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult trained = train_tiny(*folder_, run(), {"--set", "train.epochs=1"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const ProgramResult divided = run_program({"weights", "shard", run(), "--files", "3", "--out", shards()});
    ASSERT_EQ(divided.exit_code, 0) << divided.err;
    folder_->write("images/a.png", encode_png(at::full({3, 16, 16}, 200, at::kByte)));
    folder_->write("images/b.png", encode_png(at::full({1, 16, 16}, 30, at::kByte)));
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string run() { return folder_->path("run"); }
  static std::string shards() { return folder_->path("shards"); }
  static std::string images() { return folder_->path("images"); }

  // A copy of the shards, to be damaged.
  static std::string copy(const std::string& name) {
    fs::copy(shards(), folder_->path(name));
    return folder_->path(name);
  }

  static Json evaluated(const std::string& model) {
    const ProgramResult result = run_program({"eval", model, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    Json json = json_lines(result.out).at(0);
    for (const char* const key : {"seconds", "images_per_s", "peak_memory_mb"}) json.erase(key);
    return json;
  }

  // The one line that predict and eval print.
  static void expect_error(const std::string& model, const std::string& error) {
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"predict", model, images()}, {"eval", model}}) {
      const ProgramResult result = run_program(command);
      EXPECT_EQ(result.exit_code, 1);
      EXPECT_EQ(result.err, "error: " + error + "\n");
    }
  }

  static TemporaryFolder* folder_;
};

TemporaryFolder* ShardedModel::folder_ = nullptr;

std::string shard(const std::string& folder, int number) {
  return folder + "/model-0000" + std::to_string(number) + "-of-00003.safetensors";
}

}  // namespace

TEST_F(ShardedModel, AnswersAsTheRunThatItWasMadeOf) {
  const std::string index = shards() + "/" + kShardIndex, whole = run_program({"predict", run(), images()}).out;
  EXPECT_NE(whole.find("blocks.1.mlp: expert "), std::string::npos) << whole;
  EXPECT_EQ(run_program({"predict", shards(), images()}).out, whole);
  EXPECT_EQ(run_program({"predict", index, images()}).out, whole);
  EXPECT_EQ(evaluated(shards()), evaluated(run()));
  const ProgramResult refused = run_program({"eval", shards(), "--checkpoint", "last"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("is not a run folder, so it has no last checkpoint to choose"), std::string::npos);
}

TEST_F(ShardedModel, IsExplained) {
  const ProgramResult result = run_program({"explain", shards() + "/", images(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::exists(shards() + ".explained/explain.json"));
  Json of_shards = Json::parse(result.out),
       of_run = Json::parse(run_program({"explain", run(), images(), "--json"}).out);
  for (Json* const json : {&of_shards, &of_run}) json->erase("caption");  // names the file
  EXPECT_EQ(of_shards, of_run);
}

TEST_F(ShardedModel, NamesAMissingFile) {
  const std::string damaged = copy("no_file");
  fs::remove(shard(damaged, 2));
  expect_error(damaged, shard(damaged, 2) +
                            " is missing: model.safetensors.index.json says that it has expert 2 of "
                            "blocks.1.mlp.experts.w1; copy all files of the index");
}

TEST_F(ShardedModel, NamesAMissingExpertAndAForeignOne) {
  const std::string damaged = copy("no_expert"), index = damaged + "/" + kShardIndex;
  Json changed = Json::parse(read_file(index, 1 << 20));
  changed["weight_map"].erase("blocks.1.mlp.experts.3.w2");
  write_file_atomically(index, changed.dump());
  expect_error(damaged, "expert 3 of blocks.1.mlp.experts.w2 in " + shard(damaged, 3) +
                            " is foreign: model.safetensors.index.json does not name it");
  fs::copy_file(shard(shards(), 1), shard(damaged, 3), fs::copy_options::overwrite_existing);
  expect_error(damaged, "tensor cls_token is doubled: it is in " + shard(damaged, 1) + " and in " + shard(damaged, 3));
}

}  // namespace sparsight::testing::sharded_model_test
