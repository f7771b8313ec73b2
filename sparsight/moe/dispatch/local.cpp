#include "sparsight/moe/dispatch/dispatcher.h"
#include "sparsight/moe/dispatch/soft.h"
#include "sparsight/moe/soft_routing.h"

namespace sparsight {
namespace {

class LocalDispatcher final : public Dispatcher {
 public:
  at::Tensor run(const at::Tensor& tokens, const Routing& routing, Experts& experts,
                 const ExpertContext& context) override {
    return routing.soft ? run_soft_experts(tokens, *routing.soft, experts, context)
                        : experts.apply_routing(tokens, routing, context);
  }
};

}  // namespace

std::shared_ptr<Dispatcher> local_dispatcher() { return std::make_shared<LocalDispatcher>(); }

}  // namespace sparsight
