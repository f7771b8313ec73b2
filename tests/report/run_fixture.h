// A hand-made run folder with the files that train writes, for the tests of the report.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sparsight/core/options.h"
#include "tests/support/program.h"

namespace sparsight::testing {

inline Json train_record(int step, double loss) {
  return {{"kind", "train"},          {"step", step},
          {"epoch", step / 50},       {"loss", loss},
          {"task_loss", loss - 0.01}, {"losses", {{"importance", 0.1}, {"load", 0.2}}},
          {"accuracy", 1 - loss / 3}, {"lr", 0.001},
          {"images_per_s", 900},      {"seconds", step * 0.1}};
}

// Layer "blocks.1.mlp" with the given load.
inline Json eval_record(const std::string& split, int step, double accuracy,
                        const std::vector<int>& load = {30, 10, 0}) {
  Json record = {{"kind", "eval"},     {"split", split},       {"step", step},
                 {"epoch", step / 50}, {"loss", 1 - accuracy}, {"accuracy", accuracy},
                 {"images", 1000},     {"seconds", 0.5},       {"weights", "model"}};
  record["layers"] = Json::array({{{"layer", "blocks.1.mlp"},
                                   {"experts", load.size()},
                                   {"load", load},
                                   {"importance", load},
                                   {"cv_load", 0.94},
                                   {"cv_importance", 0.9},
                                   {"max_over_mean", 2.25},
                                   {"dropped", 0.0},
                                   {"mean_top_gate", 0.6},
                                   {"experts_per_token", 1.5},
                                   {"kept_per_token", 1.5},
                                   {"tokens_with", {0, 20, 20}}}});
  record["class_expert"] = {{"blocks.1.mlp", {load, load}}};
  return record;
}

inline std::string lines(const std::vector<Json>& records) {
  std::string text;
  for (const Json& record : records) text += record.dump() + "\n";
  return text;
}

inline std::vector<Json> usual_records() {
  std::vector<Json> records;
  for (int step = 10; step <= 100; step += 10) {
    records.push_back(train_record(step, 2.0 / step + 0.1));
    if (step % 50 == 0) records.push_back(eval_record("val", step, 0.5 + step / 250.0));
  }
  records.push_back(eval_record("test", 100, 0.875));
  records.push_back({{"kind", "note"}, {"step", 50}, {"text", "resumed"}});
  records.push_back({{"kind", "done"}, {"step", 100}, {"best_step", 100}, {"seconds", 83}, {"peak_memory_mb", 1536}});
  return records;
}

// Writes a run at folder/name and returns its path.
inline std::string write_run(const TemporaryFolder& folder, const std::string& name, const std::string& metrics,
                             const std::string& config = "[model]\nname = \"vit\"\n\n[data]\nname = \"glyphs\"\n") {
  folder.write(name + "/config.toml", config);
  folder.write(name + "/env.json", R"({"sparsight": "0.1.0", "threads": 2})");
  folder.write(name + "/metrics.jsonl", metrics);
  return folder.path(name);
}

}  // namespace sparsight::testing
