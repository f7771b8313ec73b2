#include "bench/models/our_model.h"

#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "sparsight/catalogue/model_sections.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/ops/random_fill.h"
#include "sparsight/optim/adam.h"
#include "sparsight/optim/precision.h"

namespace sparsight::bench {
namespace {

constexpr double kLearningRate = 1e-4;

std::vector<std::string> case_settings(const ModelCase& which) {
  std::vector<std::string> settings{"model.size=" + ('"' + which.size + '"'), cat("model.patch=", which.patch)};
  if (which.routing == "dense") {
    settings.emplace_back("moe.blocks=[]");
    return settings;
  }
  if (which.routing == "gmoe") {  // Li et al. 2023 and their code
    settings.insert(settings.end(),
                    {"moe.blocks=[-4, -2]", "moe.experts=6", "experts.dropout=0.1", "router.name=cosine",
                     "capacity.factor=1.5", "capacity.rounding=floor_per_choice", "capacity.priority=max_gate"});
    return settings;
  }
  const bool mobile = which.routing == "mobile";
  settings.insert(settings.end(), {"moe.blocks=[-2, -1]", "router.noise=0.0"});
  settings.emplace_back(mobile ? "moe.experts=10" : "moe.experts=8");
  settings.emplace_back(mobile ? "router.name=per_image" : "router.name=softmax_topk");
  settings.emplace_back(which.routing == "top2" ? "router.k=2" : "router.k=1");
  return settings;
}

Json config_of_case(const ModelCase& which) {
  std::vector<Section> sections = model_sections();
  Config config;
  for (const std::string& setting : case_settings(which)) config.set(setting);
  return resolve(config, sections);
}

// Weights with which every part changes the output: a new model's class token and head, for example, are almost zero.
void fill(ImageModel& model) {
  const c10::AutoGradMode no_grad(false);
  for (auto& parameter : model.named_parameters()) {
    at::Tensor& value = parameter.value();
    const at::Tensor normal = normal_like(value, value.sizes(), RandomStream(1, parameter.key()));
    const bool is_expert = value.dim() == 3 && parameter.key().find("experts") != std::string::npos;
    const int64_t inputs = is_expert ? value.size(1) : value.dim() > 1 ? value.numel() / value.size(0) : 1;
    const bool scale = parameter.key().find("norm") != std::string::npos && parameter.key().ends_with("weight");
    value.copy_(inputs > 1 ? normal / std::sqrt(static_cast<double>(inputs)) : normal * 0.1 + (scale ? 1.0 : 0.0));
  }
}

}  // namespace

const std::vector<std::string>& routing_kinds() {
  static const std::vector<std::string> kinds{"dense", "top1", "top2", "mobile", "gmoe"};
  return kinds;
}

OurModel::OurModel(const ModelCase& which) : which_(which) {
  const Json config = config_of_case(which);
  const ImageShape shape{3, kSide, kSide, kClasses};
  model_ = make_model(config, shape, {});
  fill(*model_);
  pixels_ = at::sigmoid(normal_like(at::empty({0}), {which.batch, 3, kSide, kSide}, RandomStream(0, "pixels")));
  labels_ = at::arange(which.batch, at::kLong);
  const Cost cost = total(model_cost(config, shape, {.only_read_tokens = true}));
  operations_ = 2 * static_cast<double>(cost.multiply_adds) * static_cast<double>(which.batch);
}

void OurModel::save(const std::string& path) const {
  TensorFile file;
  for (const auto& [name, value] : named_weights(*model_)) file.tensors.emplace_back(name, value.detach());
  file.tensors.emplace_back("pixels", pixels_);
  file.tensors.emplace_back("labels", labels_);
  write_safetensors(path, file);
}

ModelOutput OurModel::forward(const ForwardMode& mode) const {
  return model_->forward({.images = pixels_, .mode = mode, .random = {1, step_}});
}

at::Tensor OurModel::logits() const {
  const c10::AutoGradMode no_grad(false);
  const AutocastScope autocast(which_.bf16);
  return forward(ForwardMode::evaluation()).logits.to(at::kFloat).contiguous();
}

void OurModel::compile() {
  program_ = std::make_shared<const ProgramModel>(
      model_->compile({.type = which_.bf16 ? WeightType::bf16 : WeightType::fp32}),
      ImageShape{.channels = 3, .height = kSide, .width = kSide, .classes = kClasses});
}

at::Tensor OurModel::predict() {
  const c10::AutoGradMode no_grad(false);
  return program_ ? program_->forward({.images = pixels_}).logits : forward(ForwardMode::evaluation()).logits;
}

double OurModel::train_step(int64_t batches, dist::GradientSum* sum) {
  if (!optimizer_) {
    std::vector<OptimizedParameter> parameters;
    for (const auto& parameter : model_->named_parameters()) parameters.push_back({parameter.key(), parameter.value()});
    optimizer_ = std::make_shared<Adam>(AdamWOptions(), /*decoupled=*/true, parameters);
  }
  ForwardMode mode = ForwardMode::training();
  mode.losses = which_.routing == "gmoe";  // the others have no auxiliary losses
  optimizer_->zero_grad();
  double last = 0;
  for (int64_t batch = 0; batch < batches; ++batch) {
    const ModelOutput out = [&] {
      const AutocastScope autocast(which_.bf16);
      return forward(mode);
    }();
    ++step_;
    at::Tensor loss = at::cross_entropy_loss(out.logits, labels_);
    for (const NamedLoss& auxiliary : out.losses) loss = loss + auxiliary.weight * auxiliary.value;
    loss.backward();
    if (sum) sum->add();
    last = loss.item<double>();
  }
  if (sum) sum->finish();
  optimizer_->step(kLearningRate);
  return last;
}

}  // namespace sparsight::bench
