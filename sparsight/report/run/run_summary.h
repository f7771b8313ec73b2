// What a report shows of a run: everything in its folder that can be displayed, tolerating missing or damaged files.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sparsight/report/attack/read_attacks.h"
#include "sparsight/report/run/run_metrics.h"

namespace sparsight {

// One example image of `sparsight explain`. Strings are as in explain.json (docs/explain.md).
struct ExplainedImage {
  std::string id, truth, predicted;  // truth is "" if unknown
  double probability = 0;
  std::string picture_png;  // the bytes of the files; "" if missing
  std::string experts_png;
  std::string caption;  // what the panels of experts_png show
};

// An explanation, its own or of given images.
struct ExplainSummary {
  std::string caption;                      // "best checkpoint (step 8), 500 images of ...", or ""
  Json layers;                              // [{layer, class_information, ...}], or null
  Json class_expert;                        // {layer: [K][E]}, or null
  bool by_predicted_class = false;          // what class_expert goes by
  Json patch_routing;                       // [{layer, of, classes: [...]}], or null
  std::vector<std::string> domains, parts;  // names of the rows of the next
  Json domain_expert, domain_information;   // {layer: [domains][E]}, {layer: information on the domain}, or null
  Json part_experts;                        // [{layer, domain, counts: [parts][E], ...}], or null
  std::vector<ExplainedImage> examples;
};

struct RunSummary {
  std::string name;  // of the folder
  RunMetrics log;
  Json config;  // {section: {key: value}}, or null
  Json env;     // any JSON object, or null
  std::vector<std::string> classes;
  std::vector<std::string> super_classes;  // names, or empty
  std::vector<int64_t> super_class_of;     // of each class, or empty
  ExplainSummary explain;                  // of the run's dataset
  ExplainSummary explain_images;           // of given images
  Json confused;                           // cells of the final evaluation (confused_file.h), or null
  std::vector<ShownAttack> attacks;        // those in attacks/
  std::vector<std::string> warnings;       // what was missing or damaged
};

// Raises Error if `path` is not a run folder or its metrics have no records yet.
RunSummary read_run_summary(const std::string& path);

}  // namespace sparsight
