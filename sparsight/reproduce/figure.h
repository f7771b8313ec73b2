// A figure or table of a paper as something that can be run again: the jobs that it consists of, the numbers that the
// paper found, and what the paper claims. Figures only describe and measure; running jobs (in any order, in several
// processes, resumed after a kill), averaging, tables, charts and pages are shared by all of them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"

namespace sparsight {

// smoke: seconds, shows that everything runs. small: minutes on 2 cores, shows the trend. paper: sizes, lengths and
// number of seeds of the paper.
enum class Scale { smoke, small, paper };

struct FigureRun {
  Scale scale = Scale::small;
  std::string data;    // folder of real datasets; "": synthetic substitutes, marked as such
  std::string folder;  // of the run; jobs may leave pictures here
  // Of the job that is measured, for it alone: what it keeps here it finds again after a kill.
  std::string job_folder = {};
};

// A number that jobs measure, averaged over seeds.
struct Measure {
  std::string key;    // in what a job returns, such as "accuracy"
  std::string title;  // "test accuracy (%)"
  int decimals = 1;
};

// A row of the result: jobs that differ in nothing but their seed.
struct ResultRow {
  Json settings;  // {"model": "joint", "samples": 300}, in the order of Figure::axes
  int64_t trials = 0;
  std::vector<std::optional<double>> mean, deviation;  // one for each measure; the deviation divides by trials
  std::vector<std::optional<double>> paper;            // what the paper found, where it is known
  std::vector<int64_t> measured;  // how many of the trials gave each measure; a deviation needs two
};

struct ResultTable {
  std::vector<std::string> axes;
  std::vector<Measure> measures;
  std::vector<ResultRow> rows;  // in the order of the jobs
  std::vector<int64_t> seeds;   // of the jobs, each once; none where nothing is repeated

  // Null where nothing (yet) has these settings or the measure. `settings` names every axis, in any order.
  std::optional<double> mean(const Json& settings, const std::string& measure) const;
  std::optional<double> deviation(const Json& settings, const std::string& measure) const;
  std::optional<double> paper(const Json& settings, const std::string& measure) const;
  std::vector<Json> values_of(const std::string& axis) const;  // each once, in the order of the rows
};

// What is said about a result, beside what was measured.
struct Claim {
  std::string text;      // "pMoE reaches 95 % with at most 60 % of the CNN's samples"
  std::string measured;  // "410 of 920 samples: 45 %", or why it cannot be said
  std::optional<bool> holds;
};

// How a table is drawn. line: a line through the means of each value of `series`, with bars of one deviation, and the
// paper's values dashed. heat: a grey map of x against y. bars: groups of bars.
struct FigureChart {
  enum class Kind { line, heat, bars };
  Kind kind = Kind::line;
  std::string x = {}, y = {};  // x: an axis. y: a measure; for heat an axis
  std::string series = {};     // an axis, or ""
  std::string measure = {};    // for heat: the measure that is drawn as grey
  bool logarithmic_x = false, logarithmic_y = false;
  std::vector<std::pair<std::string, double>> levels = {};  // named horizontal lines
};

// A picture that a job leaves in the folder of the run, for the page.
struct FigurePicture {
  std::string file;  // "composite.png"
  std::string caption;
};

struct Figure {
  std::string name;      // "pmoe/fig4"
  std::string title;     // "generalisation against the number of samples, MNIST composites"
  std::string needs;     // "MNIST; falls back to glyphs"
  std::string duration;  // "smoke 5 s, small 1 min, paper 20 min, on 2 cores"
  std::vector<std::string> axes;
  std::vector<Measure> measures;
  // The synthetic substitute for the real data in this run ("glyphs for MNIST"), or "". Numbers of a synthetic
  // substitute are not set beside the paper's.
  std::function<std::string(const FigureRun& run)> synthetic;
  // The settings of every job: the axes, then "seed" where a measurement is repeated, then whatever else decides its
  // result, so that a job whose meaning changes is not taken for one that was done.
  std::function<std::vector<Json>(const FigureRun& run)> jobs;
  // Measures one job: {"accuracy": 95.2, ...}, null for what there is nothing to say about. A pure function of its
  // settings, of the run's data and scale. Raises Error where it cannot; one that stops early because of interrupted()
  // must raise, too.
  std::function<Json(const Json& settings, const FigureRun& run)> measure;
  // About how many seconds a job takes on one core, for the plan of the run; {}: nothing is known before one is done.
  std::function<double(const Json& settings, const FigureRun& run)> expected_seconds = {};
  std::vector<Json> paper;  // {"model": "joint", "samples": 300, "accuracy": 94.3}
  std::function<std::vector<Claim>(const ResultTable& table, const FigureRun& run)> claims;
  std::vector<FigureChart> charts;
  std::vector<std::string> notes;  // for the page: what differs from the paper, and why
  std::vector<FigurePicture> pictures;
};

// The number of samples (or of whatever the axis counts) at which a curve first reaches a level, between measured
// points by linear interpolation. Null where it stays below; the first point's x where it starts above.
std::optional<double> reaches(const std::vector<std::pair<double, double>>& curve, double level);

}  // namespace sparsight
