#include "sparsight/models/register_models.h"

#include "sparsight/models/cnn.h"
#include "sparsight/models/convnext.h"
#include "sparsight/models/mlp.h"
#include "sparsight/models/mnist_cnn.h"
#include "sparsight/models/mobilenet.h"
#include "sparsight/models/patch_cnn.h"
#include "sparsight/models/resnet.h"
#include "sparsight/models/vit.h"
#include "sparsight/models/whitened_cnn.h"
#include "sparsight/models/wide_resnet.h"

namespace sparsight {
namespace {

template <class Model, class Options>
std::shared_ptr<ImageModel> construct(const Options& options, const ModelContext& context) {
  return std::make_shared<Model>(options, context);
}

}  // namespace

Registry<std::shared_ptr<ImageModel>, ModelContext>& models() {
  static auto registry = [] {
    Registry<std::shared_ptr<ImageModel>, ModelContext> r("model");
    r.add<VitOptions>("vit", "vision transformer; V-MoE with [moe] blocks", construct<Vit, VitOptions>);
    r.add<CnnOptions>("cnn", "small residual CNN; an optional MoE layer after the last stage",
                      construct<Cnn, CnnOptions>);
    r.add<MlpModelOptions>("mlp", "residual MLP on flattened images; MoE blocks route whole images",
                           construct<MlpModel, MlpModelOptions>);
    r.add<PatchCnnOptions>("patch_cnn", "two-layer CNN on patches, its filters divided among experts (pMoE)",
                           construct<PatchCnn, PatchCnnOptions>);
    r.add<WideResnetOptions>("wide_resnet",
                             "wide residual network with batch norm; its last convolution can be routed (WRN-pMoE)",
                             construct<WideResnet, WideResnetOptions>);
    r.add<ResnetOptions>("resnet",
                         "ResNet-18 to -152 under torchvision's names; an optional MoE layer after the last stage",
                         construct<Resnet, ResnetOptions>);
    r.add<MobilenetOptions>(
        "mobilenet", "MobileNetV2 under torchvision's names; dense, or its late blocks as experts of whole images",
        construct<Mobilenet, MobilenetOptions>);
    r.add<ConvNextOptions>("convnext", "ConvNeXt under timm's names; [moe] blocks route the positions of its maps",
                           construct<ConvNext, ConvNextOptions>);
    r.add<MnistCnnOptions>("mnist_cnn",
                           "DomainBed's CNN for 28x28 images; an optional MoE layer after the last convolution",
                           construct<MnistCnn, MnistCnnOptions>);
    r.add<WhitenedCnnOptions>("whitened_cnn",
                              "plain CNN whose first convolution whitens, of the CIFAR-10 speed records; an optional "
                              "MoE layer on the last map",
                              construct<WhitenedCnn, WhitenedCnnOptions>);
    return r;
  }();
  return registry;
}

}  // namespace sparsight
