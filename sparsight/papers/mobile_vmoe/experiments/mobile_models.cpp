#include "sparsight/papers/mobile_vmoe/experiments/mobile_models.h"

#include <nlohmann/json.hpp>

#include "sparsight/catalogue/model_sections.h"
#include "sparsight/models/model_cost.h"

namespace sparsight::mobile_vmoe {
namespace {

constexpr int64_t kMlpRatio = 4;
constexpr double kBalanceWeight = 0.005;  // of each of the two losses of V-MoE
constexpr double kFlopPerSecond = 29e9;   // of a forward and backward pass in fp32 on one AVX2 core, measured
constexpr double kTrainingPerForward = 3;

std::vector<int64_t> last_blocks(int64_t count) {
  std::vector<int64_t> blocks;
  for (int64_t block = -count; block < 0; ++block) blocks.push_back(block);
  return blocks;
}

// The paper's router of images has no noise where it is guided; V-MoE's has 1/E.
void add_experts(Json& sections, const MobileModel& model) {
  sections["moe"] = {{"blocks", last_blocks(model.layers)}, {"experts", model.experts}};
  if (model.routing == kTokens) {
    sections["router"] = {{"name", "softmax_topk"}, {"k", model.k}, {"noise", 1.0}};
    sections["losses"] = {{"vmoe_importance", kBalanceWeight}, {"vmoe_load", kBalanceWeight}};
    return;
  }
  sections["router"] = {{"name", "per_image"}, {"scope", "model"}, {"k", model.k}};
  sections["losses"] = {{"superclass", model.is_guided() ? model.lambda : 0.0}};
  if (model.routing != kImages) return;
  sections["router"]["noise"] = 1.0;
  sections["losses"]["vmoe_importance"] = kBalanceWeight;
  sections["losses"]["vmoe_load"] = kBalanceWeight;
}

}  // namespace

MobileModel mobile_model(const MobileOptions& options, const std::string& routing) {
  return {routing, read_size(options.size), options.experts, options.k, options.layers, options.lambda};
}

Json training_sections(const MobileModel& model, const MobileOptions& options, const FigureRun& run, int64_t seed,
                       double held_out) {
  const VitSize& size = model.size;
  Json sections;
  sections["run"] = {{"seed", seed}};
  sections["data"] = data_section(options, run, held_out);
  sections["transforms"] = transform_section(run);
  sections["loader"] = {{"batch", options.batch}};
  sections["model"] = {
      {"name", "vit"},          {"width", size.width},  {"depth", size.depth},  {"heads", count_heads(size.width)},
      {"patch", options.patch}, {"stem", options.stem}, {"stem_norm", "batch"}, {"mlp_ratio", kMlpRatio},
      {"pool", options.pool}};
  if (model.is_routed())
    add_experts(sections, model);
  else if (model.k > 1)
    sections["model"]["layer"] =
        Json::array({{{"blocks", last_blocks(model.layers)}, {"hidden", model.k * kMlpRatio * size.width}}});
  sections["train"] = {
      {"epochs", options.epochs}, {"keep", "last"}, {"clip_norm", 1}, {"precision", options.precision}};
  sections["optimizer"] = {
      {"name", "adamw"}, {"lr", options.lr}, {"beta2", options.beta2}, {"weight_decay", options.weight_decay}};
  sections["schedule"] = {{"name", "cosine"}, {"warmup_epochs", options.warmup_epochs}};
  return sections;
}

MobileCost mobile_cost(const MobileModel& model, const MobileOptions& options, const FigureRun& run) {
  const Json resolved = resolved_model(training_sections(model, options, run, 0), "figure");
  const ImageShape image{3, kImageSide, kImageSide, class_counts(options, run).classes};
  const CostConvention& convention = cost_convention("flops_elementwise");
  const Cost cost = total(model_cost(resolved, image, {convention}));
  MobileCost found{static_cast<double>(flops(cost, convention)) / 1e6, static_cast<double>(cost.parameters) / 1e3,
                   static_cast<double>(cost.active_parameters) / 1e3};
  if (model.is_routed() && model.experts > model.k)
    found.expert = (found.parameters - found.active) / static_cast<double>(model.experts - model.k);
  return found;
}

double training_seconds(const MobileModel& model, const MobileOptions& options, const FigureRun& run) {
  return static_cast<double>(training_images(options, run) * options.epochs) * kTrainingPerForward * 1e6 *
         mobile_cost(model, options, run).mflop / kFlopPerSecond;
}

}  // namespace sparsight::mobile_vmoe
