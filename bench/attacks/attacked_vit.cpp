#include "bench/attacks/attacked_vit.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>

#include <nlohmann/json.hpp>

#include "bench/measure/own_process.h"
#include "sparsight/attacks/register_attacks.h"
#include "sparsight/core/config.h"
#include "sparsight/ops/cpu/arena.h"
#include "sparsight/train/run_config.h"

namespace sparsight::bench {
namespace {

// Keeps all images under attack, as if they shared the experts' capacity.
class TogetherUnderAttack : public AttackedImageModel {
 public:
  using AttackedImageModel::AttackedImageModel;
  bool coupled() const override { return true; }
};

}  // namespace

AttackedVit::AttackedVit(const ModelCase& which) : model_(which), attacked_(model_.model()) {
  batch_.pixels = model_.pixels();
  batch_.labels.label = model_.predict().argmax(1);
  batch_.image = at::arange(which.batch, at::kLong);
}

at::Tensor AttackedVit::input_gradient() {
  const at::AutoGradMode grad_mode(true);
  const at::Tensor x = batch_.pixels.detach().requires_grad_(true);
  const ModelOutput output = attacked_.forward(x, {.image = batch_.image});
  const at::Tensor loss = at::cross_entropy_loss(output.logits, batch_.labels.label, {}, at::Reduction::Sum);
  loss.backward({}, /*retain_graph=*/false, /*create_graph=*/false, {{x}});
  return x.grad();
}

void AttackedVit::attack(int64_t steps) {
  AttackedImageModel model(model_.model());
  Pgd({.steps = steps, .keep = "last"}, {}).pixels(model, batch_);
}

AttackResult AttackedVit::targeted(int64_t targets, int64_t steps, double epsilon, bool leave) {
  const AttackContext context{.threat = {.epsilon = epsilon}};
  const auto attack = attacks().make("apgd_t", Json{{"targets", targets}, {"steps", steps}}, "attack", context);
  if (leave) {
    AttackedImageModel model(model_.model());
    return attack->run(model, batch_);
  }
  TogetherUnderAttack model(model_.model());
  return attack->run(model, batch_);
}

std::shared_ptr<Algorithm> AttackedVit::algorithm(const std::string& name, int64_t steps) const {
  AlgorithmContext context;
  context.config = resolve(Config::from_text("", "attack bench"), config_sections());
  context.model = model_.model();
  const Json settings = name == "erm" ? Json::object() : Json{{"steps", steps}};
  return algorithms().make(name, settings, "algorithm", context);
}

void AttackedVit::update(Algorithm& algorithm) {
  const at::AutoGradMode grad_mode(true);
  Batch batch;
  batch.images = batch_.pixels;
  batch.labels = batch_.labels.label;
  Minibatches minibatches(std::vector<Batch>{batch});
  UpdateContext context;
  context.lr_factor = 0;  // the weights stay, so that all rounds do the same
  algorithm.update(minibatches, context);
}

double memory_per_image(const ModelCase& which, int64_t threads) {
  const auto measure = [&] {
    at::set_num_threads(static_cast<int>(threads));
    ModelCase one = which;
    one.batch = 1;
    AttackedVit(one).input_gradient();  // what libraries allocate on first use
    AttackedVit model(which);
    cpu::release_arena();
    return std::vector<double>{peak_growth([&] { model.input_gradient(); })};
  };
  return values_in_own_process(1, measure)[0] / static_cast<double>(which.batch);
}

}  // namespace sparsight::bench
