#include "sparsight/dg/algorithms/register_domain_algorithms.h"

#include "sparsight/dg/algorithms/adrmx.h"
#include "sparsight/dg/algorithms/arm.h"
#include "sparsight/dg/algorithms/cad.h"
#include "sparsight/dg/algorithms/caus_irl.h"
#include "sparsight/dg/algorithms/dann.h"
#include "sparsight/dg/algorithms/domain_mixup.h"
#include "sparsight/dg/algorithms/eqrm.h"
#include "sparsight/dg/algorithms/erm_pp.h"
#include "sparsight/dg/algorithms/erm_sma.h"
#include "sparsight/dg/algorithms/feature_matching.h"
#include "sparsight/dg/algorithms/fish.h"
#include "sparsight/dg/algorithms/fishr.h"
#include "sparsight/dg/algorithms/gradient_masks.h"
#include "sparsight/dg/algorithms/group_dro.h"
#include "sparsight/dg/algorithms/iga.h"
#include "sparsight/dg/algorithms/information_bottleneck.h"
#include "sparsight/dg/algorithms/irm.h"
#include "sparsight/dg/algorithms/miro.h"
#include "sparsight/dg/algorithms/mldg.h"
#include "sparsight/dg/algorithms/mtl.h"
#include "sparsight/dg/algorithms/rdm.h"
#include "sparsight/dg/algorithms/rsc.h"
#include "sparsight/dg/algorithms/sagnet.h"
#include "sparsight/dg/algorithms/selfreg.h"
#include "sparsight/dg/algorithms/spectral_decoupling.h"
#include "sparsight/dg/algorithms/swad.h"
#include "sparsight/dg/algorithms/transfer.h"
#include "sparsight/dg/algorithms/trm.h"
#include "sparsight/dg/algorithms/urm.h"
#include "sparsight/dg/algorithms/vrex.h"
#include "sparsight/dg/protocol_defaults.h"

