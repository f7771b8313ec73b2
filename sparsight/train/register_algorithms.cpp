// Every training algorithm, by name.
#include "sparsight/train/erm.h"

namespace sparsight {

AlgorithmRegistry& algorithms() {
  static AlgorithmRegistry registry = [] {
    AlgorithmRegistry list("algorithm");
    list.add<ErmOptions>(
        "erm", "empirical risk minimisation: the mean loss of the step's images plus the auxiliary losses",
        [](const ErmOptions&, const AlgorithmContext& context) { return std::make_shared<Erm>(context); });
    return list;
  }();
  return registry;
}

}  // namespace sparsight
