// Results of the figures on small models for which their claims hold, and for which they fail.
#include "tests/papers/claim_tables.h"

namespace sparsight::testing {
namespace {

struct Learned {
  double accuracy, reliance;
};

// What a CNN, a ViT and a ViT-MoE have learned of example 1.
ClaimResult learned(double in_distribution, Learned cnn, Learned vit, Learned moe) {
  return [=](const Json& job) {
    const std::string model = job.at("model");
    const Learned& found = model == "CNN" ? cnn : model == "ViT" ? vit : moe;
    return Json{{"accuracy", found.accuracy},
                {"in_distribution", in_distribution},
                {"conflicting", found.accuracy - found.reliance / 2},
                {"together", found.accuracy + found.reliance / 2},
                {"reliance", found.reliance},
                {"worst", found.accuracy - found.reliance / 2}};
  };
}

// Changes by attention, by MLPs and by convolutions, of the feature maps and of the operation alone.
ClaimResult changes(double attention, double mlp, double convolution) {
  return [=](const Json& job) {
    const std::string operation = job.at("operation");
    const double change = operation.ends_with("attention") ? attention : operation.ends_with("MLP") ? mlp : convolution;
    return Json{{"change", change}, {"operation_change", 2 * change}, {"before", -1}, {"after", change - 1}};
  };
}

}  // namespace

ClaimTables gmoe_image_claim_tables() {
  return {{"gmoe/example1", {learned(97, {80, 40}, {90, 10}, {94, 5}), learned(80, {90, 10}, {80, 40}, {70, 50})}},
          {"gmoe/frequency", {changes(-0.5, 0.2, 0.4), changes(0.5, 0.1, -0.4)}}};
}

}  // namespace sparsight::testing
