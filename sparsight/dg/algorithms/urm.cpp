#include "sparsight/dg/algorithms/urm.h"

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/full_like.h>

#include "sparsight/dg/algorithms/mlp_layers.h"
#include "sparsight/dg/algorithms/model_probe.h"
#include "sparsight/dg/algorithms/side_optimizer.h"
#include "sparsight/ops/random_fill.h"

namespace sparsight {
namespace {

constexpr int64_t kUrmWidth = 100;
constexpr double kLeak = 0.01;

std::vector<int64_t> urm_widths(const UrmOptions& options, int64_t features) {
  std::vector<int64_t> widths{features};
  for (int64_t i = 0; i <= options.hidden_layers; ++i) widths.push_back(kUrmWidth);
  widths.push_back(1);
  return widths;
}

class Urm : public DomainAlgorithm {
 public:
  Urm(const UrmOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(context, 1),
        options_(options),
        discriminator_(urm_widths(options, probe_widths(*context.model).features), initial_random(context), "urm"),
        optimizer_("urm", discriminator_.tensors(),
                   {.lr = options.lr_d, .weight_decay = context.config.at("optimizer").value("weight_decay", 0.0)}) {}

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    UpdateResult result = DomainAlgorithm::update(minibatches, context);
    if (!result.not_finite.empty()) return result;
    const auto [low, high] = range();
    const at::Tensor features = squashed_.detach();
    squashed_.reset();  // and with it the graph
    const at::Tensor noise =
        low + (high - low) * uniform_like(features, features.sizes(), context.random.stream("urm.noise"));
    const at::Tensor loss = discriminator_loss(noise, 1) + options_.lambda * discriminator_loss(features, 0);
    result.means.add("discriminator_loss", loss.item<double>(), 1);
    optimizer_.minimize(loss, context);
    return result;
  }

  AlgorithmState state() const override {
    AlgorithmState state = DomainAlgorithm::state();
    optimizer_.save(state);
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    DomainAlgorithm::load_state(state);
    optimizer_.load(state);
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override {
    const at::Tensor features = pass.output.features.to(at::kFloat);
    squashed_ = options_.output == "tanh" ? features.tanh() : features.relu();
    return pass.risk() + options_.lambda * discriminator_loss(squashed_, 1);
  }

 private:
  struct Range {
    double low, high;
  };
  Range range() const { return options_.output == "tanh" ? Range{-1, 1} : Range{0, 1}; }
  at::Tensor discriminator_loss(const at::Tensor& input, double target) const {
    const at::Tensor logits = discriminator_.forward(input, kLeak);
    return at::binary_cross_entropy_with_logits(logits, at::full_like(logits, target));
  }

  UrmOptions options_;
  MlpLayers discriminator_;
  SideOptimizer optimizer_;
  at::Tensor squashed_;  // [B,D], of the last pass
};

}  // namespace

void UrmOptions::declare(OptionSet& set) {
  set.real("lambda", &lambda, {0, 1e9}, "weight of the discriminator's loss on features").search = {"urm_adv_lambda",
                                                                                                    "U(0,0.2)"};
  set.choice("output", &output, {"tanh", "relu"}, "what squashes the features for the discriminator");
  set.integer("hidden_layers", &hidden_layers, {0, 100}, "further hidden layers of the discriminator").search = {
      "urm_discriminator_hidden_layers", "{1,2,3}"};
  set.real("lr_d", &lr_d, {0, 1e6}, "learning rate of the discriminator, scaled by the schedule").search = {
      "urm_discriminator_lr", "10^U(-6,-4.5)", "10^U(-5.5,-3.5)", 1e-3};
}

std::vector<ProtocolDefault> urm_defaults() {
  return {{kEverySet, "algorithm.output", "tanh", R"({"tanh","relu"})", "urm_generator_output"},
          {kEverySet, "", "adversarial", "", "urm"},
          {kEverySet, "", "adam", "", "urm_discriminator_optimizer"},
          {kEverySet, "", 0.0, "", "urm_discriminator_label_smoothing"}};
}

std::shared_ptr<Algorithm> make_urm(const UrmOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Urm>(options, context);
}

}  // namespace sparsight
