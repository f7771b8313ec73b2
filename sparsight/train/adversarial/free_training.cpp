#include "sparsight/train/adversarial/free_training.h"

#include <algorithm>

#include <ATen/ops/zeros_like.h>
#include <nlohmann/json.hpp>

#include "sparsight/attacks/projection.h"
#include "sparsight/core/error.h"
#include "sparsight/dist/rank_zero.h"
#include "sparsight/dist/tensor_message.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/train/adversarial/adversary.h"
#include "sparsight/train/loss_step.h"

namespace sparsight {
namespace {

constexpr std::string_view kPerturbations = "perturbation/";

}  // namespace

void FreeTrainingOptions::declare(OptionSet& set) {
  set.integer("replays", &replays, {1, 1000},
              "times that each batch is trained on (m); train with 1 / m of the epochs");
  set.real("relative_step", &relative_step, {1e-6, 1000}, "step size of the attack divided by epsilon");
  threat.declare(set);
}

FreeTraining::FreeTraining(const FreeTrainingOptions& options, const AlgorithmContext& context)
    : Erm(context), options_(options), threat_(training_threat(context, options.threat)) {}

UpdateResult FreeTraining::replay(const std::vector<Batch>& batches, const UpdateContext& context) {
  LossStep step(this->context(), weights(), context, static_cast<int64_t>(batches.size()));
  std::vector<at::Tensor> next;
  for (size_t i = 0; i < batches.size(); ++i) {
    const at::Tensor& x = batches[i].images;
    const Projection project(x, threat_);
    Batch batch = batches[i];
    batch.images = project(x + perturbations_[i]).requires_grad_(true);
    step.add(batch);
    const at::Tensor& gradient = batch.images.grad();
    const at::NoGradGuard no_grad;
    if (!gradient.defined()) continue;  // the loss was not finite
    const double length = options_.relative_step * threat_.epsilon;
    next.push_back(project.to_ball(x + perturbations_[i] + length * ascent_direction(gradient, threat_.norm)) - x);
  }
  UpdateResult result = step.finish();
  if (result.not_finite.empty()) perturbations_ = std::move(next);
  return result;
}

UpdateResult FreeTraining::update(Minibatches& minibatches, const UpdateContext& context) {
  const std::vector<Batch> batches = minibatches.all();
  perturbations_.resize(batches.size());
  for (size_t i = 0; i < batches.size(); ++i) {
    at::Tensor& perturbation = perturbations_[i];
    if (!perturbation.defined() || perturbation.sizes() != batches[i].images.sizes())
      perturbation = at::zeros_like(batches[i].images);
  }
  UpdateResult result;
  for (int64_t m = 0; m < options_.replays; ++m) {
    UpdateContext replayed = context;
    replayed.random.step = context.random.step * static_cast<uint64_t>(options_.replays) + static_cast<uint64_t>(m);
    UpdateResult one = replay(batches, replayed);
    one.means.add(result.means);
    result = std::move(one);
    if (!result.not_finite.empty()) break;
  }
  return result;
}

// Those of all ranks on rank 0, in the order of the step's minibatches; on the others none.
std::vector<at::Tensor> FreeTraining::perturbations_of_all() const {
  dist::TensorMessage own;
  own.json = Json::array();
  for (const at::Tensor& perturbation : perturbations_) own.json.push_back(own.add(perturbation));
  std::vector<dist::TensorMessage> ranks;
  size_t most = 0;
  for (const std::string& bytes : dist::gather_bytes(*context().group, own.bytes())) {
    ranks.push_back(dist::TensorMessage::from_bytes(bytes));
    most = std::max(most, ranks.back().json.size());
  }
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < most; ++i)
    for (const dist::TensorMessage& rank : ranks)
      if (i < rank.json.size()) all.push_back(rank.get(rank.json.at(i)));
  return all;
}

AlgorithmState FreeTraining::state() const {
  AlgorithmState state = Erm::state();
  const std::vector<at::Tensor> all = context().group->size() == 1 ? perturbations_ : perturbations_of_all();
  for (size_t i = 0; i < all.size(); ++i) state.tensors.emplace_back(cat(kPerturbations, i), all[i]);
  return state;
}

void FreeTraining::load_state(const AlgorithmState& state) {
  Erm::load_state(state);
  perturbations_.clear();
  const NamedTensors found = tensors_under(kPerturbations, state.tensors);
  const dist::Group& group = *context().group;
  for (auto i = static_cast<size_t>(group.rank()); i < found.size(); i += static_cast<size_t>(group.size())) {
    const auto saved = std::ranges::find(found, std::to_string(i), &NamedTensors::value_type::first);
    if (saved == found.end()) fail("the checkpoint's training state lacks ", kPerturbations, i);
    perturbations_.push_back(saved->second.clone());
  }
}

}  // namespace sparsight
