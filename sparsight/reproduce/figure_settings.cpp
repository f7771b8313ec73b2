#include "sparsight/reproduce/figure_settings.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight {

void Repeats::declare(OptionSet& set) {
  set.integer("trials", &trials, {1, 100000}, "trials of each row, each with a seed of its own");
  set.integer("first_seed", &first_seed, {0, 1000000000}, "seed of the first trial; the others count up from it");
}

std::vector<Json> with_seeds(const std::vector<Json>& settings, const Repeats& repeats) {
  std::vector<Json> jobs;
  for (const Json& each : settings)
    for (int64_t trial = 0; trial < repeats.trials; ++trial) {
      jobs.push_back(each);
      jobs.back()["seed"] = repeats.seed(trial);
    }
  return jobs;
}

Json figure_settings(const Figure& figure, const FigureRun& run) {
  Json all = Json::object();
  if (!figure.settings) {
    if (!run.settings.empty()) fail_usage(figure.name, " has no settings; leave --set out");
    return all;
  }
  figure.settings(run.scale, [&](OptionSet& set) {
    assign(set, run.settings, "");
    all = values(set);
  });
  return all;
}

std::vector<SettingHelp> settings_help(const Figure& figure, Scale scale) {
  std::vector<SettingHelp> help;
  if (figure.settings)
    figure.settings(scale, [&](OptionSet& set) {
      for (const Option& option : set.options())
        help.push_back({option.name, option.type, option.allowed, shown(option.get()), option.help});
    });
  return help;
}

std::string changed_settings(const Figure& figure, const FigureRun& run) {
  const Json now = figure_settings(figure, run);
  FigureRun plain = run;
  plain.settings = Json::object();
  const Json before = figure_settings(figure, plain);
  std::string changed;
  for (const auto& [name, value] : now.items())
    if (before.at(name) != value) changed += cat(changed.empty() ? "" : " ", name, "=", shown(value));
  return changed;
}

}  // namespace sparsight
