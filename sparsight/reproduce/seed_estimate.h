// Numbers computed from the means of a table, with their interval over seeds.
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
  explicit SeedMeans(const ResultTable& table) : table_(table) {}
  SeedMeans(const ResultTable& table, std::set<int64_t> seeds) : table_(table), seeds_(std::move(seeds)) {}

  const ResultTable& table() const { return table_; }
  // Null if no row has these settings, or no seed the measure. `settings` names every axis.
  std::optional<double> operator()(const Json& settings, const std::string& measure) const;
  // The seeds that have a value in every cell requested so far.
  std::set<int64_t> shared_seeds() const;

 private:
  const ResultTable& table_;
  std::optional<std::set<int64_t>> seeds_;  // all if null
  mutable std::set<std::pair<size_t, size_t>> asked_;
};

// A number computed from means; null where one is missing.
using Statistic = std::function<std::optional<double>(const SeedMeans& mean)>;

struct Estimate {
  int64_t seeds = 0;  // that all cells share which the statistic asks for; others are left out
  std::optional<double> value;
  std::vector<double> parts;  // one per seed, their mean is near `value`: the pseudo-values of the jackknife

  // Student's t interval of the mean of `parts`; null with fewer than two.
  std::optional<Interval> interval(double confidence = 0.95) const;
};

// Leaves out one seed after the other (the jackknife; Tukey 1958). For a difference of means this is the paired
// difference over seeds.
Estimate estimate(const ResultTable& table, const Statistic& statistic);

}  // namespace sparsight
