#include "sparsight/dg/algorithms/dann.h"

#include <ATen/ops/bincount.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/core/error.h"
#include "sparsight/dg/algorithms/adam_betas.h"
#include "sparsight/dg/algorithms/mlp_layers.h"
#include "sparsight/dg/algorithms/model_probe.h"
#include "sparsight/dg/algorithms/side_optimizer.h"
#include "sparsight/ops/random_fill.h"
#include "sparsight/ops/softmax_cross_entropy.h"

namespace sparsight {
namespace {

constexpr double kBeta2 = 0.9;

// Made in the first step or from a checkpoint, which know how many domains there are.
struct Discriminator {
  MlpLayers layers;
  at::Tensor embedding;  // [K,D] of classes; undefined without
  SideOptimizer optimizer;
  int64_t domains = 0;

  Discriminator(int64_t of_domains, const OutputWidths& widths, bool conditional, const DannOptions& options,
                const StepRandom& random)
      : layers(layer_widths(of_domains, widths.features, options), random, "discriminator"), domains(of_domains) {
    NamedTensors tensors = layers.tensors();
    if (conditional) {
      embedding = normal_like(at::empty({0}), {widths.classes, widths.features}, random.stream("discriminator.classes"))
                      .set_requires_grad(true);
      tensors.emplace_back("classes", embedding);
    }
    optimizer = SideOptimizer(
        "discriminator", tensors,
        {.lr = options.lr_d, .beta1 = options.beta1, .beta2 = kBeta2, .weight_decay = options.weight_decay_d});
  }

  static std::vector<int64_t> layer_widths(int64_t domains, int64_t features, const DannOptions& options) {
    std::vector<int64_t> widths(static_cast<size_t>(options.mlp_depth), options.mlp_width);
    widths.front() = features;
    widths.push_back(domains);
    return widths;
  }
};

class Dann : public DomainAlgorithm {
 public:
  Dann(const DannOptions& options, bool conditional, const AlgorithmContext& context)
      : DomainAlgorithm(with_betas(context, options.beta1, kBeta2), 1), options_(options), conditional_(conditional) {}

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    const std::vector<Batch> domains = split_domains(minibatches);
    make_discriminator(static_cast<int64_t>(domains.size()));
    const auto n = static_cast<int64_t>(context.random.step) + 1;
    return discriminator_turn(n, options_.d_steps) ? train_discriminator(domains, context)
                                                   : train_model(domains, context);
  }

