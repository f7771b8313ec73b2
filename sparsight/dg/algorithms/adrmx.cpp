#include "sparsight/dg/algorithms/adrmx.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/dg/algorithms/adam_betas.h"
#include "sparsight/dg/algorithms/dann.h"
#include "sparsight/dg/algorithms/mlp_layers.h"
#include "sparsight/dg/algorithms/model_probe.h"
#include "sparsight/dg/algorithms/side_optimizer.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/weights.h"
#include "sparsight/nn/init.h"

namespace sparsight {
namespace {

constexpr double kAdrmxBeta2 = 0.9;
constexpr std::string_view kDomainModel = "adrmx.domain_model/";

// What knows the number of domains: made in the first step, or from a checkpoint.
struct DomainNetworks {
  MlpLayers discriminator, domain_head;
  SideOptimizer discriminator_optimizer, domain_head_optimizer;
  int64_t domains = 0;

  DomainNetworks(int64_t count, int64_t width, const AdrmxOptions& options, double lr, const StepRandom& random)
      : discriminator(layers(count, width, options), random, "adrmx.discriminator"),
        domain_head({width, width / 2, width / 4, count}, random, "adrmx.domain_head"),
        domains(count) {
    const AdamSettings adam{.lr = lr, .beta1 = options.beta1, .beta2 = kAdrmxBeta2};
    discriminator_optimizer = SideOptimizer("adrmx.discriminator", discriminator.tensors(), adam);
    domain_head_optimizer = SideOptimizer("adrmx.domain_head", domain_head.tensors(), adam);
  }

  static std::vector<int64_t> layers(int64_t domains, int64_t width, const AdrmxOptions& options) {
    std::vector<int64_t> widths(static_cast<size_t>(options.mlp_depth), options.mlp_width);
    widths.front() = width;
    widths.push_back(domains);
    return widths;
  }
};

// Both networks have the same layers, so that with one seed they would draw the same numbers. A seed near the run's
// would make them those of another run.
uint64_t domain_model_seed(const StepRandom& random) { return RandomStream(random.seed, "adrmx.domain_model").seed(); }

// Pretrained weights are those of both networks. Random ones are drawn anew: with those of the model, x - d would be 0,
// where cosines have no direction.
std::shared_ptr<ImageModel> new_domain_model(const AlgorithmContext& context) {
  std::shared_ptr<ImageModel> domain_model = copy_of_model(context);
  if (context.train.init_from.empty()) initialize(*domain_model, domain_model_seed(initial_random(context)));
  return domain_model;
}

std::vector<OptimizedParameter> own_parameters(ImageModel& domain_model, const MlpLayers& head,
                                               const TrainOptions& train) {
  std::vector<OptimizedParameter> all = trained(head.tensors(), "adrmx.head.");
  for (OptimizedParameter parameter : trainable_parameters(domain_model, train)) {
    parameter.name = "adrmx.domain." + parameter.name;
    all.push_back(parameter);
  }
  return all;
}

class Adrmx : public DomainAlgorithm {
 public:
  Adrmx(const AdrmxOptions& options, const AlgorithmContext& context)
      : Adrmx(options, context, new_domain_model(context), probe_widths(*context.model)) {}

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    const std::vector<Batch> domains = split_domains(minibatches);
    make_networks(static_cast<int64_t>(domains.size()));
    const auto n = static_cast<int64_t>(context.random.step) + 1;
    return discriminator_turn(n, options_.d_steps) ? train_discriminator(domains, context)
                                                   : train_model(domains, context);
  }

