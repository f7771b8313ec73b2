#include "sparsight/data/domainbed/wilds.h"

#include <ctime>

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/data/domainbed/domainbed.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"
#include "tests/support/sanitizers.h"

namespace sparsight::wilds_test {
namespace {

using testing::error_text;

const std::string kPatches =
    ",patient,node,x_coord,y_coord,tumor,slide,center,split\n"
    "0,004,4,3328,21792,1,0,2,0\n"
    "1,004,4,3200,22272,0,0,2,1\n"
    "2,017,1,5,6,1,3,0,0\n"
    "3,099,2,7,8,0,9,4,0\n";

const std::string kPlaces =
    "split,category,country_code,timestamp\n"
    "train,zoo,FRA,2012\n"
    "seq,airport,KEN,2013\n"
    "val,airport,JPN,2014\n"
    "test,barn,XXX,2015\n"
    "train,zoo,KEN,2016\n";

const std::string kCountries =
    "name,alpha-2,alpha-3,region\n"
    "France,FR,FRA,Europe\n"
    "Kenya,KE,KEN,Africa\n"
    "Japan,JP,JPN,Asia\n"
    "Antarctica,AQ,XXX,\n";

std::string with(std::string text, const std::string& old, const std::string& now) {
  return text.replace(text.find(old), old.size(), now);
}

}  // namespace

TEST(Wilds, G40_CamelyonIsGroupedByHospital) {
  const WildsTable table = parse_camelyon17(kPatches, "metadata.csv");
  EXPECT_EQ(table.environments, (std::vector<std::string>{"hospital_0", "hospital_2", "hospital_4"}));
  EXPECT_EQ(table.classes.size(), 2u);
  ASSERT_EQ(table.images.size(), 4u);
  EXPECT_EQ(table.images[0].path, "patches/patient_004_node_4/patch_patient_004_node_4_x_3328_y_21792.png");
  const int64_t environments[] = {1, 1, 0, 2}, labels[] = {1, 0, 1, 0};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(table.images[i].environment, environments[i]) << i;
    EXPECT_EQ(table.images[i].label, labels[i]) << i;
  }
}

// The sequestered row 1 brings Africa to the second place and keeps its number.
TEST(Wilds, G40_FmowIsGroupedByRegionInOrderOfAppearance) {
  const WildsTable table = parse_fmow(kPlaces, "rgb_metadata.csv", kCountries, "countries.csv");
  EXPECT_EQ(table.environments, (std::vector<std::string>{"Europe", "Africa", "Asia", "Other"}));
  EXPECT_EQ(table.classes, (std::vector<std::string>{"airport", "barn", "zoo"}));
  const std::vector<std::string> paths = {"images/rgb_img_0.png", "images/rgb_img_2.png", "images/rgb_img_3.png",
                                          "images/rgb_img_4.png"};
  const int64_t environments[] = {0, 2, 3, 1}, labels[] = {2, 0, 1, 2};
  ASSERT_EQ(table.images.size(), paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ(table.images[i].path, paths[i]);
    EXPECT_EQ(table.images[i].environment, environments[i]) << i;
    EXPECT_EQ(table.images[i].label, labels[i]) << i;
  }
}

TEST(Wilds, SaysWhatIsWrongWithMetadata) {
  const auto patches = [](const std::string& text) {
    return error_text([&] { parse_camelyon17(text, "metadata.csv"); });
  };
  EXPECT_EQ(patches(with(kPatches, "center", "hospital")),
            "metadata.csv: there is no column \"center\" in its first line");
  EXPECT_EQ(patches(with(kPatches, "5,6,1", "5,6,7")), "metadata.csv:4: tumor is 7; expected 0 or 1");
  EXPECT_EQ(patches(with(kPatches, ",7,8", ",x,8")), "metadata.csv:5: x_coord is \"x\"; expected a whole number");
  EXPECT_EQ(patches(with(kPatches, "099", "../9")), "metadata.csv:5: patient is \"../9\"; expected letters and digits");
  EXPECT_EQ(patches(with(kPatches, ",3,0,0", ",3,0")), "metadata.csv:4: 8 fields, where the first line has 9");
  EXPECT_EQ(patches(""), "metadata.csv is empty; expected a line of column names");
}

// As many rows as Camelyon17 has, each with a value of its own. A search among all of them for every row took over a
// minute; the time is the processor's, so that other processes do not count. The thread sanitizer took 29 s.
TEST(Wilds, MetadataWithAnotherValueInEachRowAreReadInLinearTime) {
  constexpr int64_t kRows = 455954;
  std::string patches = "patient,node,x_coord,y_coord,tumor,center\n", places = "split,category,country_code\n",
              countries = "alpha-3,region\n";
  for (int64_t row = 0; row < kRows; ++row) {
    patches += cat("004,4,1,2,0,", kRows - row, "\n");
    places += cat("train,place", row, ",country", row, "\n");
    countries += cat("country", row, ",region", row, "\n");
  }
  const std::clock_t begin = std::clock();
  const WildsTable hospitals = parse_camelyon17(patches, "metadata.csv");
  const WildsTable regions = parse_fmow(places, "rgb_metadata.csv", countries, "countries.csv");
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, test::kThreadSanitizer ? 200 : 20);
  ASSERT_EQ(std::ssize(hospitals.environments), kRows);
  EXPECT_EQ(hospitals.environments.front(), "hospital_1");
  EXPECT_EQ(hospitals.images.front().environment, kRows - 1);
  ASSERT_EQ(std::ssize(regions.environments), kRows);
  EXPECT_EQ(regions.images.back().environment, kRows - 1);
  EXPECT_EQ(regions.classes[static_cast<size_t>(regions.images[7].label)], "place7");
}

TEST(Wilds, OtherCountsThanThePublishedAreRefused) {
  const WildsTable table = parse_camelyon17(kPatches, "metadata.csv");
  const auto check = [&](const WildsCounts& counts) { return error_text([&] { check_wilds(table, counts, "here"); }); };
  EXPECT_EQ(check({2, 3, 4}), "");
  EXPECT_EQ(check({2, 3, 0}), "");
  EXPECT_NE(check({2, 5, 4}).find("has 3 environments, where the published dataset has 5; get it from https://wilds"),
            std::string::npos);
  EXPECT_NE(check({2, 3, 9}).find("has 4 images, where the published dataset has 9"), std::string::npos);
  const testing::TemporaryFolder folder;
  EXPECT_NE(error_text([&] { fmow(folder.path()); }).find("has no rgb_metadata.csv; get the dataset from"),
            std::string::npos);
  folder.write("metadata.csv", kPatches);
  EXPECT_NE(error_text([&] { camelyon17(folder.path()); }).find("has 3 environments"), std::string::npos);
}

TEST(Wilds, G40_AreSetsOfDomainBed) {
  const testing::TemporaryFolder folder;
  folder.write("metadata.csv", kPatches);
  const auto message = [&](const char* set) {
    DomainBedOptions options;
    options.set = set, options.root = folder.path();
    return error_text([&] { domainbed_environments(options, 0); });
  };
  EXPECT_NE(message("wilds_camelyon").find("has 3 environments, where"), std::string::npos);
  EXPECT_NE(message("wilds_fmow").find("has no rgb_metadata.csv"), std::string::npos);
}

}  // namespace sparsight::wilds_test
