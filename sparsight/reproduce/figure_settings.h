// The settings of a figure: numbers of trials and samples, sizes of networks, rates. Declared once, in a struct of
// options whose defaults depend on the scale:
//
//   struct LineOptions {
//     int64_t trials = 5;
//     void declare(OptionSet& set) { set.integer("trials", &trials, {1, 1000}, "trials of each row"); }
//   };
//   LineOptions line_options(Scale scale) { return {scale == Scale::smoke ? 1 : 5}; }
//
//   figure.settings = make_settings(line_options);
//   figure.jobs = [](const FigureRun& run) { const LineOptions options = chosen(line_options, run); ... };
#pragma once

#include <string>
#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight {

// defaults: a function from a scale to the options.
template <class Defaults>
FigureSettings make_settings(const Defaults& defaults) {
  return [defaults](Scale scale, const std::function<void(OptionSet&)>& use) {
    auto options = defaults(scale);
    OptionSet set;
    options.declare(set);
    use(set);
  };
}

// The options of a run. Raises UsageError for a setting of it that is not declared or out of bounds.
template <class Defaults>
auto chosen(const Defaults& defaults, const FigureRun& run) {
  auto options = defaults(run.scale);
  OptionSet set;
  options.declare(set);
  assign(set, run.settings, "");
  return options;
}

// "trials" and "first_seed", which most figures have.
struct Repeats {
  int64_t trials = 1, first_seed = 0;
  void declare(OptionSet& set);
  int64_t seed(int64_t trial) const { return first_seed + trial; }
};

// Each of `settings` once for every seed.
std::vector<Json> with_seeds(const std::vector<Json>& settings, const Repeats& repeats);

// Every setting of the figure with its value in this run. Raises UsageError as chosen() does, and for settings of a
// figure that has none.
Json figure_settings(const Figure& figure, const FigureRun& run);

// One setting of a figure, for help.
struct SettingHelp {
  std::string name, type, allowed, value, help;  // value: the default at the scale
};
std::vector<SettingHelp> settings_help(const Figure& figure, Scale scale);

// "trials=20 samples=[300,500]": what differs from the defaults of the scale; "" if nothing does.
std::string changed_settings(const Figure& figure, const FigureRun& run);

}  // namespace sparsight
