#include "sparsight/report/charts/prediction_charts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sparsight::prediction_charts_test {
namespace {

// Class "a" has 10 images in two domains, 7 of them right; "b" has 5, all right.
Json record() {
  return Json::parse(R"({
    "cells": [{"class": "a", "domain": "x", "images": 6, "accuracy": 0.5},
              {"class": "a", "domain": "y", "images": 4, "accuracy": 1},
              {"class": "b", "domain": "x", "images": 5, "accuracy": 1}],
    "confusions": [{"true": "a", "predicted": "b", "images": 3, "of": 10}],
    "calibration": {"ece": 0.0625, "bins": [{"images": 15, "confidence": 0.9, "accuracy": 0.8}]}})");
}

}  // namespace

TEST(PredictionCharts, TheMatrixHasEachPairOfClassesThatOccurred) {
  const std::vector<Chart> charts = prediction_charts(record());
  ASSERT_EQ(charts.size(), 2u);
  const Json& cells = charts[0].spec["data"]["values"];
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_EQ(cells[0].dump(), R"({"true":"a","predicted":"a","images":7.0,"share":0.7})");
  EXPECT_EQ(cells[1].dump(), R"({"true":"b","predicted":"b","images":5.0,"share":1.0})");
  EXPECT_EQ(cells[2].dump(), R"({"true":"a","predicted":"b","images":3.0,"share":0.3})");
  EXPECT_EQ(charts[0].spec["encoding"]["x"]["scale"]["domain"], Json({"a", "b"}));
  EXPECT_NE(charts[1].note.find("6.25 %"), std::string::npos) << charts[1].note;
  EXPECT_EQ(charts[1].spec["layer"][1]["data"]["values"][0]["accuracy"], 0.8);
}

TEST(PredictionCharts, TheMatrixSaysWhereItsCellsOpenPhotos) {
  EXPECT_FALSE(prediction_charts(record())[0].spec.contains("usermeta"));
  const Chart matrix = prediction_charts(record(), /*photos=*/true)[0];
  EXPECT_EQ(matrix.spec["usermeta"], Json({{"photos", true}}));
  EXPECT_NE(matrix.note.find("Click a cell for its photos"), std::string::npos);
}

TEST(PredictionCharts, AreLeftOutWhereTheRecordHasNoNumbers) {
  EXPECT_TRUE(prediction_charts(Json()).empty());
  EXPECT_TRUE(prediction_charts(Json::parse(R"({"cells": 3, "confusions": {}, "calibration": []})")).empty());
  EXPECT_TRUE(prediction_charts(Json::parse(R"({"cells": [3, null], "confusions": [3]})")).size() < 2);
  Json many = record();
  for (int i = 0; i < 40; ++i) many["cells"].push_back({{"class", std::to_string(i)}, {"images", 1}, {"accuracy", 1}});
  EXPECT_EQ(prediction_charts(many).size(), 1u);  // records of so many classes lack rare confusions
}

}  // namespace sparsight::prediction_charts_test