  AlgorithmState state() const override {
    AlgorithmState state = DomainAlgorithm::state();
    state.values["domains"] = discriminator_ ? discriminator_->domains : 0;
    if (discriminator_) discriminator_->optimizer.save(state);
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    DomainAlgorithm::load_state(state);
    discriminator_.reset();
    const auto domains = state.values.at("domains").get<int64_t>();
    if (domains == 0) return;
    make_discriminator(domains);
    discriminator_->optimizer.load(state);
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override { return pass.risk(); }

 private:
  void make_discriminator(int64_t domains) {
    if (!discriminator_)
      discriminator_.emplace(domains, probe_widths(model()), conditional_, options_, initial_random(context()));
    if (domains != discriminator_->domains)
      fail("this step has images of ", domains, " domains, those before had ", discriminator_->domains,
           "; train with loader.per_domain = true on domains that all have images");
  }

  // L_d of features [B,D], which need gradients where the gradient penalty is on.
  at::Tensor discriminator_loss(const at::Tensor& features, const std::vector<Batch>& domains, const Batch& joined,
                                const UpdateContext& context) const {
    const Discriminator& d = *discriminator_;
    const at::Tensor positions = domain_positions(domains);
    at::Tensor input = features.to(at::kFloat);
    if (conditional_) input = input + at::embedding(d.embedding, joined.labels);
    const at::Tensor logits = d.layers.forward(input, options_.mlp_dropout, context.random);
    at::Tensor loss = conditional_ ? class_balanced_loss(logits, positions, joined.labels, d.embedding.size(0))
                                   : softmax_cross_entropy(logits, positions).mean();
    if (options_.grad_penalty == 0) return loss;
    return loss + options_.grad_penalty * input_gradient_penalty(logits, positions, input);
  }

  UpdateResult train_discriminator(const std::vector<Batch>& domains, const UpdateContext& context) {
    const Batch joined = join_batches(domains);
    at::Tensor features;
    UpdateResult result;
    {
      const at::NoGradGuard no_grad;
      const LossStep step(this->context(), weights(), context, 1);
      features = step.forward(joined, joined.images).features.detach();
    }
    const at::Tensor loss = discriminator_loss(features.requires_grad_(true), domains, joined, context);
    result.means.add("discriminator_loss", loss.item<double>(), 1);
    if (!discriminator_->optimizer.minimize(loss, context)) result.not_finite = "loss";
    return result;
  }

  UpdateResult train_model(const std::vector<Batch>& domains, const UpdateContext& context) {
    LossStep step(this->context(), weights(), context, 1);
    const Batch joined = join_batches(domains);
    const DomainPass pass{domains, joined, step.forward(joined, joined.images), context};
    const at::Tensor adversary = discriminator_loss(pass.output.features, domains, joined, context);
    step.add(joined, {pass.output}, pass.risk() - options_.lambda * adversary);
    return step.finish();
  }

  DannOptions options_;
  bool conditional_;
  std::optional<Discriminator> discriminator_;
};

}  // namespace

void DannOptions::declare(OptionSet& set) {
  set.real("lambda", &lambda, {0, 1e9}, "weight of the discriminator's loss in that of the model").search = {
      "lambda", "10^U(-2,2)"};
  set.integer("d_steps", &d_steps, {1, 1000}, "updates of the discriminator per update of the model").search = {
      "d_steps_per_g_step", "floor(2^U(0,3))"};
  set.real("grad_penalty", &grad_penalty, {0, 1e9}, "weight of the squared gradient at the discriminator's input")
      .search = {"grad_penalty", "10^U(-2,1)"};
  set.real("beta1", &beta1, {0, 1}, "of Adam, for model and discriminator").search = {"beta1", "{0.0,0.5}"};
  set.real("lr_d", &lr_d, {0, 1e6}, "learning rate of the discriminator, scaled by the schedule").search = {
      "lr_d", "10^U(-5,-3.5)", "10^U(-4.5,-2.5)", 1e-3};
  set.real("weight_decay_d", &weight_decay_d, {0, 1e6}, "weight decay of the discriminator").search = {"weight_decay_d",
                                                                                                       "10^U(-6,-2)"};
  set.integer("mlp_width", &mlp_width, {1, 100000}, "width of the discriminator's hidden layers").search = {
      "mlp_width", "floor(2^U(6,10))"};
  set.integer("mlp_depth", &mlp_depth, {1, 100}, "linear layers of the discriminator").search = {"mlp_depth",
                                                                                                 "{3,4,5}"};
  set.real("mlp_dropout", &mlp_dropout, {0, 0.99}, "dropout in the discriminator's hidden layers").search = {
      "mlp_dropout", "{0.0,0.1,0.5}"};
}

std::vector<ProtocolDefault> dann_defaults() {
  return {{kEverySet, "optimizer.lr", {}, {}, "lr_g"}, {kEverySet, "optimizer.weight_decay", {}, {}, "weight_decay_g"}};
}

at::Tensor input_gradient_penalty(const at::Tensor& logits, const at::Tensor& domains, const at::Tensor& input) {
  const at::Tensor sum = softmax_cross_entropy(logits, domains).sum();
  const at::Tensor gradient =
      torch::autograd::grad({sum}, {input}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
  return gradient.square().sum(1).mean();
}

at::Tensor class_balanced_loss(const at::Tensor& logits, const at::Tensor& domains, const at::Tensor& labels,
                               int64_t classes) {
  const at::Tensor counts = at::bincount(labels, {}, classes).to(at::kFloat);
  const at::Tensor weights = 1 / (counts.index_select(0, labels) * classes);
  return (weights * softmax_cross_entropy(logits, domains)).sum();
}

std::shared_ptr<Algorithm> make_dann(const DannOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Dann>(options, /*conditional=*/false, context);
}

std::shared_ptr<Algorithm> make_cdann(const DannOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Dann>(options, /*conditional=*/true, context);
}

}  // namespace sparsight