namespace sparsight {
namespace {

// AlgorithmFacts::one_process
constexpr const char* kOnePass =
    "its loss is one of the images of all domains together, from one pass through the model";
constexpr const char* kOneAfterAnother = "it takes steps on one domain after the other";
constexpr const char* kComparesGradients = "it compares the gradients of the domains, where processes only add them up";

void register_penalties(AlgorithmRegistry& list) {
  list.add<IrmOptions>("irm", "one classifier should be optimal in every domain (Arjovsky et al.)", make_irm,
                       {.title = "IRM", .one_process = kOnePass});
  list.add<VrexOptions>("vrex", "the domains' risks should be equal (risk extrapolation; Krueger et al.)", make_vrex,
                        {.title = "VREx", .compares = 2, .one_process = kOnePass});
  list.add<GroupDroOptions>("group_dro", "domains weigh more the higher their risk (Sagawa et al.)", make_group_dro,
                            {.title = "GroupDRO", .one_process = kOnePass});
  list.add<SpectralDecouplingOptions>("sd", "small logits (spectral decoupling; Pezeshki et al.)",
                                      make_spectral_decoupling, {.title = "SD", .one_process = kOnePass});
  list.add<IbErmOptions>("ib_erm", "features of little variance (information bottleneck; Ahuja et al.)", make_ib_erm,
                         {.title = "IB_ERM", .one_process = kOnePass});
  list.add<IbIrmOptions>("ib_irm", "irm with features of little variance (Ahuja et al.)", make_ib_irm,
                         {.title = "IB_IRM", .one_process = kOnePass});
  list.add<FishrOptions>("fishr", "gradients of the head with the same variance in every domain (Rame et al.)",
                         make_fishr, {.title = "Fishr", .compares = 2, .one_process = kOnePass});
  list.add<RdmOptions>("rdm", "losses with the same distribution in the worst domain and in all (Nguyen et al.)",
                       make_rdm, {.title = "RDM", .domains = 2, .one_process = kOnePass});
  declare_defaults("rdm", rdm_defaults());
  list.add<EqrmOptions>("eqrm", "a quantile of the domains' risks (Eastwood et al.)", make_eqrm,
                        {.title = "EQRM", .domains = 2, .one_process = kOnePass});
  list.add<MiroOptions>("miro", "features that predict those of the pretrained model (Cha et al.)", make_miro,
                        {.title = "MIRO", .one_process = kOnePass});
  declare_defaults("miro", miro_defaults());
}

void register_features(AlgorithmRegistry& list) {
  list.add<FeatureMatchingOptions>("coral", "features with the same mean and covariance in every domain (Sun et al.)",
                                   make_coral, {.title = "CORAL", .compares = 2, .one_process = kOnePass});
  list.add<FeatureMatchingOptions>("mmd", "features with the same distribution in every domain (Li et al.)", make_mmd,
                                   {.title = "MMD", .compares = 2, .one_process = kOnePass});
  list.add<FeatureMatchingOptions>("caus_irl_coral", "coral of two random parts of the domains (Chevalley et al.)",
                                   make_caus_irl_coral, {.title = "CausIRL_CORAL", .one_process = kOnePass});
  list.add<FeatureMatchingOptions>("caus_irl_mmd", "mmd of two random parts of the domains (Chevalley et al.)",
                                   make_caus_irl_mmd, {.title = "CausIRL_MMD", .one_process = kOnePass});
  list.add<DannOptions>("dann", "features that do not tell a discriminator the domain (Ganin et al.)", make_dann,
                        {.title = "DANN", .compares = 2, .one_process = kOnePass});
  declare_defaults("dann", dann_defaults());
  list.add<DannOptions>("cdann", "dann, class by class (Li et al.)", make_cdann,
                        {.title = "CDANN", .compares = 2, .one_process = kOnePass});
  declare_defaults("cdann", dann_defaults());
  list.add<CadOptions>("cad", "features whose neighbours are from other domains (Ruan et al.)", make_cad,
                       {.title = "CAD", .domains = 2, .one_process = kOnePass});
  declare_defaults("cad", cad_defaults());
  list.add<CadOptions>("cond_cad", "cad, class by class (Ruan et al.)", make_cond_cad,
                       {.title = "CondCAD", .domains = 2, .one_process = kOnePass});
  declare_defaults("cond_cad", cad_defaults());
  list.add<SagNetOptions>("sagnet", "content rather than style of the features (Nam et al.)", make_sagnet,
                          {.title = "SagNet", .one_process = kOnePass});
  list.add<RscOptions>("rsc", "without the features that matter most (self-challenging; Huang et al.)", make_rsc,
                       {.title = "RSC", .one_process = kOnePass});
  list.add<UrmOptions>("urm", "features that a discriminator takes for uniform noise (Krishnamachari et al.)", make_urm,
                       {.title = "URM", .one_process = kOnePass});
  declare_defaults("urm", urm_defaults());
  list.add<AdrmxOptions>("adrmx", "features less those of their domain, which a second model learns (Demirel et al.)",
                         make_adrmx, {.title = "ADRMX", .compares = 2, .one_process = kOnePass});
  declare_defaults("adrmx", adrmx_defaults());
  list.add<SelfRegOptions>("selfreg", "images of a class have similar features and logits (Kim et al.)", make_selfreg,
                           {.title = "SelfReg", .one_process = kOnePass});
}

void register_others(AlgorithmRegistry& list) {
  list.add<DomainMixupOptions>("domain_mixup", "mixup of images from two domains (Xu et al., Yan et al.)",
                               make_domain_mixup, {.title = "Mixup", .compares = 2, .one_process = kOnePass});
  list.add<MldgOptions>("mldg", "a step on some domains should help on others (Li et al.)", make_mldg,
                        {.title = "MLDG", .domains = 2, .one_process = kOneAfterAnother});
  list.add<FishOptions>("fish", "domains with aligned gradients, by steps on one after the other (Shi et al.)",
                        make_fish, {.title = "Fish", .one_process = kOneAfterAnother});
  list.add<AndMaskOptions>("and_mask", "updates only where the domains' gradients agree in sign (Parascandolo et al.)",
                           make_and_mask, {.title = "ANDMask", .compares = 2, .one_process = kComparesGradients});
  list.add<SandMaskOptions>("sand_mask", "and_mask with a smooth mask (Shahtalebi et al.)", make_sand_mask,
                            {.title = "SANDMask", .domains = 2, .one_process = kComparesGradients});
  list.add<IgaOptions>("iga", "gradients close to their mean over domains (Koyama and Yamaguchi)", make_iga,
                       {.title = "IGA", .compares = 2, .one_process = kComparesGradients});
  list.add<MtlOptions>("mtl", "a classifier that knows the domain's mean features (Blanchard et al.)", make_mtl,
                       {.title = "MTL", .one_process = kOnePass, .predicts = true});
  list.add<ArmOptions>("arm", "a model that sees a context of its batch (adaptive risk; Zhang et al.)", make_arm,
                       {.title = "ARM", .one_process = kOnePass, .predicts = true});
  declare_defaults("arm", arm_defaults());
  list.add<TransferOptions>("transfer", "features on which no head near ours has unequal risks (Zhang et al.)",
                            make_transfer, {.title = "Transfer", .domains = 2, .one_process = kOnePass});
  declare_defaults("transfer", transfer_defaults());
  list.add<TrmOptions>("trm", "every domain's best head should have a low risk in the others (Xu and Jaakkola)",
                       make_trm, {.title = "TRM", .domains = 2, .one_process = kOnePass});
  list.add<ErmPlusPlusOptions>("erm_pp", "erm that starts with the head, averages weights and lowers its rate (ERM++)",
                               make_erm_plus_plus, {.title = "ERMPlusPlus", .one_process = kOnePass});
  list.add<SwadOptions>("swad", "erm and the mean of the weights along a valley of the validation loss (Cha et al.)",
                        make_swad, {.title = "SWAD", .one_process = kOnePass});
  declare_defaults("swad", swad_defaults());
  list.add<ErmSmaOptions>("erm_sma", "erm and the mean of the weights from a step on (Arpit et al.)", make_erm_sma,
                          {.title = "ERM-SMA", .one_process = kOnePass});
}

}  // namespace

void register_domain_algorithms(AlgorithmRegistry& list) {
  register_penalties(list);
  register_features(list);
  register_others(list);
}

}  // namespace sparsight
