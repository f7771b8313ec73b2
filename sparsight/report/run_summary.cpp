#include "sparsight/report/run_summary.h"

#include <algorithm>
#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/toml.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/report/explain_folder.h"

namespace sparsight {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxExamples = 64;

std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> values;
  if (list.is_array())
    for (const Json& entry : list) values.push_back(entry.is_string() ? entry.get<std::string>() : "");
  return values;
}

// Calls `read`; a failure becomes a warning and the report continues.
template <class Read>
void attempt(std::vector<std::string>& warnings, Read read) {
  try {
    read();
  } catch (const Error& error) {
    warnings.push_back(error.what());
  }
}

Json read_object(const std::string& path) { return parse_json_object(read_file(path, kMaxJsonBytes), path); }

// The class names that the run's checkpoints keep.
std::vector<std::string> checkpoint_classes(const RunFolder& folder) {
  for (const char* name : {"best", "last"}) {
    if (!folder.has_checkpoint(name)) continue;
    const auto metadata = read_safetensors_metadata(folder.checkpoint(name));
    const auto state = metadata.find("state");
    if (state == metadata.end()) continue;
    return strings(member(member(parse_json_object(state->second, "the state of the checkpoint"), "data"), "classes"));
  }
  return {};
}

// Reads a file next to explain.json. Names come from an untrusted file: only plain file names are accepted.
std::string read_picture(const std::string& folder, const std::string& name) {
  if (name.empty()) return "";
  if (name != fs::path(name).filename() || name == "..") fail("explain.json names a file outside its folder: ", name);
  return read_file(folder + "/" + name, kMaxPictureBytes);
}

ExplainSummary read_explain(const std::string& folder, RunSummary& run) {
  ExplainSummary summary;
  if (!fs::exists(folder + "/explain.json")) return summary;
  const Json explain = read_object(folder + "/explain.json");
  if (const auto classes = strings(member(explain, "classes")); !classes.empty()) run.classes = classes;
  summary.layers = member(explain, "layers");
  summary.class_expert = member(explain, "class_expert");
  summary.by_predicted_class = text(explain, "class_expert_by") == "predicted";
  summary.patch_routing = member(explain, "patch_routing");
  summary.caption = text(explain, "caption");
  const Json& examples = member(explain, "examples");
  for (size_t i = 0; examples.is_array() && i < std::min(examples.size(), kMaxExamples); ++i) {
    const Json& example = examples[i];
    ExplainedImage image{text(example, "id"),
                         text(example, "true"),
                         text(example, "predicted"),
                         number(example, "probability").value_or(0),
                         "",
                         "",
                         text(example, "caption")};
    attempt(run.warnings, [&] { image.picture_png = read_picture(folder, text(example, "picture")); });
    attempt(run.warnings, [&] { image.experts_png = read_picture(folder, text(example, "experts")); });
    summary.examples.push_back(std::move(image));
  }
  return summary;
}

}  // namespace

RunSummary read_run_summary(const std::string& path) {
  const RunFolder folder = RunFolder::open(path);
  RunSummary run;
  run.name = fs::weakly_canonical(path).filename().string();
  if (!fs::exists(folder.metrics())) fail(path, " has no metrics.jsonl yet; train the run first");
  run.log = read_run_metrics(folder.metrics());
  run.warnings = run.log.warnings;
  if (run.log.empty()) fail(folder.metrics(), " has no training or evaluation records; train the run first");
  attempt(run.warnings,
          [&] { run.config = parse_toml(read_file(folder.config(), kMaxConfigBytes), folder.config()).tree; });
  attempt(run.warnings, [&] { run.env = read_object(folder.env()); });
  attempt(run.warnings, [&] { run.classes = checkpoint_classes(folder); });
  attempt(run.warnings, [&] { run.explain = read_explain(explain_folder(path), run); });
  attempt(run.warnings, [&] { run.explain_images = read_explain(explain_images_folder(path), run); });
  return run;
}

}  // namespace sparsight
