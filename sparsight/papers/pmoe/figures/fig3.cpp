#include <ATen/ops/repeat_interleave.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/papers/pmoe/figures/digit_runs.h"
#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::pmoe {
namespace {

constexpr int64_t kFig3Enlarged = 3;

std::string fig3_picture(int64_t digit) { return cat("composite-", digit, ".png"); }

// Labels of a composite alternate, so picture 0 has class 0 and picture 1 class 1.
std::vector<Json> fig3_jobs(const FigureRun& run) {
  std::vector<Json> jobs;
  CompositeOptions options;
  choose_cells(options, run);
  for (const int64_t digit : {1, 0}) jobs.push_back({{"digit", digit}, {"cells", options.cells}, {"picture", digit}});
  return jobs;
}

Json fig3_measure(const Json& job, const FigureRun& run) {
  CompositeOptions options;
  choose_cells(options, run);
  const Sample sample = make_composite(options, {}).test->get(job.at("picture").get<int64_t>());
  const at::Tensor large =
      sample.image.repeat_interleave(kFig3Enlarged, 1).repeat_interleave(kFig3Enlarged, 2).contiguous();
  write_file_atomically(run.folder + "/" + fig3_picture(job.at("digit").get<int64_t>()), encode_png(large));

  // Patches as the models see them: [C, cells, height, cells, width], values 0 to 1.
  const int64_t cells = options.grid, height = sample.image.size(1) / cells, width = sample.image.size(2) / cells;
  const at::Tensor patches =
      sample.image.reshape({sample.image.size(0), cells, height, cells, width}).to(at::kDouble).div(255);
  return {{"patches", cells * cells},
          {"paper_patches", 16},
          {"paper_width", 784},
          {"width", sample.image.size(0) * height * width},
          {"cell", static_cast<int64_t>(sample.attributes.at(0))},
          {"norm", patches.square().sum({0, 2, 4}).sqrt().mean().item<double>()}};
}

std::vector<Claim> fig3_claims(const ResultTable& table, const FigureRun&) {
  return {every_trial_equal(table, "a picture has 16 patches (section 5.1)", "patches", "paper_patches"),
          every_trial_equal(table, "a patch has width 784 (section 5.1)", "width", "paper_width")};
}

}  // namespace

Figure fig3() {
  Figure figure;
  figure.name = "pmoe/fig3";
  figure.title = "a composite of sixteen digits, one of which determines the label";
  figure.needs = kDigitNeeds;
  figure.duration = "1 s at any scale";
  figure.axes = {"digit"};
  figure.measures = {{"patches", "patches", 0},
                     {"paper_patches", "the paper's", 0},
                     {"width", "width of a patch", 0},
                     {"paper_width", "the paper's", 0},
                     {"cell", "cell of the digit (0 to 15, row by row)", 0},
                     {"norm", "mean L2 norm of a patch", 2}};
  figure.data = digit_data();
  figure.jobs = fig3_jobs;
  figure.measure = fig3_measure;
  figure.claims = fig3_claims;
  figure.notes = {"One patch shows a 1 or a 0 and determines the label; the others show 2 to 9 and are irrelevant."};
  for (const int64_t digit : {1, 0}) figure.pictures.push_back({fig3_picture(digit), cat("class ", digit)});
  return figure;
}

}  // namespace sparsight::pmoe
