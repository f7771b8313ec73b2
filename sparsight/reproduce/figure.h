// A reproducible figure or table of a paper: its jobs, the numbers reported in the paper, and the paper's claims.
// Figures only describe and measure; running jobs (in any order, in several processes, resumed after a kill),
// averaging, tables, charts and pages are shared by all of them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/reproduce/data_choice.h"
#include "sparsight/reproduce/image_error.h"

namespace sparsight {

// smoke: seconds, shows that everything runs. small: minutes to hours on 2 cores, shows the trend. paper: sizes,
// lengths and number of seeds of the paper.
enum class Scale { smoke, small, paper };

struct FigureRun {
  Scale scale = Scale::small;
  std::string data = {};    // folder of real datasets; "": synthetic substitutes, marked as such
  std::string folder = {};  // of the run; jobs may write images here
  // Private to the running job: files that it writes here survive a kill.
  std::string job_folder = {};
  Json settings = Json::object();  // of the figure, as given with --set; all others have their defaults at this scale
  std::string fingerprint = {};    // RunData::fingerprint, if it is known already
};

// The images behind a measure that is a share of them in percent, such as an accuracy.
struct MeasuredImages {
  std::string count = {};  // the entry of a job's result or settings that counts them; "": the measure is no such share
  // Each seed draws its own images, unless the job has a "shared_seed", which then draws those of all. Else they are
  // the same for every seed.
  bool own = false;
};

// A number that jobs measure, averaged over seeds.
struct Measure {
  std::string key;    // in the result of a job, such as "accuracy"
  std::string title;  // "test accuracy (%)"
  int decimals = 1;
  MeasuredImages images = {};
};

// What the job of one seed measured: one value per measure, null where it is undefined.
struct Trial {
  int64_t seed = 0;  // 0 if nothing is repeated
  std::vector<std::optional<double>> values;
  // One per measure: the images that it is a share of; those of the same place are the same ones in every row.
  std::vector<ImageShare> shares = {};
};

// A row of the result: jobs that differ only in their seed.
struct ResultRow {
  Json settings;              // {"model": "joint", "samples": 300}, in the order of Figure::axes
  std::vector<Trial> trials;  // of the finished jobs
  std::vector<std::optional<double>> mean, deviation;         // one per measure; the deviation divides by n
  std::vector<std::optional<double>> paper, paper_deviation;  // the paper's, if known
  std::vector<int64_t> measured;                              // number of trials with each measure
};

struct ResultTable {
  std::vector<std::string> axes;
  std::vector<Measure> measures;
  std::vector<ResultRow> rows;  // in the order of the jobs
  std::vector<int64_t> seeds;   // of the jobs, without duplicates; empty if nothing is repeated

  // Null if no row has these settings or the measure (yet). `settings` names every axis, in any order.
  std::optional<double> mean(const Json& settings, const std::string& measure) const;
  std::optional<double> deviation(const Json& settings, const std::string& measure) const;
  std::optional<double> paper(const Json& settings, const std::string& measure) const;
  std::vector<Json> axis_values(const std::string& axis) const;  // without duplicates, in the order of the rows
};

// A statement about a result, what was measured, and how that was judged. It is undecided where `holds` is null: a test
// that cannot exclude either answer says neither.
struct Claim {
  std::string text;      // "pMoE reaches 95 % with at most 60 % of the CNN's samples"
  std::string measured;  // "410 of 920 samples: 45 %", or why it is undecided
  std::optional<bool> holds;
  std::string test = {};              // "paired difference over seeds, 95 % interval above 0"
  std::optional<int64_t> seeds = {};  // behind it
  bool withheld = false;              // not judged, whatever was measured: scale smoke
};

// A curve a + b x^power that is fitted to our means of each series, of x >= from; in a heat map, to the y at which the
// measure passes half of its range.
struct FigureGuide {
  std::string name;  // "a + b k^(1/4)"
  double power = 1;
  double from = 0;
};

// How a table is plotted. line: a line through the means for each value of `series`, with error bars of one standard
// deviation, and the paper's values dashed; a series with a single x, beside others, is a horizontal line. heat: a
// greyscale heat map of x against y. bars: grouped bars.
struct FigureChart {
  enum class Kind { line, heat, bars };
  Kind kind = Kind::line;
  // x: an axis or, for line, a measure, of which each row has its own. y: a measure; for heat an axis.
  std::string x = {}, y = {};
  std::string series = {};   // an axis, or ""
  std::string measure = {};  // for heat: the measure shown as grey level
  bool logarithmic_x = false, logarithmic_y = false;
  std::vector<std::pair<std::string, double>> levels = {};     // named horizontal lines
  std::vector<std::pair<std::string, double>> positions = {};  // named vertical lines, for line
  std::optional<FigureGuide> guide = {};                       // for line and heat
  std::string label = {};  // for line: an axis whose values stand beside our points, or ""
};

// An image that a job writes to the run folder, for the page.
struct FigurePicture {
  std::string file;  // "composite.png"
  std::string caption;
};

using FigureSettings = std::function<void(Scale scale, const std::function<void(OptionSet& set)>& use)>;

struct Figure {
  std::string name;      // "pmoe/fig4"
  std::string title;     // "generalisation against the number of samples, MNIST composites"
  std::string needs;     // "MNIST"
  std::string duration;  // "smoke 5 s, small 1 min, paper 20 min, on 2 cores"
  std::vector<std::string> axes;
  std::vector<Measure> measures;
  std::vector<DataChoice> data;  // the datasets that it reads
  // Declares its settings with their defaults at a scale, and hands them over: see figure_settings.h. {}: it has none.
  FigureSettings settings = {};
  // The settings of every job: the axes, then "seed" if a measurement is repeated, then everything else that it needs.
  // Figure, scale, settings and data of the run are added to the identity of each.
  std::function<std::vector<Json>(const FigureRun& run)> jobs;
  // Runs one job and returns {"accuracy": 95.2, ...}, with null for undefined measures. "outcomes" may have the single
  // images of a share, {"accuracy": "1101..."}, 1 for those that count. A pure function of its settings
  // and of the run's data and scale. Raises Error on failure; a job that stops early because of interrupted() must
  // raise too.
  std::function<Json(const Json& settings, const FigureRun& run)> measure;
  // Estimated seconds of a job on one core, for the plan of the run; {}: unknown until a job is done.
  std::function<double(const Json& settings, const FigureRun& run)> expected_seconds = {};
  bool alone = false;  // it measures times: its jobs run one after the other
  // {"model": "joint", "samples": 300, "accuracy": 94.3, "accuracy_deviation": 0.6}
  std::vector<Json> paper;
  std::function<std::vector<Claim>(const ResultTable& table, const FigureRun& run)> claims;
  std::vector<FigureChart> charts;
  std::vector<std::string> notes;  // for the page: what differs from the paper, and why
  // Further notes, which follow from the settings of a run: lengths, radii, sizes. {}: it has none.
  std::function<std::vector<std::string>(const FigureRun& run)> run_notes = {};
  std::vector<FigurePicture> pictures;
};

// The number of samples (or other x value) at which a curve first reaches a level, interpolated linearly between
// measured points. Null if it stays below; the first point's x if it starts above.
std::optional<double> reaches(const std::vector<std::pair<double, double>>& curve, double level);

}  // namespace sparsight
