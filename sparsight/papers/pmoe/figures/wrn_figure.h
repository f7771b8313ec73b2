// Shared by figures 10 to 16 of pMoE: test accuracy of WRN and WRN-pMoE against the number of training
// samples.
#pragma once

#include <string>
#include <vector>

#include "sparsight/papers/pmoe/figures/wrn_data.h"
#include "sparsight/papers/pmoe/figures/wrn_training.h"
#include "sparsight/reproduce/figure_settings.h"

namespace sparsight::pmoe {

// The settings of a figure.
struct WrnOptions {
  Repeats repeats;
  std::vector<int64_t> samples;
  int64_t epochs = 1, batch = 128, widen = 1, test = 0;
  double lr = 0.1;
  double momentum = 0.9;  // of the batch norm statistics; 0.99 needs more steps than the reduced profile has
  std::string profile = "reduced";
  void declare(OptionSet& set);
};
// `paper`: the figure's numbers of samples, used at scale paper; other scales use the reduced profile.
WrnOptions wrn_options(Scale scale, const std::vector<int64_t>& paper);

// A line of a figure.
struct WrnSeries {
  std::string name;  // "WRN-pMoE"
  bool routed = false;
  int64_t taken = 2;  // patches per expert
  WrnData data = WrnData::smiling;
  double correlation = 0.95;      // of spurious_hair
  bool only_largest_set = false;  // trained on the largest set only, for a claim
};

// Names of the two models in all figures.
inline constexpr const char* kWrn = "WRN";
inline constexpr const char* kWrnPmoe = "WRN-pMoE";

struct WrnFigureParts {
  std::string name = {}, title = {}, duration = {};
  std::vector<WrnSeries> series = {};
  std::vector<int64_t> samples = {};  // of the paper
  bool worst_cell = false;            // also measure the worst cell
  double fewer = 0;                   // WRN-pMoE reaches WRN's final accuracy with at most this fraction of the samples
  std::vector<Json> paper = {};
  std::vector<std::string> notes = {};
};
// Its claims are pmoe_above_wrn() and with_fewer_samples(`fewer`).
Figure wrn_figure(const WrnFigureParts& parts);

// The jobs of a cell, one for each trial. `series` is a name.
std::vector<Json> wrn_jobs(const std::string& series, int64_t samples, const WrnOptions& options);
// Trains the network of a job.
WrnResult run_wrn_job(const Json& settings, const WrnSeries& series, const FigureRun& run, bool gathered = false);

// Multiply-adds of the forward pass for one image.
double forward_cost(const WrnSeries& series, int64_t widen, Scale scale, bool gathered = false);
// Estimated time of a job on one core; `all` must contain its series.
double expected_wrn_seconds(const Json& settings, const std::vector<WrnSeries>& all, Scale scale);

// Claims of the figures.
Claim pmoe_above_wrn(const ResultTable& table);
Claim with_fewer_samples(const ResultTable& table, double share);
// The mean gap between WRN-pMoE and WRN is larger than the gap between the series `pmoe` and `wrn` on other data.
Claim larger_gap_than(const ResultTable& table, const std::string& wrn, const std::string& pmoe, const std::string& on);

}  // namespace sparsight::pmoe
