#include "sparsight/attacks/register_attacks.h"

#include "sparsight/attacks/apgd/apgd.h"
#include "sparsight/attacks/apgd/apgd_targeted.h"
#include "sparsight/attacks/cascade_attack.h"
#include "sparsight/attacks/fab/fab.h"
#include "sparsight/attacks/fgsm.h"
#include "sparsight/attacks/pgd.h"
#include "sparsight/attacks/square/square.h"

namespace sparsight {
namespace {

// The usual factory: Made(options, context).
template <class Made>
constexpr auto construct_attack =
    [](const auto& options, const AttackContext& context) { return std::make_shared<Made>(options, context); };

}  // namespace

AttackRegistry& attacks() {
  static AttackRegistry registry = [] {
    AttackRegistry r("attack");
    r.add<FgsmOptions>("fgsm", "one step of length epsilon along the gradient's sign, or along the gradient for l2",
                       construct_attack<Fgsm>);
    r.add<PgdOptions>("pgd", "gradient steps of a fixed size, projected onto the ball (Madry et al.)",
                      construct_attack<Pgd>);
    r.add<ApgdOptions>("apgd", "PGD with momentum and a step size that adapts to each image (AutoPGD)",
                       construct_attack<Apgd>);
    r.add<ApgdTargetedOptions>("apgd_t", "AutoPGD on the targeted dlr loss, towards one class after the other",
                               construct_attack<ApgdTargeted>);
    r.add<FabOptions>("fab", "looks for the closest misclassified point, with a gradient for each class (FAB)",
                      construct_attack<Fab>);
    r.add<FabTargetedOptions>("fab_t", "FAB towards one class after the other", construct_attack<Fab>);
    r.add<SquareOptions>("square", "random changes of squares, without gradients (Square attack)",
                         construct_attack<Square>);
    r.add<CascadeOptions>("cascade",
                          "several of these, each on the images that the ones before did not fool (AutoAttack)",
                          construct_attack<CascadeAttack>);
    return r;
  }();
  return registry;
}

}  // namespace sparsight
