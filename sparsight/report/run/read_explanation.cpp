#include "sparsight/report/run/read_explanation.h"

#include <algorithm>
#include <filesystem>

#include "sparsight/core/limits.h"
#include "sparsight/io/checked_json.h"
#include "sparsight/report/run/run_file.h"

namespace sparsight {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxExamples = 64;

// A file next to explain.json. Names come from an untrusted file: only plain file names are accepted.
std::string read_picture(const std::string& path, const std::string& folder, const std::string& name) {
  if (name.empty()) return "";
  if (name != fs::path(name).filename() || name == "..") fail("explain.json names a file outside its folder: ", name);
  return read_run_file(path, folder + "/" + name, kMaxPictureBytes);
}

ExplainedImage read_example(const std::string& path, const std::string& folder, const Json& example,
                            std::vector<std::string>& warnings) {
  ExplainedImage image{text(example, "id"),
                       text(example, "true"),
                       text(example, "predicted"),
                       number(example, "probability").value_or(0),
                       "",
                       "",
                       text(example, "caption")};
  attempt(warnings, [&] { image.picture_png = read_picture(path, folder, text(example, "picture")); });
  attempt(warnings, [&] { image.experts_png = read_picture(path, folder, text(example, "experts")); });
  return image;
}

}  // namespace

Json read_object(const std::string& path, const std::string& name) {
  return parse_checked_object(read_run_file(path, name, kMaxJsonBytes), path + "/" + name);
}

std::vector<std::string> read_strings(const Json& list) {
  std::vector<std::string> values;
  if (list.is_array())
    for (const Json& entry : list) values.push_back(entry.is_string() ? entry.get<std::string>() : "");
  return values;
}

ExplainSummary read_explanation(const std::string& path, const std::string& name, RunSummary& run) {
  ExplainSummary summary;
  const std::string file = name + "/explain.json";
  std::error_code none;
  if (!fs::exists(fs::symlink_status(path + "/" + file, none))) return summary;
  Json explain;
  attempt(run.warnings, [&] { explain = read_object(path, file); });
  if (const auto classes = read_strings(member(explain, "classes")); !classes.empty()) run.classes = classes;
  summary.layers = member(explain, "layers");
  summary.class_expert = member(explain, "class_expert");
  summary.by_predicted_class = text(explain, "class_expert_by") == "predicted";
  summary.patch_routing = member(explain, "patch_routing");
  summary.domains = read_strings(member(explain, "domains"));
  summary.domain_expert = member(explain, "domain_expert");
  summary.domain_information = member(explain, "domain_information");
  summary.parts = read_strings(member(explain, "parts"));
  summary.part_experts = member(explain, "part_experts");
  summary.caption = text(explain, "caption");
  const Json& examples = member(explain, "examples");
  for (size_t i = 0; examples.is_array() && i < std::min(examples.size(), kMaxExamples); ++i)
    summary.examples.push_back(read_example(path, name, examples[i], run.warnings));
  return summary;
}

}  // namespace sparsight
