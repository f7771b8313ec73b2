// What a report knows about a run: everything of its folder that can be shown, read with care for missing or broken
// parts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sparsight/report/run_metrics.h"

namespace sparsight {

// One picture of `sparsight explain`. Texts are as in explain.json (docs/explain.md).
struct ExplainedImage {
  std::string id, truth, predicted;  // truth is "" where unknown
  double probability = 0;
  std::string picture_png;  // the bytes of the files; "" where missing
  std::string experts_png;
  std::string caption;  // what the panels of experts_png show
};

struct RunSummary {
  std::string name;  // of the folder
  RunMetrics log;
  Json config;  // {section: {key: value}}, or null
  Json env;     // any JSON object, or null
  std::vector<std::string> classes;
  std::string explain_caption;  // "best checkpoint, 500 images", or ""
  Json explain_class_expert;    // {layer: [K][E]}, or null
  Json explain_patch_routing;   // [{layer, of, classes: [...]}], or null
  std::vector<ExplainedImage> examples;
  std::vector<std::string> warnings;  // what was missing or broken
};

// Raises Error where `path` is no run folder or its metrics hold no record yet.
RunSummary read_run_summary(const std::string& path);

}  // namespace sparsight
