#include "sparsight/report/run/confused_file.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "sparsight/data/sets/array_set.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"
#include "sparsight/report/report_page.h"
#include "tests/report/run_fixture.h"

namespace sparsight::confused_file_test {
namespace {

using testing::TemporaryFolder;

const Json kEval = Json::parse(R"({"kind": "eval", "split": "test", "step": 8, "weights": "ema", "images": 20,
  "accuracy": 0.5, "cells": [{"class": "a", "domain": "x", "images": 10, "accuracy": 0.5},
                             {"class": "b", "domain": "x", "images": 10, "accuracy": 0.5}],
  "confusions": [{"true": "a", "predicted": "b", "images": 5, "of": 10}]})");

// `count` images of class 0 that are taken for class 1, each more certainly than the one before.
ConfusedImages confused(int64_t count) {
  ConfusedImages images(TaskLoss::cross_entropy);
  Batch batch;
  batch.labels = at::zeros({count}, at::kLong);
  batch.indices = at::arange(count, at::kLong);
  for (int64_t i = 0; i < count; ++i) batch.ids.push_back("test/" + std::to_string(i));
  ModelOutput output;
  output.logits = at::zeros({count, 2});
  output.logits.select(1, 1).copy_(at::arange(1, count + 1));
  images.observe(batch, output);
  return images;
}

ArraySet images_of_side(int64_t count, int64_t side, int64_t classes = 2) {
  return ArraySet({.name = "toy",
                   .classes = classes == 2 ? std::vector<std::string>{"a", "b"} : number_names(classes),
                   .domains = {"x"}},
                  {at::zeros({count, 3, side, side}, at::kByte), std::vector<int64_t>(static_cast<size_t>(count), 0),
                   "test", "labels"});
}

Json read_back(const TemporaryFolder& folder, const Json& eval = kEval) {
  std::vector<std::string> warnings;
  Json cells = read_confused(folder.path("run"), eval, warnings);
  EXPECT_TRUE(warnings.empty()) << warnings[0];
  return cells;
}

std::string warning_for(const TemporaryFolder& folder, const Json& eval = kEval) {
  std::vector<std::string> warnings;
  EXPECT_TRUE(read_confused(folder.path("run"), eval, warnings).is_null());
  EXPECT_EQ(warnings.size(), 1u);
  return warnings.empty() ? "" : warnings[0];
}

}  // namespace

TEST(ConfusedFile, IsWrittenAndReadWithItsPictures) {
  const TemporaryFolder folder;
  folder.write("run/config.toml", "");
  const std::string file = folder.path("run/confused.json");
  for (const auto& [side, kind] : {std::pair{8, "data:image/png;base64,"}, {200, "data:image/jpeg;base64,"}}) {
    write_confused(file, confused(3), images_of_side(3, side), kEval);
    const Json cells = read_back(folder);
    ASSERT_EQ(cells.size(), 1u);
    EXPECT_EQ(cells[0]["true"], "a");
    EXPECT_EQ(cells[0]["predicted"], "b");
    EXPECT_EQ(cells[0]["images"], 3);
    ASSERT_EQ(cells[0]["confused"].size(), 3u);
    const Json& worst = cells[0]["confused"][0];
    EXPECT_EQ(worst["index"], 2);
    EXPECT_EQ(worst["id"], "test/2");
    EXPECT_NEAR(worst["probability"].get<double>(), 0.952574, 1e-5);  // 1 / (1 + e^-3)
    EXPECT_TRUE(worst["picture"].get<std::string>().starts_with(kind)) << side;
  }
  EXPECT_NE(read_file(file, 1 << 24).find("\"xxh3\""), std::string::npos);
}

