#include "sparsight/data/transforms/rand_augment.h"

#include <algorithm>

#include "sparsight/data/transforms/augmentations.h"
#include "sparsight/data/transforms/pixel_ops.h"

namespace sparsight {
namespace {

struct AugmentationSet {
  const char* name;
  double largest;  // magnitude
  const std::vector<Augmentation>& (*list)();
};

const std::vector<AugmentationSet>& augmentation_sets() {
  static const std::vector<AugmentationSet> sets{{"torchvision", 30, torchvision_augmentations},
                                                 {"increasing", 10, increasing_augmentations}};
  return sets;
}

const AugmentationSet& augmentation_set(const std::string& operations) {
  return entry_named(operations, augmentation_sets(), "set of operations");
}

BorderFill border_fill(const RandAugmentOptions& options) {
  if (options.fill_color.empty()) return {static_cast<uint8_t>(options.fill)};
  return {options.fill_color.begin(), options.fill_color.end()};
}

}  // namespace

void RandAugmentOptions::declare(OptionSet& set) {
  std::vector<std::string> names;
  for (const AugmentationSet& known : augmentation_sets()) names.emplace_back(known.name);
  set.choice("operations", &operations, names, "torchvision's 14, or DeiT's 15 (timm's increasing set)");
  set.integer("ops", &ops, {0, 15}, "operations applied to each image, sampled with replacement");
  set.real("magnitude", &magnitude, {0, 30}, "their strength; the strongest is 30 of torchvision's and 10 of DeiT's");
  set.real("sigma", &sigma, {0, 30}, "standard deviation of the magnitude, which is sampled for each operation");
  set.real("probability", &probability, {0, 1}, "how often a sampled operation is applied");
  set.integer("fill", &fill, {0, 255}, "value of pixels that come from outside of the image");
  set.integers("fill_color", &fill_color, {0, 255}, "the same for each channel; []: fill for all");
}

double largest_magnitude(const std::string& operations) { return augmentation_set(operations).largest; }

std::vector<std::string> augmentations(const std::string& operations) {
  std::vector<std::string> names;
  for (const Augmentation& entry : augmentation_set(operations).list()) names.emplace_back(entry.name);
  return names;
}

at::Tensor augment(const at::Tensor& image, const std::string& name, double strength, bool mirrored, uint8_t fill) {
  for (const Augmentation& entry : torchvision_augmentations())
    if (name == entry.name) return entry.apply(image, mirrored ? -strength : strength, {fill});
  fail_usage("unknown augmentation \"", name, "\"; known: ", join(augmentations()));
}

TransformOp make_rand_augment(const RandAugmentOptions& options) {
  const AugmentationSet& set = augmentation_set(options.operations);
  if (options.magnitude > set.largest)
    fail_usage("rand_augment has magnitude ", options.magnitude, ", but the strongest of operations = \"", set.name,
               "\" is ", set.largest, "; lower it");
  return [options, fill = border_fill(options), largest = set.largest, list = &set.list()](const at::Tensor& image,
                                                                                           RandomStream& random) {
    at::Tensor result = byte_planes(image, "rand_augment");
    check_fill(fill, result.size(0));
    for (int64_t i = 0; i < options.ops; ++i) {
      const Augmentation& chosen = (*list)[random.below(std::ssize(*list))];
      // Nothing is sampled that the options make certain.
      if (options.probability < 1 && random.uniform() >= options.probability) continue;
      double magnitude = options.magnitude;
      if (options.sigma > 0) magnitude = std::clamp(magnitude + options.sigma * random.normal(), 0.0, largest);
      const double strength = magnitude / largest;
      result = chosen.apply(result, random.below(2) ? -strength : strength, fill);
    }
    return result;
  };
}

}  // namespace sparsight
