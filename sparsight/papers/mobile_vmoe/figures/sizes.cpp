// Figures 1 and 3a: top-1 accuracy against operations, dense and with experts, for all sizes of the model.
#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/mobile_vmoe/figures/mobile_figures.h"
#include "sparsight/papers/mobile_vmoe/figures/paper_sizes.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::mobile_vmoe {
namespace {

struct SizesOptions : MobileOptions {
  std::vector<std::string> sizes;
  explicit SizesOptions(Scale scale) : MobileOptions(mobile_options(scale)) {
    sizes = by_scale<std::vector<std::string>>(scale, {"3x16", "2x16"}, {"9x64", "6x64", "6x96"}, {});
    if (scale == Scale::paper)
      for (const PaperSize& paper : paper_sizes()) sizes.emplace_back(paper.size);
  }
  void declare(OptionSet& set) {
    MobileOptions::declare(set);
    set.strings("sizes", &sizes, "the sizes: blocks x width");
  }
};
SizesOptions sizes_options(Scale scale) { return SizesOptions(scale); }

std::vector<Json> sizes_jobs(const FigureRun& run) {
  const SizesOptions options = chosen(sizes_options, run);
  std::vector<Json> jobs;
  for (const std::string& size : options.sizes)
    for (const char* model : {kDenseRow, kMoeRow}) jobs.push_back({{"size", size}, {"model", model}});
  return with_seeds(jobs, options.repeats);
}

MobileRow sizes_row(const Json& job, const SizesOptions& options) {
  const bool routed = job.at("model") == kMoeRow;
  MobileModel dense = mobile_model(options, kDense), moe = mobile_model(options, kSemantic);
  dense.size = moe.size = read_size(job.at("size"));
  if (!routed) return {dense};
  return {moe, dense};
}

Json row_of_size(const std::string& size, const char* model) { return {{"size", size}, {"model", model}}; }

// The accuracy of the routed model minus that of the dense one.
Statistic moe_gain(const std::string& size) {
  return row_difference(row_of_size(size, kMoeRow), row_of_size(size, kDenseRow), "accuracy");
}

std::vector<Claim> sizes_claims(const ResultTable& table, const FigureRun&) {
  std::vector<Margin> above, grows;
  std::map<int64_t, std::vector<std::string>> of_width;
  for (const Json& value : table.axis_values("size")) {
    const auto size = value.get<std::string>();
    above.push_back({moe_gain(size), at_value(value)});
    of_width[read_size(size).width].push_back(size);
  }
  for (auto& [width, sizes] : of_width) {
    std::ranges::sort(sizes, {}, [](const std::string& size) { return read_size(size).depth; });
    const std::string least = sizes.front(), most = sizes.back();
    if (least == most) continue;
    grows.push_back({minus(moe_gain(least), moe_gain(most)), cat("of ", least, " against ", most)});
  }
  return {judge(table, "Mobile V-MoE is more accurate than the dense model of the same operations at every size", above,
                {.decimals = 2}),
          judge(table, "the gain is larger with the fewest layers than with the most, at the same width", grows,
                {.decimals = 2})};
}

}  // namespace

Figure sizes_figure() {
  Figure figure = mobile_figure("mobile_vmoe/sizes", "accuracy against operations, dense and Mobile V-MoE, by size");
  figure.duration = "smoke 10 s, small 3 h, paper weeks, on 2 cores; less where other figures have trained the models";
  figure.axes = {"size", "model"};
  set_options(figure, sizes_options);
  figure.jobs = sizes_jobs;
  measure_rows(figure, sizes_options, sizes_row);
  for (const PaperSize& paper : paper_sizes()) {
    for (const bool routed : {false, true}) {
      Json row = row_of_size(paper.size, routed ? kMoeRow : kDenseRow);
      row["accuracy"] = routed ? paper.moe : paper.dense;
      row["mflop"] = paper.mflop;
      if (routed) row["difference"] = paper.moe - paper.dense;
      figure.paper.push_back(row);
    }
  }
  figure.claims = sizes_claims;
  FigureChart chart;
  chart.x = "mflop", chart.y = "accuracy", chart.series = "model", chart.label = "size";
  chart.logarithmic_x = true;
  figure.charts = {chart};
  figure.notes.push_back(
      "The paper's numbers are of ImageNet-1k, 224 x 224 pixels and patches of 32. It prints 1618 MFLOP for 12x192, a "
      "misprint of 618. Its gain grows in 7 of 8 steps to fewer layers.");
  return figure;
}

}  // namespace sparsight::mobile_vmoe
