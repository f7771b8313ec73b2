#include "sparsight/catalogue/model_sections.h"

#include <algorithm>

#include "sparsight/catalogue/recipes.h"
#include "sparsight/catalogue/run_options.h"
#include "sparsight/catalogue/train_options.h"
#include "sparsight/data/loader.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/transforms/transform_options.h"
#include "sparsight/models/register_models.h"
#include "sparsight/moe/register_moe.h"

namespace sparsight {
namespace {

constexpr int64_t kMaxTried = 65536;  // experts of a router that is made to see whether it takes a setting

Section router_section() {
  Section section = named_section("router", "how tokens choose experts", "softmax_topk", routers());
  section.remark = [](const std::string& router) {
    std::string losses;
    for (const LossWeight& loss : routers().make(router, Json::object(), "router", {4, 4})->default_losses())
      losses += cat(losses.empty() ? "default losses: " : ", ", loss.name, " ", loss.weight);
    return losses;
  };
  section.try_component = [](const std::string& router, const Json& settings, const Json& tree) {
    const Json set = tree.value("moe", Json::object()).value("experts", Json(MoeOptions().experts));
    const int64_t experts = set.is_number_integer() ? set.get<int64_t>() : 0;
    if (experts >= 1 && experts <= kMaxTried) routers().make(router, settings, "router", {4, experts});
  };
  return section;
}

Section train_section() {
  Section section = plain_section<TrainOptions>("train", "training length, evaluation, checkpoints");
  section.preset = recipe_preset;
  return section;
}

}  // namespace

std::vector<Section> model_sections() {
  return {
      plain_section<RunOptions>("run", "seed and threads"),
      named_section("data", "the dataset", "glyphs", data_sets()),
      plain_section<TransformOptions>("transforms", "preprocessing and augmentation of images"),
      plain_section<LoaderOptions>("loader", "batches, their order and the threads that prepare them"),
      named_section("model", "the model", "vit", models()),
      plain_section<MoeOptions>("moe", "mixture-of-experts layers: where and how large"),
      named_section("experts", "the experts of an MoE layer", "mlp", expert_kinds()),
      router_section(),
      plain_section<CapacityOptions>("capacity", "how many tokens an expert takes, and which are dropped"),
      plain_section<LossOptions>("losses", "weights of the auxiliary losses"),
      train_section(),
  };
}

Json resolved_model(const Json& config, const std::string& origin) {
  const std::vector<Section> sections = model_sections();
  Json tables = Json::object();
  for (const Section& section : sections)
    if (config.contains(section.name)) tables[section.name] = config.at(section.name);
  return resolve(Config::from_tables(tables, origin), sections);
}

void check_trained_names(const Json& config, const std::vector<Section>& sections) {
  for (const Section& section : sections) {
    if (section.default_variant.empty()) continue;
    const Json name = config.value(section.name, Json::object()).value("name", Json());
    if (!name.is_string()) continue;
    std::vector<std::string> known;
    for (const SectionVariant& variant : section.variants) known.push_back(variant.name);
    const auto text = name.get<std::string>();
    if (std::ranges::find(known, text) == known.end())
      fail_usage("unknown ", section.name, ".name ", shown(name), suggestion(text, known),
                 "; this run was trained by a program that registers it: use that program");
  }
}

}  // namespace sparsight
