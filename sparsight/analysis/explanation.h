// The result of `sparsight explain` for a model and some images, as a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"

namespace sparsight {

struct Example {
  std::string id;         // a path, or "test/123"
  std::string truth;      // the class's name, "" if unknown
  std::string predicted;  // the class's name
  double probability = 0;
  at::Tensor picture;   // [3,H,W] uint8, what the model saw
  at::Tensor panels;    // [3,*,*] uint8, its patches in the colours of their experts; undefined without MoE layers
  std::string caption;  // layers, and experts of the class token
};

struct Explanation {
  std::string source;                      // description: "best checkpoint, 500 images of the test split"
  std::vector<std::string> classes;        // K names
  std::vector<std::string> super_classes;  // G names; empty: the classes are not divided
  std::vector<int64_t> super_class_of;     // [K]
  bool guided = false;                     // expert e is for super-class e
  int64_t images = 0, labelled = 0, correct = 0;
  Json layers = Json::array();         // as in metrics.jsonl: load, importance, cv_load ... of each MoE layer
  Json class_expert = Json::object();  // {layer: [K][E]} of the images with a label; by predicted class if none has one
  Json patch_routing = Json::array();  // to_json(PatchRoutingReport) with "of", the attribute that names the patches
  std::vector<std::string> domains, parts;   // names; parts without the background, the last row of their tables
  Json domain_expert = Json::object();       // {layer: [domains][E]} of images of several domains
  Json domain_information = Json::object();  // {layer: what its experts tell about the domain}
  Json part_experts = Json::array();         // PartExperts::json of each layer, with "domain": a name, or null for all
  std::vector<Example> examples;

  std::vector<std::string> expert_super_classes() const {  // of each expert; empty unless routers are guided
    return guided ? super_classes : std::vector<std::string>();
  }
  std::vector<std::string> part_rows() const {  // the names of the rows of the parts' tables
    std::vector<std::string> rows = parts;
    rows.emplace_back("background");
    return rows;
  }
  Json part_tables() const {  // {layer: [P+1][E]} of all images
    Json tables = Json::object();
    for (const Json& report : part_experts)
      if (report["domain"].is_null()) tables[report["layer"].get<std::string>()] = report["counts"];
    return tables;
  }
  bool by_predicted_class() const { return labelled == 0; }  // what class_expert goes by
  std::optional<double> accuracy() const {
    return labelled > 0 ? std::optional(static_cast<double>(correct) / static_cast<double>(labelled)) : std::nullopt;
  }
};

}  // namespace sparsight
