#include "sparsight/data/data_info_json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight::data_info_json_test {
namespace {

TEST(DataInfoJson, ComesBackWhole) {
  const DataInfo info{
      "pets", {"cat", "dog", "hen"}, {"photo", "sketch"}, {"mammal", "bird"}, {0, 0, 1}, 3, 32, 48, {"cell"}, {4, 5}};
  const DataInfo back = data_info_from(Json::parse(to_json(info).dump()));
  EXPECT_EQ(back.name, "pets");
  EXPECT_EQ(back.classes, info.classes);
  EXPECT_EQ(back.domains, info.domains);
  EXPECT_EQ(back.super_classes, info.super_classes);
  EXPECT_EQ(back.super_class_of, info.super_class_of);
  EXPECT_EQ(back.channels, 3);
  EXPECT_EQ(back.height, 32);
  EXPECT_EQ(back.width, 48);
  EXPECT_EQ(back.attributes, info.attributes);
  EXPECT_EQ(back.cell_grid, info.cell_grid);
}

TEST(DataInfoJson, RefusesWhatIsDamaged) {
  Json json = to_json(DataInfo{"pets", {"cat"}, {"photo"}, {"mammal"}, {0}, 3, 0, 0});
  json["super_class_of"] = {1};
  EXPECT_THROW(data_info_from(json), Error);
  json.erase("classes");
  EXPECT_THROW(data_info_from(json), Error);
  EXPECT_THROW(data_info_from(Json("text")), Error);
}

}  // namespace
}  // namespace sparsight::data_info_json_test