  AlgorithmState state() const override {
    AlgorithmState state = DomainAlgorithm::state();
    add_tensors(state, kDomainModel, named_weights(*domain_model_));
    state.values["domains"] = networks_ ? networks_->domains : 0;
    if (networks_) {
      networks_->discriminator_optimizer.save(state);
      networks_->domain_head_optimizer.save(state);
    }
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    DomainAlgorithm::load_state(state);
    load_tensors(named_weights(*domain_model_), state, kDomainModel);
    networks_.reset();
    if (const auto domains = state.values.at("domains").get<int64_t>(); domains > 0) {
      make_networks(domains);
      networks_->discriminator_optimizer.load(state);
      networks_->domain_head_optimizer.load(state);
    }
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override { return pass.risk(); }

 private:
  Adrmx(const AdrmxOptions& options, const AlgorithmContext& context, const std::shared_ptr<ImageModel>& domain_model,
        const OutputWidths& widths)
      : Adrmx(options, context, domain_model, widths,
              MlpLayers({widths.features, widths.features / 2, widths.features / 4, widths.classes},
                        initial_random(context), "adrmx.head")) {}
  Adrmx(const AdrmxOptions& options, const AlgorithmContext& context, const std::shared_ptr<ImageModel>& domain_model,
        const OutputWidths& widths, const MlpLayers& head)
      : DomainAlgorithm(with_betas(context, options.beta1, kAdrmxBeta2), 1,
                        {.own = own_parameters(*domain_model, head, context.train)}),
        options_(options),
        domain_model_(domain_model),
        head_(head),
        width_(widths.features) {
    if (width_ < 4) fail_usage("algorithm adrmx needs a model with at least 4 features, this one has ", width_);
  }

  void make_networks(int64_t domains) {
    if (!networks_)
      networks_.emplace(domains, width_, options_, base_learning_rate(context()), initial_random(context()));
    if (domains != networks_->domains)
      fail("this step has images of ", domains, " domains, those before had ", networks_->domains);
  }

  struct Passes {
    ModelOutput label, domain;
    at::Tensor x, d;  // [B,D]
  };
  Passes forward(const LossStep& step, const Batch& joined, const UpdateContext& context) {
    Passes passes{.label = step.forward(joined, joined.images), .domain = {}, .x = {}, .d = {}};
    StepRandom random = context.random;
    random.seed = domain_model_seed(random);
    passes.domain = domain_model_->features({.images = joined.images,
                                             .mode = ForwardMode::training(),
                                             .random = random,
                                             .info = {.image = step.numbers(joined)}});
    passes.x = passes.label.features.to(at::kFloat);
    passes.d = passes.domain.features.to(at::kFloat);
    return passes;
  }

  // L_d of x - d [B,D].
  at::Tensor domain_loss(const at::Tensor& clean, const at::Tensor& positions, const UpdateContext& context) const {
    const at::Tensor logits = networks_->discriminator.forward(clean, options_.mlp_dropout, context.random);
    return at::cross_entropy_loss(logits, positions);
  }

  UpdateResult train_discriminator(const std::vector<Batch>& domains, const UpdateContext& context) {
    const Batch joined = join_batches(domains);
    UpdateResult result;
    at::Tensor input;
    {
      const at::NoGradGuard no_grad;
      const LossStep step(this->context(), weights(), context, 1);
      const Passes passes = forward(step, joined, context);
      input = passes.x - passes.d;
    }
    const at::Tensor loss = domain_loss(input, domain_positions(domains), context);
    result.means.add("discriminator_loss", loss.item<double>(), 1);
    if (!networks_->discriminator_optimizer.minimize(loss, context)) result.not_finite = "loss";
    return result;
  }

  UpdateResult train_model(const std::vector<Batch>& domains, const UpdateContext& context) {
    const Batch joined = join_batches(domains);
    LossStep step(this->context(), weights(), context, 1);
    networks_->domain_head_optimizer.zero_grad();
    const Passes passes = forward(step, joined, context);
    const at::Tensor positions = domain_positions(domains), &labels = joined.labels, clean = passes.x - passes.d;
    at::Tensor task =
        at::cross_entropy_loss(passes.label.logits, labels) + at::cross_entropy_loss(head_.forward(clean), labels);
    task = task + options_.domain_weight * at::cross_entropy_loss(networks_->domain_head.forward(passes.d), positions);
    task = task + options_.remix_weight * remix_loss(clean, passes.d, labels, context);
    task = task + options_.contrastive_weight * (domain_contrastive_loss(passes.x, labels, positions) +
                                                 domain_contrastive_loss(clean, labels, positions));
    task = task - options_.disc_weight * domain_loss(clean, positions, context);
    for (const NamedLoss& loss : passes.domain.losses) task = task + loss.weight * loss.value;
    step.add(joined, {passes.label}, task);
    UpdateResult result = step.finish();
    if (result.not_finite.empty()) networks_->domain_head_optimizer.step(context);
    return result;
  }

  at::Tensor remix_loss(const at::Tensor& clean, const at::Tensor& d, const at::Tensor& labels,
                        const UpdateContext& context) {
    RandomStream random = context.random.stream("adrmx.remix");
    const int64_t classes = head_.tensors().back().second.size(0);
    std::vector<int64_t> first, second;
    for (int64_t c = 0; c < classes; ++c) {
      const at::Tensor own = at::nonzero(labels.eq(c)).squeeze(1);
      if (own.numel() < 2) continue;
      const int64_t i = random.below(own.numel()), step = 1 + random.below(own.numel() - 1);
      first.push_back(own[i].item<int64_t>());
      second.push_back(own[(i + step) % own.numel()].item<int64_t>());
    }
    if (first.empty()) return at::zeros({});
    const at::Tensor i = at::tensor(first), j = at::tensor(second);
    const at::Tensor logits = classify(model(), clean.index_select(0, i) + d.index_select(0, j));
    return at::cross_entropy_loss(logits, labels.index_select(0, i), {}, at::Reduction::Sum) / classes;
  }

  AdrmxOptions options_;
  std::shared_ptr<ImageModel> domain_model_;  // of which the head is not used
  MlpLayers head_;                            // c2
  int64_t width_;
  std::optional<DomainNetworks> networks_;
};

}  // namespace

void AdrmxOptions::declare(OptionSet& set) {
  set.real("contrastive_weight", &contrastive_weight, {0, 1e9}, "weight of the contrastive losses").search = {
      "cnt_lambda", "{1.0}"};
  set.real("domain_weight", &domain_weight, {0, 1e9}, "weight of the loss of predicting domains from their features")
      .search = {"dclf_lambda", "{1.0}"};
  set.real("disc_weight", &disc_weight, {0, 1e9}, "weight of the discriminator's loss in that of the model").search = {
      "disc_lambda", "{0.75}"};
  set.real("remix_weight", &remix_weight, {0, 1e9}, "weight of the loss on features of two images").search = {
      "rmxd_lambda", "{1.0}"};
  set.integer("d_steps", &d_steps, {1, 1000}, "updates of the discriminator per update of the model").search = {
      "d_steps_per_g_step", "{2}"};
  set.real("beta1", &beta1, {0, 1}, "of Adam, for model and discriminator").search = {"beta1", "{0.5}"};
  set.integer("mlp_width", &mlp_width, {1, 100000}, "width of the discriminator's hidden layers").search = {"mlp_width",
                                                                                                            "{256}"};
  set.integer("mlp_depth", &mlp_depth, {1, 100}, "linear layers of the discriminator").search = {"mlp_depth",
                                                                                                 "{8,9,10}"};
  set.real("mlp_dropout", &mlp_dropout, {0, 0.99}, "dropout in the discriminator's hidden layers").search = {
      "mlp_dropout", ""};
}

std::vector<ProtocolDefault> adrmx_defaults() {
  return {{kPhotographs, "optimizer.lr", 3e-5, "{2e-5,3e-5,4e-5,5e-5}"},
          {kSmallImages, "optimizer.lr", 3e-3, "{5e-4,1e-3,2e-3,3e-3}"},
          {kEverySet, "optimizer.weight_decay", 0.0, "", "optimizer.weight_decay"}};
}

at::Tensor domain_contrastive_loss(const at::Tensor& features, const at::Tensor& labels, const at::Tensor& domains) {
  constexpr double kTemperature = 0.07, kWithin = 0.5, kFloor = 1e-5;
  const at::Tensor z = features / features.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12);
  const auto same = [](const at::Tensor& x) { return x.unsqueeze(1).eq(x.unsqueeze(0)); };
  const at::Tensor others = at::eye(z.size(0), at::kBool).logical_not();
  const at::Tensor within = same(domains).to(at::kFloat);
  const at::Tensor weight = (kWithin * within + (1 - kWithin) * (1 - within)) * others;
  const at::Tensor terms = weight * (at::matmul(z, z.t()) / kTemperature).exp();
  const at::Tensor share = (terms / (terms.sum(1, true) + kFloor) + kFloor).log();
  const at::Tensor positive = same(labels).logical_and(others).to(at::kFloat), count = positive.sum(1);
  const at::Tensor of_image = (share * positive).sum(1) / count.clamp_min(1);
  return -of_image.sum() / (count.gt(0).sum() + 1);
}

std::shared_ptr<Algorithm> make_adrmx(const AdrmxOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Adrmx>(options, context);
}

}  // namespace sparsight
