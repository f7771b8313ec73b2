#include "sparsight/dg/algorithms/erm_pp.h"

#include <cmath>
#include <set>

#include "sparsight/dg/algorithms/model_probe.h"
#include "sparsight/io/checkpoint.h"

namespace sparsight {
namespace {

constexpr int64_t kDivisions = 3;
constexpr std::string_view kLinear = "linear_optimizer/";

class ErmPlusPlus : public DomainAlgorithm {
 public:
  ErmPlusPlus(const ErmPlusPlusOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(context, 1, {.average = mean_from(options.sma_start, 1)}), options_(options) {
    std::set<std::string> names;
    for (const auto& [name, tensor] : head_parameters(model(), probe_model(model()).features)) names.insert(name);
    if (names.empty()) fail_usage("algorithm erm_pp trains the head first; do not freeze it");
    std::vector<OptimizedParameter> head;
    for (const OptimizedParameter& parameter : trainable_parameters(model(), context.train))
      if (names.contains(parameter.name)) head.push_back(parameter);
    linear_ = make_optimizer(context, std::move(head));
  }

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    UpdateContext scaled = context;
    scaled.lr_factor *= plateau_.factor();
    if (static_cast<int64_t>(context.random.step) >= options_.linear_steps) {
      return DomainAlgorithm::update(minibatches, scaled);
    }
    const std::vector<Batch> domains = split_domains(minibatches);
    const Batch joined = join_batches(domains);
    LossStep step(this->context(), weights(), scaled, 1);
    step.add(joined);
    UpdateResult result = step.finish_without_update();
    result.details["lr"] = options_.linear_lr * scaled.lr_factor;
    if (!result.not_finite.empty()) return result;
    linear_->step(options_.linear_lr * scaled.lr_factor);
    weights().zero_grad();
    // The average follows: until its start it is a copy of the weights.
    weights().step(scaled, {});
    return result;
  }

  void validated(double loss) override {
    if (steps_ >= options_.linear_steps) plateau_.add(loss);
  }
  bool has_converged() const override { return plateau_.divisions >= kDivisions; }

  AlgorithmState state() const override {
    AlgorithmState state = DomainAlgorithm::state();
    add_tensors(state, kLinear, linear_->state());
    state.values = {{"steps", steps_},
                    {"best", plateau_.best},
                    {"bad", plateau_.bad},
                    {"divisions", plateau_.divisions},
                    {"begun", plateau_.begun}};
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    DomainAlgorithm::load_state(state);
    linear_->load_state(tensors_under(kLinear, state.tensors));
    steps_ = state.values.at("steps").get<int64_t>();
    plateau_ = {state.values.at("best").get<double>(), state.values.at("bad").get<int64_t>(),
                state.values.at("divisions").get<int64_t>(), state.values.at("begun").get<bool>()};
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override { return pass.risk(); }
  void begin(const UpdateContext& update) override { steps_ = static_cast<int64_t>(update.random.step) + 1; }

 private:
  ErmPlusPlusOptions options_;
  std::shared_ptr<Optimizer> linear_;
  PlateauRate plateau_;
  int64_t steps_ = 0;  // updates of the whole model have begun if above linear_steps
};

}  // namespace

void ErmPlusPlusOptions::declare(OptionSet& set) {
  set.integer("linear_steps", &linear_steps, {0, 1'000'000'000}, "updates in which the head alone is trained")
      .search = {"linear_steps", ""};
  set.real("linear_lr", &linear_lr, {0, 1e6}, "learning rate of these updates, scaled by the schedule").search = {
      "linear_lr", "10^U(-5,-3.5)"};
  set.integer("sma_start", &sma_start, {0, 1'000'000'000}, "update from which on weights are averaged");
}

void PlateauRate::add(double loss) {
  constexpr double kRelative = 1e-4;  // by which a loss must be lower to count as better
  constexpr int64_t kPatience = 1;
  if (!begun || loss < best * (1 - kRelative)) {
    best = loss;
    bad = 0;
    begun = true;
  } else if (++bad > kPatience) {
    ++divisions;
    bad = 0;
  }
}

double PlateauRate::factor() const { return std::pow(0.1, static_cast<double>(divisions)); }

std::shared_ptr<Algorithm> make_erm_plus_plus(const ErmPlusPlusOptions& options, const AlgorithmContext& context) {
  return std::make_shared<ErmPlusPlus>(options, context);
}

}  // namespace sparsight
