#include "cli/catalogue.h"

#include "sparsight/analysis/superclasses/clustering_methods.h"
#include "sparsight/attacks/register_attacks.h"
#include "sparsight/data/domainbed/domainbed.h"
#include "sparsight/dg/ablations.h"
#include "sparsight/dg/dg_models.h"
#include "sparsight/train/run_config.h"

namespace sparsight::cli {
namespace {

template <class List>
Json names(const List& list) {
  Json all = Json::array();
  for (const auto& each : list) all.push_back(each.name);
  return all;
}

Json make_catalogue() {
  const std::vector<Section> sections = config_sections();
  Json settings = Json::array(), components = Json::object();
  const Json defaults = resolve(Config::from_text("", "defaults"), sections);
  for (const auto& [section, table] : defaults.items())
    if (table.is_object())
      for (const auto& [key, value] : table.items()) settings.push_back(section + "." + key);
  for (const Section& section : sections)
    if (!section.default_variant.empty()) components[section.name] = names(section.variants);
  components["attack"] = attacks().names();
  components["domainbed"] = domainbed_names();
  components["dg_model"] = names(dg_models());
  components["ablation"] = names(gmoe_ablations());
  components["clustering"] = names(clustering_methods());
  return {{"settings", settings}, {"components", components}};
}

}  // namespace

const Json& catalogue() {
  static const Json catalogue = make_catalogue();
  return catalogue;
}

}  // namespace sparsight::cli
