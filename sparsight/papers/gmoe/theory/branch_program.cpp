#include "sparsight/papers/gmoe/theory/branch_program.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "sparsight/catalogue/model_sections.h"
#include "sparsight/core/config.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
#include "sparsight/ops/random_fill.h"
#include "sparsight/papers/gmoe/theory/training_parts.h"

namespace sparsight::gmoe {
namespace {

constexpr int64_t kInputs = 16, kHidden = 16, kBranches = 4;

at::Tensor draw_normal(at::IntArrayRef sizes, const RandomStream& stream) {
  return normal_like(at::empty({0}, at::kDouble), sizes, stream);
}

// The inputs have a constant 1 as their last coordinate, whose weights are the router's biases.
std::shared_ptr<MoeLayer> make_branch_layer(int64_t experts, uint64_t seed) {
  const Json settings = {{"moe", {{"experts", experts}, {"hidden", kHidden}}},
                         {"experts", {{"activation", "relu"}, {"init", "torch_linear"}}},
                         {"router", {{"name", "softmax_topk"}, {"k", 1}}},
                         {"losses", {{"vmoe_importance", 0.005}, {"vmoe_load", experts > 1 ? 0.005 : 0.0}}}};
  const Config config = Config::from_tables(settings, "the program of branches");
  const LayerContext context{.path = "moe", .width = kInputs + 1, .outputs = 1};
  auto layer = std::make_shared<MoeLayer>(read_moe_spec(resolve(config, model_sections())), context);
  initialize(*layer, seed);
  return layer;
}

MoeOutput run_layer(MoeLayer& layer, const at::Tensor& inputs, const ForwardMode& mode, const StepRandom& random) {
  const at::Tensor tokens = at::cat({inputs, at::ones({inputs.size(0), 1})}, 1);
  return layer.forward({tokens, {.images = tokens.size(0), .per_image = 1}, mode, random});
}

double relative_error(MoeLayer& layer, const BranchSamples& samples) {
  const at::NoGradGuard no_grad;
  const at::Tensor y = run_layer(layer, samples.inputs, ForwardMode::evaluation(), {}).tokens.squeeze(1);
  return (at::mse_loss(y, samples.targets) / samples.targets.var(false)).item<double>();
}

}  // namespace

BranchSamples sample_branches(int64_t samples, const std::vector<double>& shares, uint64_t seed, const char* purpose) {
  const auto stream = [&](const std::string& what) { return RandomStream(seed, "branches." + what); };
  at::Tensor w = draw_normal({kInputs}, stream("w"));
  w = w / w.norm();
  const double scale = 2 / std::sqrt(static_cast<double>(kInputs));
  const at::Tensor a = scale * draw_normal({kBranches, kInputs}, stream("a"));
  const at::Tensor b = scale * draw_normal({kBranches, kInputs}, stream("b"));

  const std::string own = std::string(purpose) + ".";
  const at::Tensor chance = uniform_like(w, {samples}, stream(own + "branch"));
  at::Tensor branch = at::zeros({samples}, at::kLong);
  double below = 0;
  for (size_t j = 0; j + 1 < shares.size(); ++j) branch = branch + (chance >= (below += shares[j])).to(at::kLong);
  const at::Tensor level = (branch + uniform_like(w, {samples}, stream(own + "level"))) / kBranches;
  const at::Tensor along = at::special_ndtri(level.clamp(1e-9, 1 - 1e-9));
  const at::Tensor free = draw_normal({samples, kInputs}, stream(own + "inputs"));
  const at::Tensor x = free + (along - free.matmul(w)).unsqueeze(1) * w;

  const at::Tensor all = 2 * at::tanh(x.matmul(a.t())) + x.matmul(b.t());  // [N,4]
  return {x.to(at::kFloat), all.gather(1, branch.unsqueeze(1)).squeeze(1).to(at::kFloat), branch};
}

BranchErrors train_on_branches(const BranchTraining& training) {
  const std::shared_ptr<MoeLayer> layer = make_branch_layer(training.experts, training.seed);
  const BranchSamples train = sample_branches(training.samples, kTrainShares, training.seed, "train");
  train_minibatches(*layer, {training.samples, training.steps, training.batch, training.lr, training.seed},
                    [&](const at::Tensor& index, int64_t step) {
                      const MoeOutput out =
                          run_layer(*layer, train.inputs.index_select(0, index), ForwardMode::training(),
                                    {training.seed, static_cast<uint64_t>(step)});
                      at::Tensor loss = at::mse_loss(out.tokens.squeeze(1), train.targets.index_select(0, index));
                      for (const NamedLoss& auxiliary : out.routing.losses)
                        loss = loss + auxiliary.weight * auxiliary.value;
                      return loss;
                    });
  const auto on = [&](const std::vector<double>& shares, const char* purpose) {
    return relative_error(*layer, sample_branches(training.test_samples, shares, training.seed, purpose));
  };
  return {on(kTrainShares, "test"), on(kEqualShares, "shifted")};
}

}  // namespace sparsight::gmoe
