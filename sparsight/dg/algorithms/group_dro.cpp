#include "sparsight/dg/algorithms/group_dro.h"

#include <ATen/ops/dot.h>
#include <ATen/ops/ones_like.h>

#include "sparsight/dg/algorithms/saved_tensor.h"

namespace sparsight {
namespace {

class GroupDro : public DomainAlgorithm {
 public:
  GroupDro(const GroupDroOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(context, 1), options_(options) {}

  AlgorithmState state() const override {
    AlgorithmState state = DomainAlgorithm::state();
    save_tensor(state, "group_dro/q", q_);
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    DomainAlgorithm::load_state(state);
    q_ = saved_tensor(state, "group_dro/q");
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans& log) override {
    const at::Tensor risks = pass.risks(), detached = risks.detach();
    if (!q_.defined()) q_ = at::ones_like(detached);
    next_ = q_ * (options_.eta * detached).exp();
    next_ = next_ / next_.sum();
    log_value(log, "worst_risk", detached.max());
    return at::dot(next_, risks);
  }
  void accept() override { q_ = next_; }

 private:
  GroupDroOptions options_;
  at::Tensor q_, next_;  // [E]
};

}  // namespace

void GroupDroOptions::declare(OptionSet& set) {
  set.real("eta", &eta, {0, 1e6}, "step size of the domains' weights").search = {"groupdro_eta", "10^U(-3,-1)"};
}

std::shared_ptr<Algorithm> make_group_dro(const GroupDroOptions& options, const AlgorithmContext& context) {
  return std::make_shared<GroupDro>(options, context);
}

}  // namespace sparsight
