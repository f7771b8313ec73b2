#include "sparsight/infer/publish_run.h"

#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/number_text.h"
#include "sparsight/core/path_text.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/toml.h"
#include "sparsight/cost/part_cost.h"
#include "sparsight/data/hash.h"
#include "sparsight/infer/loaded_model.h"
#include "sparsight/io/atomic_folder.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/io/weights.h"
#include "sparsight/report/format.h"
#include "sparsight/report/run/run_metrics.h"
#include "sparsight/report/text_table.h"

namespace sparsight {
namespace {

// A text in YAML: JSON's strings are YAML's too.
std::string yaml_text(const std::string& text) { return json_text(Json(text)); }

Json model_config(const LoadedModel& loaded) {
  const PixelStatistics pixels = loaded.model->pixel_statistics();
  return {{"library_name", "sparsight"},
          {"sparsight", describe_environment().at("sparsight")},
          {"architecture", member(member(loaded.config, "model"), "name")},
          {"num_classes", loaded.shape.classes},
          {"label_names", loaded.data.classes},
          {"input_size", {loaded.shape.channels, loaded.shape.height, loaded.shape.width}},
          {"mean", pixels.mean},
          {"std", pixels.std},
          {"config", loaded.config}};
}

std::string front_matter(const PublishRequest& request, const std::string& name, const LoadedModel& loaded,
                         const Json& result) {
  const bool routed = !loaded.expert_weights.of_expert.empty();
  std::string text = "---\nlibrary_name: sparsight\npipeline_tag: image-classification\n";
  if (!request.license.empty()) text += "license: " + yaml_text(request.license) + "\n";
  text += cat("tags:\n- image-classification\n", routed ? "- mixture-of-experts\n" : "");
  if (result.is_null()) return text + "---\n";
  const ScoreName score = score_name(result);
  text += cat("model-index:\n- name: ", yaml_text(name),
              "\n  results:\n  - task:\n      type: image-classification\n    dataset:\n      name: ",
              yaml_text(loaded.data.name), "\n      type: ", yaml_text(loaded.data.name),
              "\n      split: ", yaml_text(part_of_eval(result)), "\n    metrics:\n    - type: ", yaml_text(score.name),
              "\n      value: ", fixed(number(result, score.key).value_or(0), 6), "\n");
  return text + "---\n";
}

Rows fact_rows(const LoadedModel& loaded, const RunMetrics& log, const Cost& cost, const std::string& sha256) {
  Rows rows{{"", ""},
            {"model", text(member(loaded.config, "model"), "name")},
            {"data", loaded.data.name},
            {"classes", std::to_string(loaded.shape.classes)},
            {"images", cat(loaded.shape.channels, " x ", loaded.shape.height, " x ", loaded.shape.width)},
            {"parameters", grouped(cost.parameters)},
            {"parameters that one token uses", grouped(cost.active_parameters)},
            {"multiply-adds per image", grouped(cost.multiply_adds)},
            {"weights", cat(loaded.weights, ", step ", grouped(loaded.step))}};
  if (const auto seconds = number(log.done, "seconds")) rows.push_back({"training", fixed(*seconds, 0) + " s"});
  rows.push_back({"SHA-256 of model.safetensors", sha256});
  return rows;
}

Rows result_rows(const RunMetrics& log) {
  Rows rows{{"split", "weights", "images", "score", "loss"}};
  for (const Json& result : last_evals(log)) {
    if (!is_reported(result)) continue;
    const ScoreName score = score_name(result);
    rows.push_back({part_of_eval(result), weights_of_eval(result),
                    grouped(static_cast<int64_t>(number(result, "images").value_or(0))),
                    cat(score.name, " ", percent(number(result, score.key))),
                    fixed(number(result, "loss").value_or(0), 4)});
  }
  return rows;
}

std::string model_card(const PublishRequest& request, const std::string& name, const LoadedModel& loaded,
                       const RunMetrics& log, const Cost& cost, const std::string& sha256) {
  const Json result = final_eval(log, false);
  std::string text = front_matter(request, name, loaded, result);
  text += cat("\n# ", name, "\n\nAn image classifier, trained with Sparsight",
              loaded.expert_weights.of_expert.empty() ? "" : ", with layers that are mixtures of experts", ".\n\n");
  if (const Rows rows = result_rows(log); rows.size() > 1) text += "## Results\n\n" + markdown(rows) + "\n";
  text += "## Model\n\n" + markdown(fact_rows(loaded, log, cost, sha256)) + "\n";
  text += cat("License: ", request.license.empty() ? "none is given" : request.license, ".\n\n");
  text +=
      "## Use\n\n"
      "    sparsight predict model.safetensors --config config.toml photo.jpg\n\n"
      "`config.json` has the names of the classes, the size of the images and their normalisation, which is part of "
      "the "
      "model: it takes pixels from 0 to 1. The tensors have their names in timm where timm has the model.\n";
  return text;
}

}  // namespace

Json publish_run(const PublishRequest& request) {
  const RunFolder run = RunFolder::open(request.run);
  const LoadedModel loaded = load_model(request.run, request.checkpoint);
  const std::string name =
      printable(request.name.empty() ? std::filesystem::path(without_slashes_at_end(request.run)).filename().string()
                                     : request.name);
  const RunMetrics log = read_run_metrics(run.metrics());
  if (!log.damage.empty()) fail(printable(request.run), ": ", log.damage, "; a card of it would be wrong");
  AtomicFolder made(request.out);
  const std::string weights = made.aside() + "/model.safetensors";
  write_safetensors(weights, {named_weights(*loaded.model), {{"format", "pt"}}});
  const std::string sha256 = hash_file(weights);
  const Cost cost = total(loaded.model->cost({}));
  write_file_atomically(made.aside() + "/config.json", json_text(model_config(loaded), 2) + "\n");
  write_file_atomically(made.aside() + "/config.toml", to_toml(loaded.config));
  write_file_atomically(made.aside() + "/README.md", model_card(request, name, loaded, log, cost, sha256));
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(weights));
  made.commit();
  return {{"out", printable(request.out)}, {"sha256", sha256}, {"bytes", bytes}, {"parameters", cost.parameters}};
}

}  // namespace sparsight
