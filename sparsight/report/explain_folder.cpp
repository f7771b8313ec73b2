#include "sparsight/report/explain_folder.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <regex>

#include "sparsight/analysis/heat_map.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {

namespace {

namespace fs = std::filesystem;

// A layer's name as part of a file name.
std::string plain(const std::string& layer) {
  std::string name;
  for (char c : layer) name += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' ? c : '_';
  return name.substr(0, 80);
}

std::string numbered(size_t index, const char* kind) {
  char name[64];
  std::snprintf(name, sizeof name, "%03zu_%s.png", index, kind);
  return name;
}

void remove_explanation(const std::string& folder) {
  const std::regex ours(
      "([0-9]{3,}_(image|experts)\\.png|class_expert_[0-9]+_.*\\.png|explain\\.json)(\\.[0-9]+-[0-9]+\\.tmp)?");
  std::error_code ignored;
  if (fs::is_symlink(fs::symlink_status(folder, ignored))) return;
  fs::remove(folder + "/explain.json", ignored);  // first: without it nobody takes the rest for an explanation
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (std::regex_match(entry.path().filename().string(), ours)) found.push_back(entry.path());
  for (const fs::path& path : found) fs::remove(path, ignored);
}

}  // namespace

std::string explain_folder(const std::string& run) { return run + "/explain"; }
std::string explain_images_folder(const std::string& run) { return run + "/explain_images"; }

void remove_explanations(const std::string& run) {
  remove_explanation(explain_folder(run));
  remove_explanation(explain_images_folder(run));
}

Json write_explanation(const std::string& folder, const Explanation& explanation) {
  create_folder(folder);
  remove_explanation(folder);

  Json examples = Json::array(), maps = Json::object();
  for (size_t i = 0; i < explanation.examples.size(); ++i) {
    const Example& example = explanation.examples[i];
    Json entry = {{"id", example.id}};
    if (!example.truth.empty()) entry["true"] = example.truth;
    entry["predicted"] = example.predicted;
    entry["probability"] = example.probability;
    entry["picture"] = numbered(i, "image");
    write_file_atomically(folder + "/" + numbered(i, "image"), encode_png(example.picture));
    if (example.panels.defined()) {
      entry["experts"] = numbered(i, "experts");
      entry["caption"] = example.caption;
      write_file_atomically(folder + "/" + numbered(i, "experts"), encode_png(example.panels));
    }
    examples.push_back(std::move(entry));
  }
  for (const auto& [layer, counts] : explanation.class_expert.items()) {
    const std::string name = "class_expert_" + std::to_string(maps.size()) + "_" + plain(layer) + ".png";
    const std::string title =
        layer + (explanation.by_predicted_class() ? ": predicted class" : ": class") + " by expert";
    write_file_atomically(folder + "/" + name, encode_png(heat_map_picture(title, counts, explanation.classes)));
    maps[layer] = name;
  }

  Json json = {
      {"format", "sparsight-explain"}, {"version", 1}, {"caption", explanation.source}, {"images", explanation.images}};
  if (explanation.accuracy()) json["accuracy"] = *explanation.accuracy();
  json["classes"] = explanation.classes;
  json["layers"] = explanation.layers;
  json["class_expert"] = explanation.class_expert;
  json["class_expert_by"] = explanation.by_predicted_class() ? "predicted" : "true";
  json["class_expert_pictures"] = maps;
  if (!explanation.patch_routing.empty()) json["patch_routing"] = explanation.patch_routing;
  json["examples"] = examples;
  write_file_atomically(folder + "/explain.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return json;
}

}  // namespace sparsight
