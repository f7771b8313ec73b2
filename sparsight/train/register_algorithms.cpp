// The training algorithms for images of one domain, by name.
#include "sparsight/train/adversarial/fast_training.h"
#include "sparsight/train/adversarial/free_training.h"
#include "sparsight/train/adversarial/pgd_training.h"
#include "sparsight/train/adversarial/trades.h"
#include "sparsight/train/erm.h"

namespace sparsight {
namespace {

// The usual factory: Made(options, context).
template <class Made>
constexpr auto construct_algorithm =
    [](const auto& options, const AlgorithmContext& context) { return std::make_shared<Made>(options, context); };

}  // namespace

AlgorithmRegistry& algorithms() {
  static AlgorithmRegistry registry = [] {
    AlgorithmRegistry list("algorithm");
    list.add<ErmOptions>(
        "erm", "empirical risk minimisation: the mean loss of the step's images plus the auxiliary losses",
        [](const ErmOptions&, const AlgorithmContext& context) { return std::make_shared<Erm>(context); },
        {.title = "ERM", .takes_ranks = true});
    list.add<PgdTrainingOptions>("pgd_training",
                                 "erm on images under a PGD attack at the current weights (Madry et al.)",
                                 construct_algorithm<PgdTraining>, {.takes_ranks = true});
    list.add<TradesOptions>("trades",
                            "erm plus the divergence of the probabilities under attack from those without (TRADES)",
                            construct_algorithm<Trades>, {.takes_ranks = true});
    list.add<FreeTrainingOptions>(
        "free", "each batch several times, with an attack that costs no passes of its own (Shafahi et al.)",
        construct_algorithm<FreeTraining>, {.takes_ranks = true});
    list.add<FastTrainingOptions>("fast", "erm on images after one attack step from a random start (Wong et al.)",
                                  construct_algorithm<FastTraining>, {.takes_ranks = true});
    return list;
  }();
  return registry;
}

}  // namespace sparsight
