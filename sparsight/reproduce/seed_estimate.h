// Numbers computed from the means of a table, with their interval over seeds and test images.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sparsight/eval/statistics.h"
#include "sparsight/reproduce/figure.h"

namespace sparsight {

// The means of a table over some of its seeds. Remembers which cells were requested.
class SeedMeans {
 public:
  using Cell = std::pair<size_t, size_t>;  // row and measure

  explicit SeedMeans(const ResultTable& table) : table_(table) {}
  SeedMeans(const ResultTable& table, std::set<int64_t> seeds) : table_(table), seeds_(std::move(seeds)) {}

  const ResultTable& table() const { return table_; }
  // Null if no row has these settings, or no seed the measure. `settings` names every axis.
  std::optional<double> operator()(const Json& settings, const std::string& measure) const;
  // The seeds that have a value in every cell requested so far.
  std::set<int64_t> shared_seeds() const;
  // The cells requested so far, and the images behind one of them, in all its seeds together.
  const std::set<Cell>& requested() const { return asked_; }
  ImageShare share(const Cell& cell) const;
  // The same means, but that of one cell, which is larger by `by`.
  SeedMeans with_moved(const Cell& cell, double by) const;

 private:
  std::vector<const Trial*> cell_trials(const Cell& cell) const;

  const ResultTable& table_;
  std::optional<std::set<int64_t>> seeds_;  // all if null
  std::optional<std::pair<Cell, double>> moved_ = {};
  mutable std::set<Cell> asked_ = {};
};

// A number computed from means; null where one is missing.
using Statistic = std::function<std::optional<double>(const SeedMeans& mean)>;

struct Estimate {
  int64_t seeds = 0;  // that all cells share which the statistic asks for; others are left out
  std::optional<double> value;
  std::vector<double> parts;  // one per seed, their mean is near `value`: the pseudo-values of the jackknife
  // Standard deviation over samples of test images, by image_error.h; of images that each seed has of its own, only
  // what is beyond the scatter of `parts`, which they make too.
  double deviation = 0;

  // Its half width is the square root of the sum of two squares: the half width of Student's t interval of the mean of
  // `parts`, and that of a normal one with `deviation`. So it holds its confidence whether seeds or images, or both,
  // make the difference: the tail of a squared normal variable is convex, and an interval that is exact for either
  // alone is therefore no worse for a mixture. Null with fewer than two parts, and if the statistic is undefined near
  // its value.
  std::optional<Interval> interval(double confidence = 0.95) const;
};

// Leaves out one seed after the other (the jackknife; Tukey 1958). For a difference of means this is the paired
// difference over seeds.
Estimate estimate(const ResultTable& table, const Statistic& statistic);

}  // namespace sparsight
