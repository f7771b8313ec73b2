#include "sparsight/dg/algorithms/sagnet.h"

#include <numeric>

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>

#include "sparsight/core/shuffle.h"
#include "sparsight/dg/algorithms/mlp_layers.h"
#include "sparsight/dg/algorithms/model_probe.h"
#include "sparsight/dg/algorithms/side_optimizer.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/ops/random_fill.h"

namespace sparsight {
namespace {

constexpr double kStyleEpsilon = 1e-5;

struct Style {
  at::Tensor mean, variance;  // [B,1]
  explicit Style(const at::Tensor& x) : mean(x.mean(1, true)), variance(x.var(1, /*unbiased=*/true, true)) {}
  at::Tensor deviation() const { return (variance + kStyleEpsilon).sqrt(); }
};

at::Tensor random_order(int64_t count, RandomStream random) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  shuffle(order, random);
  return at::tensor(order);
}

class SagNet : public DomainAlgorithm {
 public:
  SagNet(const SagNetOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(context, 1), options_(options), style_(new_style(context)) {
    const Json& optimizer = context.config.at("optimizer");
    style_optimizer_ =
        SideOptimizer("style", style_.tensors(),
                      {.lr = base_learning_rate(context), .weight_decay = optimizer.value("weight_decay", 0.0)});
  }

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    const Batch joined = join_batches(split_domains(minibatches));
    UpdateResult result = train_content(joined, context);
    if (!result.not_finite.empty()) return result;
    result.means.add("style_loss", train_style(joined, context), 1);
    UpdateResult adversary = train_adversary(joined, context);
    NamedMeans means;  // the model's own before those of the adversary
    means.add(result.means);
    adversary.details = result.details;
    adversary.means = means;
    return adversary;
  }

  AlgorithmState state() const override {
    AlgorithmState state = DomainAlgorithm::state();
    style_optimizer_.save(state);
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    DomainAlgorithm::load_state(state);
    style_optimizer_.load(state);
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override { return pass.risk(); }

 private:
  static MlpLayers new_style(const AlgorithmContext& context) {
    const OutputWidths widths = probe_widths(*context.model);
    return MlpLayers({widths.features, widths.classes}, initial_random(context), "sagnet.style");
  }

  UpdateResult train_content(const Batch& joined, const UpdateContext& context) {
    LossStep step(this->context(), weights(), context, 1);
    ModelOutput output = step.forward(joined, joined.images);
    const at::Tensor features = output.features.to(at::kFloat);
    const at::Tensor alpha = uniform_like(features, {features.size(0), 1}, context.random.stream("sagnet.alpha"));
    const at::Tensor others = random_order(features.size(0), context.random.stream("sagnet.style_of"));
    output.logits = classify(model(), with_random_style(features, alpha, others));
    step.add(joined, {output}, task_loss(output.logits, joined));
    return step.finish(/*last=*/false);
  }

  // s of the content-randomised features. stream_name: the stream of the permutation.
  at::Tensor style_logits(const at::Tensor& features, const UpdateContext& context, const char* stream_name) const {
    return style_.forward(with_random_content(features.to(at::kFloat),
                                              random_order(features.size(0), context.random.stream(stream_name))));
  }

  double train_style(const Batch& joined, const UpdateContext& context) {
    at::Tensor features;
    {
      const at::NoGradGuard no_grad;
      const LossStep step(this->context(), weights(), context, 1);
      features = step.forward(joined, joined.images).features;
    }
    const at::Tensor loss = task_loss(style_logits(features, context, "sagnet.content_of"), joined);
    style_optimizer_.minimize(loss, context);
    return loss.item<double>();
  }

  // The head gets no gradient, and so stays.
  UpdateResult train_adversary(const Batch& joined, const UpdateContext& context) {
    LossStep step(this->context(), weights(), context, 1);
    const ModelOutput output = step.forward(joined, joined.images);
    const at::Tensor logits = style_logits(output.features, context, "sagnet.adversary_content_of");
    step.add(joined, {output}, options_.adversary * -at::log_softmax(logits, 1).mean());
    return step.finish();
  }

  SagNetOptions options_;
  MlpLayers style_;
  SideOptimizer style_optimizer_;
};

}  // namespace

void SagNetOptions::declare(OptionSet& set) {
  set.real("adversary", &adversary, {0, 1e9}, "weight of the adversarial step (w)").search = {"sag_w_adv",
                                                                                              "10^U(-2,1)"};
}

at::Tensor with_random_style(const at::Tensor& features, const at::Tensor& alpha, const at::Tensor& others) {
  const Style style(features);
  const at::Tensor content = (features - style.mean) / style.deviation();
  const auto mixed = [&](const at::Tensor& own) { return alpha * own + (1 - alpha) * own.index_select(0, others); };
  return content * (mixed(style.variance) + kStyleEpsilon).sqrt() + mixed(style.mean);
}

at::Tensor with_random_content(const at::Tensor& features, const at::Tensor& others) {
  const Style style(features);
  const at::Tensor content = ((features - style.mean) / style.deviation()).index_select(0, others).detach();
  return content * style.deviation() + style.mean;
}

std::shared_ptr<Algorithm> make_sagnet(const SagNetOptions& options, const AlgorithmContext& context) {
  return std::make_shared<SagNet>(options, context);
}

}  // namespace sparsight
