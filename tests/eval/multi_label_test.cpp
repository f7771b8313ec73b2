// Images with several labels: losses, precision@1, records and their comparison.
#include <cmath>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/eval/compare_records.h"
#include "sparsight/eval/record_writer.h"
#include "sparsight/eval/records.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/io/safetensors.h"
#include "tests/eval/record_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/program.h"
#include "tests/support/random_tensor.h"

namespace sparsight::multi_label_test {
namespace {

const double kLog2 = std::log(2.0), kLog3 = std::log(3.0);

at::Tensor sets(const std::vector<std::vector<int>>& rows) {
  at::Tensor all = torch::zeros({std::ssize(rows), std::ssize(rows[0])}, torch::kBool);
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t k = 0; k < rows[i].size(); ++k) all[static_cast<int64_t>(i)][static_cast<int64_t>(k)] = rows[i][k] == 1;
  return all;
}

Batch batch_of_sets(const std::vector<std::vector<int>>& rows) {
  Batch batch;
  batch.label_sets = sets(rows);
  batch.labels = batch.label_sets.to(torch::kByte).argmax(1);
  return batch;
}

DataInfo make_info(bool multi_label) {
  DataInfo info;
  info.multi_label = multi_label;
  return info;
}

// Images 0 to 2 with the classes {a, c}, {b} and {a, b}, predicted as c, c and b: two of three are right.
void write_multi_label_records(const std::string& folder, std::vector<int64_t> predictions = {2, 2, 1}) {
  const test::RecordedImages images{.ids = {"0", "1", "2"}, .labels = {0, 1, 0}, .predictions = std::move(predictions)};
  RecordWriter writer(folder);
  ModelOutput output;
  output.logits = test::make_logits(images, 0, 3);
  Batch batch = test::recorded_batch(images, 0, 3);
  batch.label_sets = sets({{1, 0, 1}, {0, 1, 0}, {1, 1, 0}});
  writer.observe(batch, output);
  writer.commit(test::make_source(images));
}

}  // namespace

// softplus(0) = ln 2, softplus(ln 3) = ln 4, softplus(-ln 3) = ln(4/3).
TEST(SigmoidCrossEntropy, A34_ByHand) {
  const Batch batch = batch_of_sets({{0, 1}, {1, 1}});
  const at::Tensor logits = torch::tensor({{0.0, kLog3}, {0.0, -kLog3}}, torch::kDouble);
  // Image 0: ln 2 + (ln 4 - ln 3); image 1: ln 2 + (ln(4/3) + ln 3).
  const double first = kLog2 + 2 * kLog2 - kLog3, second = kLog2 + 2 * kLog2;
  const at::Tensor each = sigmoid_cross_entropy(logits, batch.label_sets);
  EXPECT_NEAR(each[0].item<double>(), first, 1e-12);
  EXPECT_NEAR(each[1].item<double>(), second, 1e-12);
  EXPECT_NEAR(task_loss(logits, batch, TaskLoss::sigmoid_cross_entropy).item<double>(), (first + second) / 2, 1e-12);
  // Soft targets of 1/2 for the first class: softplus(0) - 0 / 2, and the second as before.
  Batch mixed = batch_of_sets({{0, 1}});
  mixed.targets = torch::tensor({{0.5, 1.0}}, torch::kDouble);
  EXPECT_NEAR(task_loss(logits.narrow(0, 0, 1), mixed, TaskLoss::sigmoid_cross_entropy).item<double>(), first, 1e-12);
}

// The gradient by z_k is (sigmoid(z_k) - t_k) / B.
TEST(SigmoidCrossEntropy, A34_GradientAgreesWithFiniteDifferencesAndTheFormula) {
  const at::Tensor logits = test::random_tensor({3, 4}, 5);
  const Batch batch = batch_of_sets({{1, 0, 1, 0}, {0, 0, 0, 1}, {1, 1, 1, 1}});
  const auto loss = [&] { return task_loss(logits, batch, TaskLoss::sigmoid_cross_entropy); };
  EXPECT_LT(test::gradient_error(loss, {logits}), 1e-8);
  logits.mutable_grad() = at::Tensor();
  loss().backward();
  const at::Tensor formula = (logits.detach().sigmoid() - batch.label_sets.to(torch::kDouble)) / 3;
  EXPECT_LT((logits.grad() - formula).abs().max().item<double>(), 1e-12);
}

