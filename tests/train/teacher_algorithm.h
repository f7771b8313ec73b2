// An algorithm that uses the whole interface: two optimisers, a deep copy of the model that predicts, its own tensors
// and numbers that the loss depends on, random numbers, and its own metrics.
#pragma once

#include <algorithm>

#include <ATen/ops/l1_loss.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "sparsight/eval/task_loss.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/weights.h"
#include "sparsight/train/algorithm.h"

namespace sparsight::testing {

struct TeacherOptions {
  double decay = 0.8;      // of the teacher's weights
  double head_lr = 0.05;   // of the head, which has an optimiser of its own
  int64_t fail_at = -1;    // the step at which the program "dies"
  bool forgetful = false;  // loses its numbers when it is resumed, as a broken algorithm would
  void declare(OptionSet& set) {
    set.real("decay", &decay, {0, 1}, "of the teacher's weights");
    set.real("head_lr", &head_lr, {0, 1}, "of the head");
    set.integer("fail_at", &fail_at, {-1, 1000}, "step");
    set.flag("forgetful", &forgetful, "loses its numbers");
  }
};

class Teacher : public Algorithm {
 public:
  Teacher(const TeacherOptions& options, const AlgorithmContext& given)
      : Algorithm(given), options_(options), teacher_(copy_of_model(given)) {
    std::vector<OptimizedParameter> head, body;
    for (OptimizedParameter& parameter : trainable_parameters(model(), given.train))
      (parameter.name.starts_with("head") ? head : body).push_back(parameter);
    body_ = make_optimizer(given, body);
    head_ = optimizers().make("sgd", Json{{"momentum", 0.9}}, "head", head);
    const auto classes = static_cast<int64_t>(given.data.classes.size());
    mean_logits_ = at::zeros({classes});
  }

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    if (static_cast<int64_t>(context.random.step) == options_.fail_at) fail("killed");
    body_->zero_grad();
    head_->zero_grad();
    UpdateResult result;
    std::vector<int64_t> domains;
    for (const Batch& batch : minibatches.all()) {
      domains.push_back(batch.domains[0].item<int64_t>());
      EXPECT_TRUE(batch.domains.eq(domains.back()).all().item<bool>());
      learn_from(batch, context, domains.size(), result.means);
    }
    body_->step(base_learning_rate(this->context()) * context.lr_factor);
    head_->step(options_.head_lr);
    follow();
    ++updates_;
    result.details = {{"domains", domains}, {"updates", updates_}};
    return result;
  }

  ModelOutput predict(const ModelInput& input) override { return teacher_->forward(input); }
  NamedTensors prediction_tensors() const override { return named_weights(*teacher_); }

  AlgorithmState state() const override {
    AlgorithmState state;
    add_tensors(state, "body/", body_->state());
    add_tensors(state, "head/", head_->state());
    add_tensors(state, "teacher/", named_weights(*teacher_));
    state.tensors.emplace_back("mean_logits", mean_logits_);
    state.values = {{"updates", updates_}, {"running_loss", running_loss_}};
    return state;
  }

  void load_state(const AlgorithmState& state) override {
    body_->load_state(tensors_under("body/", state.tensors));
    head_->load_state(tensors_under("head/", state.tensors));
    LoadOptions strict;
    strict.strict = true;
    load_weights(*teacher_, tensors_under("teacher/", state.tensors), strict);
    mean_logits_ = tensors_under("mean_logits", state.tensors).at(0).second;
    if (options_.forgetful) return;
    updates_ = state.values.at("updates");
    running_loss_ = state.values.at("running_loss");
  }

 private:
  void learn_from(const Batch& batch, const UpdateContext& context, size_t number, NamedMeans& means) {
    RandomStream random = context.random.stream(cat("teacher.noise.", number));
    const double noise = 0.1 * random.normal();
    const ModelOutput output = model().forward({batch.images + noise, ForwardMode::training(), context.random});
    at::Tensor target;
    {
      const torch::NoGradGuard no_grad;
      target = predict({batch.images}).logits.softmax(1);
    }
    const at::Tensor task = task_loss(output.logits - mean_logits_, batch);
    const at::Tensor consistency = at::l1_loss(output.logits.softmax(1), target);
    (task + (1 + running_loss_) * consistency).backward();
    running_loss_ = 0.9 * running_loss_ + 0.1 * task.item<double>();
    const torch::NoGradGuard no_grad;
    mean_logits_.lerp_(output.logits.mean(0), 0.1);
    means.add("task", task.item<double>(), 1);
    means.add("parts/consistency", consistency.item<double>(), 1);
  }

  void follow() {
    const torch::NoGradGuard no_grad;
    const NamedTensors own = named_weights(model()), followers = named_weights(*teacher_);
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i].second.is_floating_point()) followers[i].second.lerp_(own[i].second, 1 - options_.decay);
  }

  TeacherOptions options_;
  std::shared_ptr<ImageModel> teacher_;
  std::shared_ptr<Optimizer> body_, head_;
  at::Tensor mean_logits_;  // [K]
  int64_t updates_ = 0;
  double running_loss_ = 0;
};

// Registers the algorithm, as a program with its own algorithm does.
inline void register_teacher() {
  if (const auto names = algorithms().names(); std::find(names.begin(), names.end(), "teacher") != names.end()) return;
  algorithms().add<TeacherOptions>("teacher", "for tests",
                                   [](const TeacherOptions& options, const AlgorithmContext& context) {
                                     return std::make_shared<Teacher>(options, context);
                                   },
                                   {.predicts = true});
}

}  // namespace sparsight::testing
