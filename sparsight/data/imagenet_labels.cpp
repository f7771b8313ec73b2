#include "sparsight/data/imagenet_labels.h"

#include <sstream>

namespace sparsight {
namespace {

// Separated by semicolons; tools/make_imagenet_labels.py writes the file.
constexpr char kNames[] =
#include "sparsight/data/imagenet_labels.inc"
    ;

}  // namespace

const std::vector<std::string>& imagenet1k_labels() {
  static const std::vector<std::string> labels = [] {
    std::vector<std::string> names;
    std::istringstream text(kNames);
    for (std::string name; std::getline(text, name, ';');) names.push_back(name);
    return names;
  }();
  return labels;
}

}  // namespace sparsight
