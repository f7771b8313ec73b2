// What figures 10 to 16 of pMoE have in common: test accuracy of WRN and WRN-pMoE against the number of training
// samples.
#pragma once

#include <string>
#include <vector>

#include "sparsight/papers/pmoe/figures/wrn_data.h"
#include "sparsight/papers/pmoe/figures/wrn_training.h"
#include "sparsight/reproduce/figure.h"

namespace sparsight::pmoe {

// How large a figure is made at a scale.
struct WrnScale {
  std::vector<int64_t> samples;
  int64_t trials = 1, epochs = 1, batch = 128, widen = 1, test = 0;
  double momentum = 0.9;  // of batch norms' running averages: 0.99 needs more steps than the reduced profile has
  const char* profile = "reduced";
};
// `paper`: the numbers of samples of the figure. Without: sizes of the reduced profile.
WrnScale wrn_scale(Scale scale, const std::vector<int64_t>& paper);

// A line of a figure.
struct WrnSeries {
  std::string name;  // "WRN-pMoE"
  bool routed = false;
  int64_t taken = 2;  // patches that each expert takes
  WrnData data = WrnData::smiling;
  double correlation = 0.95;      // of spurious_hair
  bool only_largest_set = false;  // trained on the largest set alone, for a claim
};

// What a figure's WRN-pMoE and WRN are called, in all of them.
inline constexpr const char* kWrn = "WRN";
inline constexpr const char* kWrnPmoe = "WRN-pMoE";

struct WrnFigureParts {
  std::string name = {}, title = {}, duration = {};
  std::vector<WrnSeries> series = {};
  std::vector<int64_t> samples = {};  // of the paper
  bool worst_cell = false;            // a measure of it
  double fewer = 0;                   // WRN-pMoE reaches WRN's last accuracy with at most this share of its samples
  std::vector<Json> paper = {};
  std::vector<std::string> notes = {};
};
// Claims: WRN-pMoE above WRN at every number of samples, and `fewer`.
Figure wrn_figure(const WrnFigureParts& parts);

// The settings of a job: the axes, the seed and the scale. `series` by name.
Json wrn_job(const std::string& series, int64_t samples, int64_t seed, const WrnScale& scale);
// Trains what a job names.
WrnResult run_wrn_job(const Json& settings, const WrnSeries& series, const FigureRun& run, bool gathered = false);

// Multiply-adds of an image's forward pass.
double forward_cost(const WrnSeries& series, int64_t widen, Scale scale, bool gathered = false);
// About how long a job takes on one core; `all` has its series.
double expected_wrn_seconds(const Json& settings, const std::vector<WrnSeries>& all, Scale scale);

// Claims that figures add.
Claim pmoe_above_wrn(const ResultTable& table);
Claim with_fewer_samples(const ResultTable& table, double share);
// The mean difference of WRN-pMoE and WRN is larger in this figure than that of two series on other data.
Claim larger_gap_than(const ResultTable& table, const std::string& wrn, const std::string& pmoe, const std::string& on);

}  // namespace sparsight::pmoe
