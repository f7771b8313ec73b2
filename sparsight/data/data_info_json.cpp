#include "sparsight/data/data_info_json.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight {

Json to_json(const DataInfo& info) {
  return {{"name", info.name},
          {"classes", info.classes},
          {"domains", info.domains},
          {"super_classes", info.super_classes},
          {"super_class_of", info.super_class_of},
          {"channels", info.channels},
          {"height", info.height},
          {"width", info.width},
          {"attributes", info.attributes},
          {"cell_grid", info.cell_grid},
          {"multi_label", info.multi_label}};
}

DataInfo data_info_from(const Json& json) {
  DataInfo info;
  try {
    json.at("name").get_to(info.name);
    json.at("classes").get_to(info.classes);
    json.at("domains").get_to(info.domains);
    json.at("super_classes").get_to(info.super_classes);
    json.at("super_class_of").get_to(info.super_class_of);
    json.at("channels").get_to(info.channels);
    json.at("height").get_to(info.height);
    json.at("width").get_to(info.width);
    if (json.contains("attributes")) json.at("attributes").get_to(info.attributes);
    if (json.contains("cell_grid")) json.at("cell_grid").get_to(info.cell_grid);
    if (json.contains("multi_label")) json.at("multi_label").get_to(info.multi_label);
  } catch (const nlohmann::json::exception& error) {
    fail("the checkpoint's description of its dataset is damaged (", error.what(), "); use another checkpoint");
  }
  for (const int64_t super_class : info.super_class_of)
    if (super_class < 0 || super_class >= static_cast<int64_t>(info.super_classes.size()))
      fail("the checkpoint's description of its dataset has super-class ", super_class, " of ",
           info.super_classes.size(), "; use another checkpoint");
  return info;
}

}  // namespace sparsight
