#include "sparsight/report/run/explain_folder.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <regex>

#include "sparsight/analysis/heat_map.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/report/format.h"
#include "sparsight/report/run/superclass_text.h"

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
      "([0-9]{3,}_(image|experts)\\.png|(class|domain|part)_expert_[0-9]+_.*\\.png|part_expert\\.csv|explain\\.json)("
      "\\.[0-9]+-[0-9]+\\.tmp)?");
  std::error_code ignored;
  if (fs::is_symlink(fs::symlink_status(folder, ignored))) return;
  fs::remove(folder + "/explain.json", ignored);  // first: without it nobody takes the rest for an explanation
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (std::regex_match(entry.path().filename().string(), ours)) found.push_back(entry.path());
  for (const fs::path& path : found) fs::remove(path, ignored);
}

struct MapWords {
  std::string row, of;                    // what a row is, and what it counts
  std::vector<std::string> columns = {};  // of experts; empty: their numbers alone
};

// One file per layer, a row per name. Returns {layer: file}.
Json write_maps(const std::string& folder, const std::string& kind, const Json& by_layer, const MapWords& words,
                const std::vector<std::string>& rows) {
  Json files = Json::object();
  for (const auto& [layer, counts] : by_layer.items()) {
    const std::string name = kind + "_expert_" + std::to_string(files.size()) + "_" + plain(layer) + ".png";
    write_file_atomically(folder + "/" + name, encode_png(heat_map_picture(layer + ": " + words.row + " by expert",
                                                                           counts, rows, words.of, words.columns)));
    files[layer] = name;
  }
  return files;
}

std::string part_csv(const Json& reports, const std::vector<std::string>& rows) {
  std::string csv = "layer,domain,part,expert,patches\n";
  for (const Json& report : reports) {
    const std::string layer = csv_quoted(report["layer"].get<std::string>());
    const std::string domain = report["domain"].is_null() ? "" : csv_quoted(report["domain"].get<std::string>());
    for (size_t row = 0; row < rows.size(); ++row)
      for (size_t e = 0; e < report["counts"][row].size(); ++e)
        csv += layer + "," + domain + "," + csv_quoted(rows[row]) + "," + std::to_string(e) + "," +
               std::to_string(report["counts"][row][e].get<int64_t>()) + "\n";
  }
  return csv;
}

// What is not about classes: domains and parts, if there are any.
void add_domains_and_parts(const std::string& folder, const Explanation& explanation, Json& json) {
  if (!explanation.domain_expert.empty()) {
    json["domains"] = explanation.domains;
    json["domain_expert"] = explanation.domain_expert;
    json["domain_information"] = explanation.domain_information;
    json["domain_expert_pictures"] = write_maps(folder, "domain", explanation.domain_expert,
                                                {"domain", "a domain's assignments"}, explanation.domains);
  }
  if (explanation.part_experts.empty()) return;
  const std::vector<std::string> rows = explanation.part_rows();
  json["parts"] = rows;
  json["part_experts"] = explanation.part_experts;
  json["part_expert_pictures"] =
      write_maps(folder, "part", explanation.part_tables(), {"part", "a part's patches"}, rows);
  write_file_atomically(folder + "/part_expert.csv", part_csv(explanation.part_experts, rows));
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

  Json examples = Json::array();
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
  const MapWords words{explanation.by_predicted_class() ? "predicted class" : "class", "a class's assignments",
                       expert_names(explanation.expert_super_classes())};
  const Json maps = write_maps(folder, "class", explanation.class_expert, words, explanation.classes);

  Json json = {
      {"format", "sparsight-explain"}, {"version", 1}, {"caption", explanation.source}, {"images", explanation.images}};
  if (explanation.accuracy()) json["accuracy"] = *explanation.accuracy();
  json["classes"] = explanation.classes;
  if (!explanation.super_classes.empty()) {
    json["super_classes"] = explanation.super_classes;
    json["super_class_of"] = explanation.super_class_of;
    json["guided"] = explanation.guided;
  }
  json["layers"] = explanation.layers;
  json["class_expert"] = explanation.class_expert;
  json["class_expert_by"] = explanation.by_predicted_class() ? "predicted" : "true";
  json["class_expert_pictures"] = maps;
  if (!explanation.patch_routing.empty()) json["patch_routing"] = explanation.patch_routing;
  add_domains_and_parts(folder, explanation, json);
  json["examples"] = examples;
  write_file_atomically(folder + "/explain.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return json;
}

}  // namespace sparsight
