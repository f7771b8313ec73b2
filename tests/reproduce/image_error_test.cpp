// Errors over test images, and how often claims about equal models are decided.
#include "sparsight/reproduce/image_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sparsight/core/error.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/results.h"

namespace sparsight::image_error_test {
namespace {

// Agresti and Caffo 2000: a success and a failure added. 9 of 10: p = 10 / 12, 100 sqrt(10 / 12 * 2 / 12 / 12).
TEST(ImageDeviation, OfOneShareIsThatOfABinomial) {
  const ImageShare share{90, 10};
  EXPECT_NEAR(image_deviation({{1, share}}), 100 * std::sqrt(20.0 / 1728), 1e-12);
  EXPECT_NEAR(image_deviation({{-2, share}}), 200 * std::sqrt(20.0 / 1728), 1e-12);
  EXPECT_GT(image_deviation({{1, {100, 10}}}), 7);
}

TEST(ImageDeviation, SharesOfEqualSignErrTogetherAndADifferenceApart) {
  const ImageShare share{90, 10};
  const double one = image_deviation({{1, share}});
  EXPECT_NEAR(image_deviation({{0.5, share}, {0.5, share}}), one, 1e-12);
  EXPECT_NEAR(image_deviation(share, share), std::sqrt(2.0) * one, 1e-12);
}

// Agresti and Min 2005: half an image added to each of the four outcomes. Of 10 images two are right by the first model
// only: b = 2.5, c = 0.5 of 12, variance (b + c - (b - c)^2 / 12) / 12^2; with the mean over the 10 images, 0.2,
// instead of that over 12 as the centre, 10 images give 1.6 and the added two 1.
TEST(ImageDeviation, OfPairedImagesCountsThoseThatDiffer) {
  const ImageShare a{50, 10, false, to_outcomes("1111100000")}, b{30, 10, false, to_outcomes("1110000000")};
  EXPECT_NEAR(image_deviation(a, b), 100 * std::sqrt(1.6 + 1) / 12, 1e-12);
  ImageShare unknown = b;
  unknown.outcomes.clear();
  EXPECT_GT(image_deviation(a, unknown), 1.4 * image_deviation(a, b));
}

Figure two_models() {
  Figure figure;
  figure.axes = {"model", "samples"};
  figure.measures = {{"accuracy", "test accuracy (%)", 1, {"images"}}};
  return figure;
}

// The rows of two models, with accuracies of seeds 0, 1, ... over 200 images.
ResultTable error_table(const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::vector<Json> jobs, results;
  for (const auto& [name, all] : {std::pair("ours", ours), std::pair("theirs", theirs)})
    for (size_t seed = 0; seed < all.size(); ++seed) {
      jobs.push_back({{"model", name}, {"samples", 1}, {"seed", seed}});
      results.push_back({{"accuracy", all[seed]}, {"images", 200}});
    }
  return make_table(two_models(), jobs, results, true);
}

Claim not_below(const ResultTable& table) {
  return above_everywhere(table, "t", {.ours = "ours", .theirs = "theirs"}, /*ties_count=*/true);
}

// One image in 200 that makes the difference in every seed decides nothing; 20 do.
TEST(Claims, OneImageDecidesNothing) {
  EXPECT_EQ(not_below(error_table({99.5, 99.5, 99.5}, {100, 100, 100})).holds, std::nullopt);
  EXPECT_EQ(not_below(error_table({90, 90, 90}, {100, 100, 100})).holds, false);
  const Claim above = not_below(error_table({100, 100, 100}, {90, 90, 90}));
  EXPECT_EQ(above.holds, true);
  EXPECT_EQ(above.test, "over shared seeds and test images, 95 % interval not below 0");
}

// At 0 or 100 % both models are equal, which shows nothing about them, but another point may.
TEST(Claims, TiesInEverySeedShowNothingAlone) {
  EXPECT_EQ(not_below(error_table({100, 100}, {100, 100})).holds, std::nullopt);
  std::vector<Json> jobs, results;
  for (const int samples : {1, 2})
    for (const char* name : {"ours", "theirs"})
      for (const int seed : {0, 1}) {
        jobs.push_back({{"model", name}, {"samples", samples}, {"seed", seed}});
        results.push_back({{"accuracy", samples == 1 || name == std::string("ours") ? 100 : 50}, {"images", 200}});
      }
  EXPECT_EQ(not_below(make_table(two_models(), jobs, results, true)).holds, true);
}

// The images of `own` measures are other ones in each seed, so that two seeds have twice as many; a shared seed undoes
// that.
TEST(Estimate, KnowsWhichImagesSeedsShare) {
  const auto deviation = [](bool own, const Json& more) {
    Figure figure = two_models();
    figure.measures[0].images.own = own;
    std::vector<Json> jobs;
    for (const int seed : {0, 1}) {
      jobs.push_back({{"model", "ours"}, {"samples", 1}, {"seed", seed}, {"images", 100}});
      jobs.back().update(more);
    }
    const ResultTable table = make_table(figure, jobs, {{{"accuracy", 50}}, {{"accuracy", 50}}}, true);
    return estimate(table, above({{"model", "ours"}, {"samples", 1}}, "accuracy", 0)).deviation;
  };
  EXPECT_NEAR(deviation(false, Json::object()), 50 / std::sqrt(102.0), 1e-9);
  EXPECT_NEAR(deviation(true, Json::object()), 50 / std::sqrt(202.0), 1e-9);
  EXPECT_NEAR(deviation(true, {{"shared_seed", 3}}), 50 / std::sqrt(102.0), 1e-9);
}

// How often the claim about two models of the same expected accuracy is decided, although nothing is there to decide.
struct Equals {
  double accuracy = 0.9;
  int64_t seeds = 2;
  double between_seeds = 0;  // standard deviation of the true accuracies
  bool repeats = true;       // every seed errs on the same images where its accuracy is the same
  bool paired = false;       // outcomes of single images are known
  bool own = false;          // declared as images of each seed's own
};

constexpr int kTables = 400;

// The number of tables, of kTables, with a verdict.
int decided(const Equals& equals, std::mt19937_64& random) {
  constexpr int kImages = 200;
  std::uniform_real_distribution<double> uniform;
  std::normal_distribution<double> normal;
  int verdicts = 0;
  for (int number = 0; number < kTables; ++number) {
    ResultTable table = error_table({}, {});
    for (const char* name : {"ours", "theirs"}) {
      ResultRow row;
      row.settings = {{"model", name}, {"samples", 1}};
      std::vector<double> hardness(kImages);
      for (double& image : hardness) image = uniform(random);
      for (int64_t seed = 0; seed < equals.seeds; ++seed) {
        const double accuracy = std::clamp(equals.accuracy + equals.between_seeds * normal(random), 0.0, 1.0);
        ImageShare share{0, kImages, equals.own, {}};
        for (const double image : hardness)
          share.outcomes.push_back((equals.repeats ? image : uniform(random)) < accuracy ? 1 : 0);
        for (const double outcome : share.outcomes) share.percent += 100 * outcome / kImages;
        if (!equals.paired) share.outcomes.clear();
        row.trials.push_back({seed, {share.percent}, {share}});
      }
      table.rows.push_back(row);
    }
    verdicts += above_everywhere(table, "t", {.ours = "ours", .theirs = "theirs"}).holds.has_value();
  }
  return verdicts;
}

// Together over accuracies, with and without scatter between seeds: 1,200 tables for each way and number of seeds.
TEST(Claims, OfEqualModelsAreDecidedInAtMostSixPercent) {
  std::mt19937_64 random(0);
  const std::vector<Equals> kinds = {{.repeats = true, .paired = true},
                                     {.repeats = true},
                                     {.repeats = false, .paired = true},
                                     {.repeats = false},
                                     {.repeats = false, .own = true}};
  for (const int64_t seeds : {2, 3, 5, 8})
    for (const Equals& kind : kinds) {
      int verdicts = 0;
      for (const auto& [accuracy, between] : {std::pair(0.9, 0.0), {0.995, 0.0}, {0.9, 0.03}}) {
        Equals equals = kind;
        equals.accuracy = accuracy, equals.seeds = seeds, equals.between_seeds = between;
        verdicts += decided(equals, random);
      }
      EXPECT_LE(verdicts / (3.0 * kTables), 0.06)
          << cat(seeds, " seeds, repeats ", kind.repeats, ", paired ", kind.paired, ", own ", kind.own);
    }
}

}  // namespace
}  // namespace sparsight::image_error_test