TEST(ConfusedFile, IsBounded) {
  const TemporaryFolder folder;
  folder.write("run/config.toml", "");
  // 40 classes: only those confusions that the report lists.
  ConfusedImages images(TaskLoss::cross_entropy);
  Batch batch;
  batch.labels = at::zeros({39}, at::kLong);
  batch.indices = at::arange(39, at::kLong);
  batch.ids.assign(39, std::string(5000, 'x') + "/name.png");
  ModelOutput output;
  output.logits = at::zeros({39, 40});
  for (int64_t i = 0; i < 39; ++i) output.logits[i][i + 1] = 5;
  images.observe(batch, output);
  write_confused(folder.path("run/confused.json"), images, images_of_side(39, 4, 40), kEval);
  const Json cells = read_back(folder);
  EXPECT_EQ(cells.size(), 20u);
  const std::string id = cells[0]["confused"][0]["id"];
  EXPECT_LE(id.size(), kMaxConfusedIdBytes + 3);
  EXPECT_TRUE(id.starts_with("...") && id.ends_with("/name.png")) << id;
}

TEST(ConfusedFile, WhatIsDamagedOrOfAnotherEvaluationIsLeftOut) {
  const TemporaryFolder folder;
  folder.write("run/config.toml", "");
  EXPECT_TRUE(read_back(folder).is_null()) << "no file";
  const std::string file = folder.path("run/confused.json");
  write_confused(file, confused(2), images_of_side(2, 8), kEval);
  for (const auto& [key, value] : {std::pair<const char*, Json>{"step", 9}, {"split", "val"}, {"images", 21}}) {
    Json other = kEval;
    other[key] = value;
    EXPECT_NE(warning_for(folder, other).find("it is of another evaluation than the one shown"), std::string::npos);
  }
  std::string text = read_file(file, 1 << 24);
  text.replace(text.find("test/1"), 6, "test/7");
  folder.write("run/confused.json", text);
  EXPECT_NE(warning_for(folder).find("confused.json does not match its checksum"), std::string::npos);
  folder.write("run/confused.json", "[");
  EXPECT_NE(warning_for(folder).find("confused.json"), std::string::npos);
}

TEST(ConfusedFile, ForeignTextReachesNoAttribute) {
  const TemporaryFolder folder;
  folder.write("run/config.toml", "");
  Json json = kEval;
  json["cells"] = {{{"true", "a"}, {"predicted", "b"}, {"images", 1e300}, {"confused", Json::array()}}, 3};
  for (const char* picture :
       {"https://example.com/a.png", "data:image/svg+xml;base64,AAAA", "data:image/png;base64,AAAA",
        "data:image/png;base64,iVBORw0KGgo\" onload=\"x", "javascript:alert(1)"})
    json["cells"][0]["confused"].push_back({{"index", "?"}, {"probability", 7}, {"id", 3}, {"picture", picture}});
  folder.write("run/confused.json", checked_json_file(json));
  const Json cells = read_back(folder);
  ASSERT_EQ(cells.size(), 1u);
  ASSERT_EQ(cells[0]["confused"].size(), 5u);
  for (const Json& image : cells[0]["confused"]) {
    EXPECT_FALSE(image.contains("picture"));
    EXPECT_EQ(image["probability"], 1);
  }
}

TEST(ConfusedFile, TheReportOpensThePhotos) {
  const TemporaryFolder folder;
  const std::string run = testing::write_run(folder, "run", testing::lines({kEval}));
  const std::string without = report_page(read_run_summary(run));
  EXPECT_EQ(without.find("photo-cells"), std::string::npos);
  write_confused(run + "/confused.json", confused(5), images_of_side(5, 8), kEval);
  const std::string page = report_page(read_run_summary(run));
  for (const char* part : {"id=\"photo-cells\"", "\"usermeta\":{\"photos\":true}", "id=\"photos\"",
                           "<button type=\"button\" data-photos=\"0\">5 of 10</button>", "data:image/png;base64,iVBOR"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_LT(page.size(), without.size() + kMaxConfusedPictureBytes + 20'000);
}

}  // namespace sparsight::confused_file_test
