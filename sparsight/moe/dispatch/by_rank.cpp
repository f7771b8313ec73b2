#include "sparsight/moe/dispatch/by_rank.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "sparsight/ops/no_second_derivative.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The rows of each rank, and what the experts made of them, with a graph of its own.
struct RankPasses : torch::CustomClassHolder {
  dist::ExactParts* parts = nullptr;
  variable_list in, out, parameters;
};

class ByRank : public torch::autograd::Function<ByRank> {
 public:
  // leaves: the rows, and the parameters, for autograd to come here.
  static at::Tensor forward(AutogradContext* context, at::TensorList, const c10::intrusive_ptr<RankPasses>& passes) {
    context->saved_data["passes"] = c10::IValue::make_capsule(passes);
    variable_list out;
    for (const at::Tensor& of_rank : passes->out) out.push_back(of_rank.detach());
    return at::cat(out);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative();
    const auto passes = c10::static_intrusive_pointer_cast<RankPasses>(context->saved_data["passes"].toCapsule());
    variable_list of_rows, wanted = passes->parameters;
    int64_t first = 0;
    for (size_t r = 0; r < passes->in.size(); ++r) {
      const at::Tensor &in = passes->in[r], &out = passes->out[r];
      const at::Tensor grad = grads[0].narrow(0, first, in.size(0));
      first += in.size(0);
      wanted.resize(passes->parameters.size());
      if (in.requires_grad()) wanted.push_back(in);
      const variable_list found = torch::autograd::grad({out}, wanted, {grad}, /*retain_graph=*/std::nullopt,
                                                        /*create_graph=*/false, /*allow_unused=*/true);
      for (size_t p = 0; p < passes->parameters.size(); ++p)
        if (found[p].defined()) passes->parts->add(passes->parameters[p], static_cast<int64_t>(r), found[p]);
      if (in.requires_grad()) of_rows.push_back(found.back().defined() ? found.back() : at::zeros_like(in));
    }
    variable_list result(passes->parameters.size() + 2);  // and for the passes
    if (!of_rows.empty()) result.front() = at::cat(of_rows);
    return result;
  }
};

}  // namespace

at::Tensor compute_by_rank(Experts& experts, dist::ExactParts& parts, const at::Tensor& rows, const at::Tensor& counts,
                           const RowContext& context) {
  const auto passes = c10::make_intrusive<RankPasses>();
  passes->parts = &parts;
  for (const at::Tensor& parameter : experts.parameters())
    if (parameter.requires_grad()) passes->parameters.push_back(parameter);
  const bool differentiable = at::GradMode::is_enabled() && (rows.requires_grad() || !passes->parameters.empty());
  int64_t first = 0;
  for (int64_t r = 0; r < counts.size(0); ++r) {
    const int64_t count = counts[r].sum().item<int64_t>();
    const at::Tensor own = rows.narrow(0, first, count).detach();
    if (differentiable) own.requires_grad_(rows.requires_grad());
    RowContext of_rank = context;
    if (context.number.defined()) of_rank.number = context.number.narrow(0, first, count);
    passes->in.push_back(own);
    passes->out.push_back(experts.forward(own, at::constant_pad_nd(counts[r].cumsum(0), {1, 0}), of_rank));
    first += count;
  }
  if (!differentiable) return at::cat(passes->out);
  variable_list leaves{rows};
  leaves.insert(leaves.end(), passes->parameters.begin(), passes->parameters.end());
  return ByRank::apply(at::TensorList(leaves), passes);
}

}  // namespace sparsight
