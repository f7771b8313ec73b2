// Results of runs as DomainBed logs them: one folder per run with results.jsonl, a JSON line for each evaluation. Reads
// those of this program and DomainBed's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace sparsight {

// How names of datasets and algorithms are compared: without case, "-" and "_", so that "RotatedMNIST" and
// "rotated_mnist" are the same dataset.
std::string comparable_name(const std::string& name);

// What a run is of.
struct DgRunName {
  std::string dataset;    // as all names without case, "-" and "_"
  std::string algorithm;  // with the model, where the log names it: "erm (gmoe)"
  std::vector<int64_t> test_envs;
  int64_t trial_seed = 0, hparams_seed = 0;
};

// An evaluation: accuracies by environment, 0 to 1.
struct DgEvaluation {
  int64_t step = 0;
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
  std::vector<DgEvaluation> evaluations;  // by step; at least one
  std::optional<DgCost> cost = {};        // DomainBed's logs have none
  DgSpeed speed = {};
};

// Of every folder below `path` that has results.jsonl (and, where DomainBed wrote it, is done). Lines that are damaged
// or lack a key are named in `warnings`, and their run is left out. Raises Error if nothing is found.
std::vector<DgResult> read_dg_results(const std::string& path, std::vector<std::string>& warnings);

// Of one results.jsonl. Raises Error as dg_result(), and for a line that is no JSON object.
DgResult read_dg_result(const std::string& file);

// One run from its lines. Raises Error for a missing key, an accuracy outside of 0 to 1, a cost, time or memory that is
// no number of at least 0, or evaluations of different environments.
DgResult dg_result(const std::vector<nlohmann::ordered_json>& lines);

}  // namespace sparsight
