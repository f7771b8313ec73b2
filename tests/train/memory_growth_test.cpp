// Memory of a training run must not grow with its steps, although experts get other numbers of tokens in every step.
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/kernels/isa/isa.h"
#include "sparsight/models/make_model.h"
#include "sparsight/nn/init.h"
#include "sparsight/ops/random_fill.h"
#include "sparsight/train/algorithm.h"
#include "sparsight/train/run_config.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::memory_growth_test {
namespace {

constexpr int64_t kBatch = 64, kTokens = kBatch * 17;  // a class token and 4 x 4 patches

// The tiny model with experts in both blocks, trained on random images: the routing is another in every step.
class TinyTraining {
 public:
  explicit TinyTraining(const std::string& precision) {
    Config config = Config::from_text(testing::kTinyConfig, "test");
    for (const std::string& setting : {std::string("moe.blocks=[0,1]"), std::string("router.k=1"),
                                       std::string("optimizer.lr=0.01"), "train.precision=" + precision})
      config.set(setting);
    const Json resolved = resolve(config, config_sections());
    const auto model = make_model(resolved, {1, 16, 16, 4});
    initialize(*model, 1);
    const AlgorithmContext context{
        resolved, read_section<RunOptions>(resolved, "run"), read_section<TrainOptions>(resolved, "train"), {}, {},
        model};
    algorithm_ = make_component(algorithms(), resolved, "algorithm", context);
  }

  void train(int64_t steps) {
    for (; steps > 0; --steps, ++step_) {
      Batch batch;
      batch.images = uniform_like(at::empty({0}), {kBatch, 1, 16, 16}, RandomStream(1, "images", step_));
      batch.labels = at::arange(kBatch).remainder(4);
      Minibatches minibatches({batch});
      UpdateContext context;
      context.random = {1, step_};
      EXPECT_EQ(algorithm_->update(minibatches, context).not_finite, "");
    }
  }

 private:
  std::shared_ptr<Algorithm> algorithm_;
  uint64_t step_ = 0;
};

int64_t resident_bytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// The shapes of the matrices that torch multiplies in bf16 while this lives.
class ProductShapes {
 public:
  ProductShapes() {
    shapes().clear();
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(&record).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  ~ProductShapes() { at::removeCallback(handle_); }
  ProductShapes(const ProductShapes&) = delete;

  static std::set<std::vector<int64_t>>& shapes() {
    static std::set<std::vector<int64_t>> all;
    return all;
  }

 private:
  static std::unique_ptr<at::ObserverContext> record(const at::RecordFunction& function) {
    const std::string name = function.name();
    if (name != "aten::mm" && name != "aten::addmm") return nullptr;
    std::vector<int64_t> sizes;
    for (const c10::IValue& input : function.inputs()) {
      if (!input.isTensor() || !input.toTensor().defined() || input.toTensor().dim() != 2) continue;
      if (input.toTensor().scalar_type() != at::kBFloat16) return nullptr;
      sizes.insert(sizes.end(), input.toTensor().sizes().begin(), input.toTensor().sizes().end());
    }
    shapes().insert(sizes);
    return nullptr;
  }
  at::CallbackHandle handle_;
};

}  // namespace

// oneDNN keeps compiled kernels for every shape that it multiplies, so there must be few.
TEST(MemoryGrowth, Bf16ExpertsMultiplyMatricesOfFewShapes) {
  set_isa("avx2");  // where the kernels of ops/ do not multiply bf16 themselves
  TinyTraining training("bf16");
  const ProductShapes products;
  training.train(30);
  // Up to kTokens = 1088 rows an expert can have 8, 16, 24, 32, 40, 48, 56, 64, four numbers in each of the four
  // doublings to 1024, or 1280: 25 in six products.
  EXPECT_GT(ProductShapes::shapes().size(), 6u);
  EXPECT_LE(ProductShapes::shapes().size(), 25u * 6 + 20);
  set_isa("");
}

TEST(MemoryGrowth, StopsAfterTheFirstSteps) {
  for (const char* precision : {"fp32", "bf16"}) {
    TinyTraining training(precision);
    training.train(20);
    const int64_t before = resident_bytes();
    training.train(40);
    EXPECT_LE(resident_bytes() - before, 16 << 20) << precision;
  }
}

}  // namespace sparsight::memory_growth_test
