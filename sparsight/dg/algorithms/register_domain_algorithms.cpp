// Every algorithm of domain generalisation, by name.
#include "sparsight/dg/algorithms/fishr.h"
#include "sparsight/dg/algorithms/group_dro.h"
#include "sparsight/dg/algorithms/information_bottleneck.h"
#include "sparsight/dg/algorithms/irm.h"
#include "sparsight/dg/algorithms/miro.h"
#include "sparsight/dg/algorithms/spectral_decoupling.h"
#include "sparsight/dg/algorithms/vrex.h"

namespace sparsight {
namespace {

void register_penalties(AlgorithmRegistry& list) {
  list.add<IrmOptions>("irm", "one classifier should be optimal in every domain (Arjovsky et al.)", make_irm);
  list.add<VrexOptions>("vrex", "the domains' risks should be equal (risk extrapolation; Krueger et al.)", make_vrex);
  list.add<GroupDroOptions>("group_dro", "domains weigh more the higher their risk (Sagawa et al.)", make_group_dro);
  list.add<SpectralDecouplingOptions>("sd", "small logits (spectral decoupling; Pezeshki et al.)",
                                      make_spectral_decoupling);
  list.add<IbErmOptions>("ib_erm", "features of little variance (information bottleneck; Ahuja et al.)", make_ib_erm);
  list.add<IbIrmOptions>("ib_irm", "irm with features of little variance (Ahuja et al.)", make_ib_irm);
  list.add<FishrOptions>("fishr", "gradients of the head with the same variance in every domain (Rame et al.)",
                         make_fishr);
  list.add<MiroOptions>("miro", "features that predict those of the pretrained model (Cha et al.)", make_miro);
}

}  // namespace

void register_domain_algorithms(AlgorithmRegistry& list) {
  register_penalties(list);
}

}  // namespace sparsight
