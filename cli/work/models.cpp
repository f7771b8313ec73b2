#include <optional>

#include "cli/cmd_models.h"
#include "cli/output.h"
#include "sparsight/core/config.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/toml.h"
#include "sparsight/cost/convention.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/models/register_models.h"
#include "sparsight/report/format.h"
#include "sparsight/report/run/cost_table.h"
#include "sparsight/report/text_table.h"
#include "sparsight/train/run_config.h"

namespace sparsight::cli {
namespace {

// A model, or one of its published sizes.
struct ListedModel {
  std::string name, model, summary;
  Json settings = Json::object();  // of [model]
};

std::vector<ListedModel> listed_models() {
  std::vector<ListedModel> all;
  for (const auto& entry : models().entries()) {
    all.push_back({entry.name, entry.name, entry.summary});
    for (const NamedSettings& variant : entry.variants) all.push_back({variant.name, entry.name, "", variant.settings});
  }
  return all;
}

// Its section [model].
Json model_section(const ListedModel& listed) {
  Json section{{"name", listed.model}};
  section.update(listed.settings);
  return section;
}

// The dense model with these settings; the rest as they default.
Json model_config(const ListedModel& listed) {
  return resolve(
      Config::from_tables({{"model", model_section(listed)}, {"moe", {{"blocks", Json::array()}}}}, "models"),
      config_sections());
}

ImageShape image_shape(const ModelsArguments& arguments) {
  return {arguments.image[0], arguments.image[1], arguments.image[2], arguments.classes};
}

// Nothing for images that the model does not take.
std::optional<Cost> cost_of(const ListedModel& listed, const ImageShape& image) {
  try {
    return total(model_cost(model_config(listed), image));
  } catch (const UsageError&) {
    return {};
  }
}

// "size = small, patch = 16"
std::string settings_text(const Json& settings) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : settings.items())
    parts.push_back(key + " = " + (value.is_string() ? value.get<std::string>() : value.dump()));
  return join(parts);
}

}  // namespace

void run_models_list(const ModelsArguments& arguments) {
  const ImageShape image = image_shape(arguments);
  Rows rows{{"name", "parameters", "multiply-adds", "what it is"}};
  Json list = Json::array();
  for (const ListedModel& listed : listed_models()) {
    const std::optional<Cost> cost = cost_of(listed, image);
    const auto shown = [&](int64_t Cost::*what) {
      return with_prefix(cost ? std::optional(static_cast<double>((*cost).*what)) : std::nullopt);
    };
    rows.push_back({listed.name, shown(&Cost::parameters), shown(&Cost::multiply_adds),
                    listed.summary.empty() ? settings_text(listed.settings) : listed.summary});
    list.push_back({{"name", listed.name},
                    {"model", listed.model},
                    {"settings", listed.settings},
                    {"parameters", cost ? Json(cost->parameters) : Json()},
                    {"multiply_adds", cost ? Json(cost->multiply_adds) : Json()}});
  }
  if (arguments.format == "json")
    output() << json_text(list, 2) << "\n";
  else
    output() << (arguments.format == "markdown" ? markdown(rows) : aligned(rows));
}

void run_models_show(const ModelsArguments& arguments) {
  const std::vector<ListedModel> all = listed_models();
  const ListedModel& listed = entry_named(arguments.name, all, "model");
  const Json config = model_config(listed);
  output() << listed.name << ": " << models().get(listed.model).summary << "\n\n"
           << to_toml({{"model", model_section(listed)}}) << "\n";
  Rows rows{{"setting", "value", "allowed", "meaning"}};
  models().get(listed.model).describe([&](const OptionSet& set) {
    for (const Option& option : set.options())
      rows.push_back({option.name, to_toml_value(config["model"][option.name]),
                      option.allowed.empty() ? option.type : option.allowed, option.help});
  });
  output() << aligned(rows) << "\n" << cost_table(model_cost(config, image_shape(arguments)), CostConvention{});
}

}  // namespace sparsight::cli
