#include "tests/e2e/saved_run.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/io/part_files.h"
#include "tests/support/unchecked_json.h"

namespace sparsight::testing {

std::string last_checkpoint(const std::string& run) {
  const std::string file = run + "/checkpoints/last.safetensors", index = part_index(file);
  return std::filesystem::exists(index) ? index : file;
}

int64_t saved_step(const std::string& run) {
  const std::string last = last_checkpoint(run);
  if (!std::filesystem::exists(last)) return 0;
  return unchecked_json(read_checkpoint_metadata(last)["state"])["progress"]["step"].get<int64_t>();
}

void kill_rank(const std::string& run, int64_t rank) {
  const std::string variable = std::string(1, '\0') + "RANK=" + std::to_string(rank) + '\0';
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream environment(entry.path() / "environ", std::ios::binary);
    std::ifstream command(entry.path() / "cmdline", std::ios::binary);
    const std::string variables = '\0' + std::string(std::istreambuf_iterator<char>(environment), {}),
                      words{std::istreambuf_iterator<char>(command), {}};
    if (words.find(run) != std::string::npos && variables.find(variable) != std::string::npos)
      kill(std::stoi(entry.path().filename().string()), SIGKILL);
  }
}

void expect_equal_tensors(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(at::equal(a[i].second, b[i].second)) << a[i].first;
  }
}

void expect_same_run(const std::string& a, const std::string& b) {
  const Checkpoint left = read_checkpoint(last_checkpoint(a)), right = read_checkpoint(last_checkpoint(b));
  EXPECT_EQ(left.state["progress"]["step"], right.state["progress"]["step"]);
  expect_equal_tensors(left.weights, right.weights);
  expect_equal_tensors(left.training, right.training);
  const auto results = [](const std::string& run) {
    std::vector<std::string> lines;
    for (const Json& line : read_metrics(run + "/metrics.jsonl"))
      if (line["kind"] == "train" || line["kind"] == "eval")
        lines.push_back(cat(line["kind"], line["step"], line["loss"], line["accuracy"]));
    return lines;
  };
  EXPECT_EQ(results(a), results(b));
}

}  // namespace sparsight::testing
