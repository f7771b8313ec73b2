#include "sparsight/io/names/namings.h"

#include <utility>

namespace sparsight {

const std::vector<std::string>& naming_libraries() {
  static const std::vector<std::string> libraries{"timm", "torchvision", "huggingface", "transformers-5", "domainbed"};
  return libraries;
}

const std::vector<WeightNaming>& weight_namings() {
  static const auto all = [] {
    std::vector<WeightNaming> namings;
    for (const auto& family : {vit_namings, resnet_namings, mobilenet_namings, convnext_namings, mnist_cnn_namings})
      for (WeightNaming& naming : family()) namings.push_back(std::move(naming));
    return namings;
  }();
  return all;
}

}  // namespace sparsight
