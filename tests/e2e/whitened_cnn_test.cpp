// The CNN of the CIFAR-10 recipe through the program: its first convolution is fitted to training images and then
// stays, also in a run that starts from other weights, goes on after a stop, or trains on several threads.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "sparsight/io/checkpoint.h"
#include "tests/e2e/saved_run.h"
#include "tests/support/program.h"

namespace sparsight::testing::whitened_cnn_test {
namespace {

constexpr const char* kConfig = R"(
[data]
name = "glyphs"
train = 96
validation = 24
test = 24

[loader]
batch = 24

[transforms]
train = [{op = "random_crop", size = 32, padding = 2, padding_mode = "reflect"}, {op = "flip", alternate = true}]

[model]
name = "whitened_cnn"
widths = [8, 16]

[moe]
blocks = [-1]
experts = 4

[train]
epochs = 2
freeze = ["whiten.weight"]
keep = "last"

[optimizer]
name = "muon"
lr = 0.1
)";

void train(const std::string& run, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"train", "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.insert(arguments.end(), {"--out", run});
  const ProgramResult result = run_program(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
}

at::Tensor whitening_weights(const std::string& run) {
  for (const auto& [name, tensor] : read_checkpoint(last_checkpoint(run)).weights)
    if (name == "whiten.weight") return tensor;
  return {};
}

}  // namespace

TEST(WhitenedCnnRun, FitsItsFirstConvolutionAndEndsWithTheSameBits) {
  const TemporaryFolder folder;
  const std::string config = folder.write("whitened.toml", kConfig), whole = folder.path("whole"),
                    threads = folder.path("threads"), start = folder.path("start"), tuned = folder.path("tuned");
  train(whole, {config});
  const at::Tensor filters = whitening_weights(whole);
  ASSERT_EQ(filters.sizes(), at::IntArrayRef({24, 3, 2, 2}));
  EXPECT_TRUE(at::equal(filters.narrow(0, 12, 12), -filters.narrow(0, 0, 12)));
  // Images are brighter or darker as a whole: the filter of the largest eigenvalue, the last one, has one sign.
  EXPECT_EQ(filters[11].sign().sum().abs().item<double>(), 12);

  train(threads, {config, "--set", "run.threads=3"});
  expect_same_run(whole, threads);

  train(start, {config, "--set", "run.seed=5", "--set", "data.train=48"});
  EXPECT_FALSE(at::equal(whitening_weights(start), filters)) << "fitted to other images";
  train(tuned, {config, "--init-from", last_checkpoint(start)});
  EXPECT_TRUE(at::equal(whitening_weights(tuned), whitening_weights(start)));
}

}  // namespace sparsight::testing::whitened_cnn_test
