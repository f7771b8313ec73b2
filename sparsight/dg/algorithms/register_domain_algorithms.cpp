// Every algorithm of domain generalisation, by name.
#include "sparsight/dg/algorithms/cad.h"
#include "sparsight/dg/algorithms/caus_irl.h"
#include "sparsight/dg/algorithms/dann.h"
#include "sparsight/dg/algorithms/feature_matching.h"
#include "sparsight/dg/algorithms/fishr.h"
#include "sparsight/dg/algorithms/group_dro.h"
#include "sparsight/dg/algorithms/information_bottleneck.h"
#include "sparsight/dg/algorithms/irm.h"
#include "sparsight/dg/algorithms/miro.h"
#include "sparsight/dg/algorithms/rsc.h"
#include "sparsight/dg/algorithms/sagnet.h"
#include "sparsight/dg/algorithms/selfreg.h"
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

void register_features(AlgorithmRegistry& list) {
  list.add<FeatureMatchingOptions>("coral", "features with the same mean and covariance in every domain (Sun et al.)",
                                   make_coral);
  list.add<FeatureMatchingOptions>("mmd", "features with the same distribution in every domain (Li et al.)", make_mmd);
  list.add<FeatureMatchingOptions>("caus_irl_coral", "coral of two random parts of the domains (Chevalley et al.)",
                                   make_caus_irl_coral);
  list.add<FeatureMatchingOptions>("caus_irl_mmd", "mmd of two random parts of the domains (Chevalley et al.)",
                                   make_caus_irl_mmd);
  list.add<DannOptions>("dann", "features that do not tell a discriminator the domain (Ganin et al.)", make_dann);
  list.add<DannOptions>("cdann", "dann, class by class (Li et al.)", make_cdann);
  list.add<CadOptions>("cad", "features whose neighbours are from other domains (Ruan et al.)", make_cad);
  list.add<CadOptions>("cond_cad", "cad, class by class (Ruan et al.)", make_cond_cad);
  list.add<SagNetOptions>("sagnet", "content rather than style of the features (Nam et al.)", make_sagnet);
  list.add<RscOptions>("rsc", "without the features that matter most (self-challenging; Huang et al.)", make_rsc);
  list.add<SelfRegOptions>("selfreg", "images of a class have similar features and logits (Kim et al.)", make_selfreg);
}

}  // namespace

void register_domain_algorithms(AlgorithmRegistry& list) {
  register_penalties(list);
  register_features(list);
}

}  // namespace sparsight