TEST(SigmoidCrossEntropy, A34_StaysFiniteForLargeLogitsAndTakesClassIndices) {
  const at::Tensor logits = torch::tensor({{1e4, -1e4}}, torch::kFloat);
  EXPECT_EQ(sigmoid_cross_entropy(logits, torch::tensor({0}, torch::kLong)).item<double>(), 0);
  EXPECT_EQ(sigmoid_cross_entropy(logits, sets({{0, 1}})).item<double>(), 2e4);
  EXPECT_EQ(sigmoid_cross_entropy(logits.to(torch::kBFloat16), sets({{1, 0}})).scalar_type(), torch::kFloat);
}

// softmax([0, 0, ln 2]) = [1/4, 1/4, 1/2]; the set {0, 2} has targets of 1/2: (ln 4 + ln 2) / 2 = 1.5 ln 2.
TEST(TaskLoss, A34_CrossEntropyOfALabelSetIsTheMeanOverItsClasses) {
  const at::Tensor logits = torch::tensor({{0.0, 0.0, kLog2}}, torch::kDouble);
  EXPECT_NEAR(task_loss(logits, batch_of_sets({{1, 0, 1}})).item<double>(), 1.5 * kLog2, 1e-12);
}

TEST(TaskLoss, AutoFollowsTheDataThatAModelIsTrainedOn) {
  EXPECT_EQ(task_loss_named("auto", make_info(false)), TaskLoss::cross_entropy);
  EXPECT_EQ(task_loss_named("auto", make_info(true)), TaskLoss::sigmoid_cross_entropy);
  EXPECT_EQ(task_loss_named("cross_entropy", make_info(true)), TaskLoss::cross_entropy);
  EXPECT_EQ(task_loss_named("sigmoid_cross_entropy", make_info(false)), TaskLoss::sigmoid_cross_entropy);
}

TEST(CountCorrect, A34_TheLargestLogitIsAtOneOfTheLabels) {
  const at::Tensor logits = torch::tensor({{1.0, 3.0, 2.0}, {1.0, 3.0, 2.0}, {5.0, 3.0, 2.0}});
  EXPECT_EQ(count_correct(logits, sets({{1, 1, 0}, {1, 0, 1}, {1, 1, 1}})), 2);
}

TEST(MultiLabelRecords, AreWrittenReadAndCompared) {
  const testing::TemporaryFolder folder;
  write_multi_label_records(folder.path("a"));
  write_multi_label_records(folder.path("b"), {1, 1, 1});
  const Records a = read_records(folder.path("a"));
  ASSERT_TRUE(a.multi_label());
  EXPECT_TRUE(a.label_sets.equal(sets({{1, 0, 1}, {0, 1, 0}, {1, 1, 0}})));
  EXPECT_TRUE(a.correct().equal(torch::tensor({true, false, true})));
  const Json result = compare_records(a, read_records(folder.path("b")));
  EXPECT_EQ(result["multi_label"], true);
  EXPECT_EQ(result["a"]["correct"], 2);
  EXPECT_EQ(result["b"]["correct"], 2);
  EXPECT_EQ(result["both"], 1);  // image 2
  test::write_records(folder.path("one"), {.ids = {"0", "1", "2"}, .labels = {0, 1, 0}});
  EXPECT_FALSE(read_records(folder.path("one")).multi_label());
  EXPECT_NE(
      testing::error_text([&] { compare_records(a, read_records(folder.path("one"))); }).find("different classes"),
      std::string::npos);
}

TEST(MultiLabelRecords, RefuseSetsThatContradictTheLabels) {
  const testing::TemporaryFolder folder;
  const auto message_with = [&](const at::Tensor& changed) {
    write_multi_label_records(folder.path("a"));
    TensorFile file = read_safetensors(folder.path("a") + "/records.safetensors");
    for (auto& [name, tensor] : file.tensors)
      if (name == "labels") tensor = changed;
    write_safetensors(folder.path("a") + "/records.safetensors", file);
    return testing::error_text([&] { read_records(folder.path("a")); });
  };
  const auto bytes = [](const at::Tensor& values) { return values.to(torch::kByte); };
  EXPECT_EQ(message_with(bytes(sets({{1, 0, 1}, {0, 1, 0}, {1, 1, 0}}))), "");
  EXPECT_NE(message_with(bytes(sets({{0, 0, 1}, {0, 1, 0}, {1, 1, 0}}))).find("first class"), std::string::npos);
  EXPECT_NE(message_with(bytes(sets({{1, 0, 1}, {0, 0, 0}, {1, 1, 0}}))).find("first class"), std::string::npos);
  EXPECT_NE(message_with(torch::full({3, 3}, 2, torch::kByte)).find("0 and 1"), std::string::npos);
  EXPECT_NE(message_with(torch::ones({3, 2}, torch::kByte)).find("does not match its index"), std::string::npos);
}

}  // namespace sparsight::multi_label_test
