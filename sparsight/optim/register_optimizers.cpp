// Every optimiser, by name.
#include "sparsight/optim/adam.h"
#include "sparsight/optim/factored_adam.h"
#include "sparsight/optim/muon.h"
#include "sparsight/optim/sgd.h"

namespace sparsight {

OptimizerRegistry& optimizers() {
  using Parameters = std::vector<OptimizedParameter>;
  static OptimizerRegistry registry = [] {
    OptimizerRegistry list("optimizer");
    list.add<SgdOptions>("sgd", "stochastic gradient descent with Nesterov momentum",
                         [](const SgdOptions& options, const Parameters& parameters) {
                           return std::make_shared<Sgd>(options, parameters);
                         });
    list.add<AdamOptions>("adam", "Adam, with weight decay as an L2 penalty",
                          [](const AdamOptions& options, const Parameters& parameters) {
                            return std::make_shared<Adam>(options, /*decoupled=*/false, parameters);
                          });
    list.add<AdamWOptions>("adamw", "Adam with decoupled weight decay",
                           [](const AdamWOptions& options, const Parameters& parameters) {
                             return std::make_shared<Adam>(options, /*decoupled=*/true, parameters);
                           });
    list.add<FactoredAdamOptions>("factored_adam",
                                  "Adam with a factored second moment: p + q numbers of state for a p x q matrix",
                                  [](const FactoredAdamOptions& options, const Parameters& parameters) {
                                    return std::make_shared<FactoredAdam>(options, parameters);
                                  });
    list.add<MuonOptions>("muon", "momentum whose matrices are made orthogonal, and AdamW for the rest",
                          [](const MuonOptions& options, const Parameters& parameters) {
                            return std::make_shared<Muon>(options, parameters);
                          });
    return list;
  }();
  return registry;
}

}  // namespace sparsight
