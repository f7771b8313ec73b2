// Results of runs as DomainBed logs them: one folder per run with results.jsonl, a JSON line for each evaluation; or
// one file with the lines of many runs. Reads those of this program and DomainBed's own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/dg/titles.h"

namespace sparsight {

// What a run is of.
struct DgRunName {
  std::string dataset;    // its comparable_name()
  std::string algorithm;  // with the model, where the log names it: "ERM (gmoe)"
  std::vector<int64_t> test_envs;
  int64_t trial_seed = 0, hparams_seed = 0;
  bool single_source = false;  // of a comparison that trains on each environment alone
};

inline constexpr int64_t kResultStep = -1;

// An evaluation: accuracies by environment, 0 to 1.
struct DgEvaluation {
  int64_t step = 0;             // kResultStep: of the weights that the algorithm ended with, such as an average
  std::vector<double> in, out;  // [environments]
};

// What a model costs.
struct DgCost {
  int64_t parameters = 0, active_parameters = 0;
  int64_t multiply_adds = 0;  // of an image, those that the router assigns
};

// How fast a run was, and its resident memory, as far as its log says so.
struct DgSpeed {
  std::optional<double> step_seconds, images_per_s;  // of updates
  std::optional<double> evaluation_images_per_s;
  std::optional<double> peak_gb, evaluation_peak_gb;  // 1024³ bytes; the first of the whole run
};

struct DgResult {
  DgRunName name;
  std::vector<DgEvaluation> evaluations;  // by step; at least one. Of a run with a result of its own only that
  std::optional<DgCost> cost = {};        // DomainBed's logs have none
  DgSpeed speed = {};
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();  // dg_settings(); {} in DomainBed's logs
  std::string data = {};                                               // data_identity(); "" there
  std::vector<std::string> environments = {};                          // their names; {} there
};

// The lines of one run.
struct DgLog {
  std::string file;
  std::vector<nlohmann::ordered_json> lines;
};

// Gives `use` every run of the results.jsonl in the folder `path` or below, or of the file `path`, one after another:
// lines with equal "args" are of one run. Files with a line that is no JSON object, or that its checksum is not of, are
// named in `warnings` and left out. Raises Error if nothing is found.
void for_each_dg_log(const std::string& path, std::vector<std::string>& warnings,
                     const std::function<void(DgLog log)>& use);

// The result of a run; null, with a warning that names its file, where dg_result() refuses it.
std::optional<DgResult> usable_dg_result(const DgLog& log, std::vector<std::string>& warnings);

// Runs of a dataset and algorithm whose settings differ get names that say so, "ERM (vit, optimizer.lr=0.01)", and so
// do datasets of different images: tables never average over them. Takes a time that is linear in the runs.
void tell_apart(std::vector<DgResult>& results);

// All usable results of for_each_dg_log(), told apart.
std::vector<DgResult> read_dg_results(const std::string& path, std::vector<std::string>& warnings);

// The lines as DomainBed's scripts take them: with its name of the dataset, and of a run with a result of its own only
// that.
std::vector<nlohmann::ordered_json> domainbed_lines(const DgLog& log);

// The lines with their checksums (io/checked_json.h), which DomainBed's scripts pass over: the text of a results.jsonl.
std::string dg_log_text(const std::vector<nlohmann::ordered_json>& lines);

// Reads one results.jsonl. Raises Error, which names the file, as dg_result() and for a damaged line.
DgResult read_dg_result(const std::string& file);

// One run from its lines. Raises Error for a missing key, a step, seed, environment or cost that is no whole number of
// at least 0, an environment that is tested twice, an accuracy outside of 0 to 1, a time or memory that is no number of
// at least 0, or evaluations of different environments.
DgResult dg_result(const std::vector<nlohmann::ordered_json>& lines);

}  // namespace sparsight
