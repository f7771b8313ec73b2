#include "sparsight/train/named_means.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sparsight::named_means_test {
namespace {

TEST(NamedMeans, DivideSumsByCounts) {
  NamedMeans means, more;
  means.add("loss", 2.0, 1);
  means.add("accuracy", 10, 32);
  more.add("loss", 1.0, 1);
  more.add("losses/load", 0.5, 2);
  more.add("accuracy", 8, 16);
  means.add(more);
  Json line{{"kind", "train"}};
  means.write_to(line);  // 3 / 2, 18 / 48, 0.5 / 2
  EXPECT_EQ(line.dump(), R"({"kind":"train","loss":1.5,"accuracy":0.375,"losses":{"load":0.25}})");
  EXPECT_EQ(means.headline(), "loss 1.500");
  EXPECT_TRUE(NamedMeans().empty());
  EXPECT_EQ(NamedMeans().headline(), "");
}

TEST(NamedMeans, ComeBackFromJsonWithAllDigitsAndNaN) {
  NamedMeans means;
  means.add("a", 0.1 + 0.2, 3);
  means.add("b", std::numeric_limits<double>::quiet_NaN(), 1);
  const Json json = Json::parse(means.to_json().dump());
  const NamedMeans back = NamedMeans::from_json(json);
  EXPECT_EQ(back.to_json()["a"], means.to_json()["a"]);
  EXPECT_TRUE(std::isnan(back.to_json()["b"][0].get<double>()));
}

}  // namespace
}  // namespace sparsight::named_means_test
