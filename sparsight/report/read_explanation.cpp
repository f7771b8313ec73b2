#include "sparsight/report/read_explanation.h"

#include <algorithm>
#include <filesystem>

#include "sparsight/report/run_file.h"

namespace sparsight {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxJson = size_t{1} << 26, kMaxPicture = size_t{1} << 24;
constexpr size_t kMaxExamples = 64;

// A file next to explain.json. Names come from an untrusted file: only plain file names are accepted.
std::string read_picture(const std::string& path, const std::string& name) {
  if (name.empty()) return "";
  if (name != fs::path(name).filename() || name == "..") fail("explain.json names a file outside its folder: ", name);
  return read_run_file(path, "explain/" + name, kMaxPicture);
}

ExplainedImage read_example(const std::string& path, const Json& example, std::vector<std::string>& warnings) {
  ExplainedImage image{text(example, "id"),
                       text(example, "true"),
                       text(example, "predicted"),
                       number(example, "probability").value_or(0),
                       "",
                       "",
                       text(example, "caption")};
  attempt(warnings, [&] { image.picture_png = read_picture(path, text(example, "picture")); });
  attempt(warnings, [&] { image.experts_png = read_picture(path, text(example, "experts")); });
  return image;
}

}  // namespace

Json read_object(const std::string& path, const std::string& name) {
  Json object = parse_json(read_run_file(path, name, kMaxJson));
  if (!object.is_object()) fail(path, "/", name, " is not a JSON object; ignored");
  return object;
}

std::vector<std::string> strings_of(const Json& list) {
  std::vector<std::string> values;
  if (list.is_array())
    for (const Json& entry : list) values.push_back(entry.is_string() ? entry.get<std::string>() : "");
  return values;
}

void read_explanation(const std::string& path, RunSummary& run) {
  std::error_code none;
  if (!fs::exists(fs::symlink_status(path + "/explain/explain.json", none))) return;
  Json explain;
  attempt(run.warnings, [&] { explain = read_object(path, "explain/explain.json"); });
  if (const auto classes = strings_of(member(explain, "classes")); !classes.empty()) run.classes = classes;
  run.explain_class_expert = member(explain, "class_expert");
  run.explain_patch_routing = member(explain, "patch_routing");
  run.explain_caption = text(explain, "caption");
  const Json& examples = member(explain, "examples");
  for (size_t i = 0; examples.is_array() && i < std::min(examples.size(), kMaxExamples); ++i)
    run.examples.push_back(read_example(path, examples[i], run.warnings));
}

}  // namespace sparsight
