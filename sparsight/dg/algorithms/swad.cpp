#include "sparsight/dg/algorithms/swad.h"

#include <optional>

#include "sparsight/io/checkpoint.h"
#include "sparsight/io/weights.h"

namespace sparsight {
namespace {

constexpr std::string_view kSegment = "swad/segment/";

// The mean over the steps of a segment, which starts anew after each evaluation.
AverageRule swad_rule() {
  return {"swad", [](int64_t steps) { return 1 / static_cast<double>(steps + 1); }};
}

class Swad : public DomainAlgorithm {
 public:
  Swad(const SwadOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(without_averages(context), 1),
        valley_(options.valley),
        segment_(named_weights(*context.model), swad_rule()) {}

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    result_.reset();  // of a training that goes on after its end
    UpdateResult result = DomainAlgorithm::update(minibatches, context);
    if (result.not_finite.empty()) segment_.update(steps_++);
    return result;
  }

  void validated(double loss) override {
    if (steps_ == 0 || valley_.has_ended()) return;
    WeightSegment segment;
    segment.loss = loss;
    for (const auto& [name, tensor] : segment_.tensors()) segment.mean.emplace_back(name, tensor.clone());
    valley_.add(std::move(segment));
    steps_ = 0;
  }
  bool has_converged() const override { return valley_.has_ended(); }
  bool finish() override {
    make_result();
    return result_.has_value();
  }
  WeightAverage* weight_average() override { return result_ ? &*result_ : nullptr; }

  AlgorithmState state() const override {
    AlgorithmState state = DomainAlgorithm::state();
    add_tensors(state, kSegment, segment_.tensors());
    state.values["steps"] = steps_;
    state.values["has_result"] = result_.has_value();
    valley_.save(state);
    if (result_) add_tensors(state, kAverageTensors, result_->tensors());
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    DomainAlgorithm::load_state(state);
    segment_.load(tensors_under(kSegment, state.tensors));
    steps_ = state.values.at("steps").get<int64_t>();
    valley_.load(state);
    result_.reset();
    if (state.values.at("has_result").get<bool>()) make_result();
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override { return pass.risk(); }

 private:
  static AlgorithmContext without_averages(AlgorithmContext context) {
    context.train.ema_decay = 0;
    context.train.swa_start = 0;
    return context;
  }
  void make_result() {
    const LossValley end = valley_.finished();
    if (end.average().empty()) return;  // never evaluated
    result_.emplace(named_weights(model()), swad_rule());
    result_->load(end.average());
  }

  LossValley valley_;
  WeightAverage segment_;
  std::optional<WeightAverage> result_;  // after the training
  int64_t steps_ = 0;                    // in the segment
};

}  // namespace

void SwadOptions::declare(OptionSet& set) {
  set.integer("start", &valley.start, {1, 1000}, "evaluations whose first must be the best for the average to start")
      .search = {"n_converge", ""};
  set.integer("end", &valley.end, {1, 1000}, "evaluations that must all be above the threshold for it to end")
      .search = {"n_tolerance", ""};
  set.real("tolerance", &valley.tolerance, {0, 1000},
           "the threshold is the mean loss of the first evaluations times 1 + tolerance (0.2 for VLCS)")
      .search = {"tolerance_ratio", ""};
}

std::vector<ProtocolDefault> swad_defaults() {
  return {{"", "train.eval_every", 100},
          {"vlcs", "train.eval_every", 50},
          {"domain_net", "train.eval_every", 500},
          {"vlcs", "algorithm.tolerance", 0.2}};
}

std::shared_ptr<Algorithm> make_swad(const SwadOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Swad>(options, context);
}

}  // namespace sparsight
