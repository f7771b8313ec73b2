#include "sparsight/reproduce/seed_estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sparsight/reproduce/results.h"

namespace sparsight {

std::optional<double> SeedMeans::operator()(const Json& settings, const std::string& measure) const {
  const auto column = std::find_if(table_.measures.begin(), table_.measures.end(),
                                   [&](const Measure& known) { return known.key == measure; });
  const auto row = std::find_if(table_.rows.begin(), table_.rows.end(),
                                [&](const ResultRow& known) { return same_on(table_.axes, known.settings, settings); });
  if (column == table_.measures.end() || row == table_.rows.end()) return std::nullopt;
  const Cell cell{row - table_.rows.begin(), column - table_.measures.begin()};
  std::vector<double> values;
  for (const Trial* trial : cell_trials(cell)) values.push_back(*trial->values[cell.second]);
  if (values.empty()) return std::nullopt;
  asked_.insert(cell);
  return mean(values) + (moved_ && moved_->first == cell ? moved_->second : 0);
}

std::vector<const Trial*> SeedMeans::cell_trials(const Cell& cell) const {
  std::vector<const Trial*> trials;
  for (const Trial& trial : table_.rows[cell.first].trials)
    if (trial.values[cell.second] && (!seeds_ || seeds_->contains(trial.seed))) trials.push_back(&trial);
  return trials;
}

ImageShare SeedMeans::share(const Cell& cell) const {
  ImageShare all;
  const std::vector<const Trial*> trials = cell_trials(cell);
  const auto n = static_cast<double>(trials.size());
  bool paired = true;
  for (const Trial* trial : trials) {
    const ImageShare& share = trial->shares[cell.second];
    all.percent += share.percent / n;
    all.own = share.own;
    all.images = trial == trials.front() ? share.images
                 : share.own             ? all.images + share.images
                                         : std::min(all.images, share.images);
    if (trial == trials.front()) all.outcomes.resize(share.outcomes.size());
    paired = paired && share.outcomes.size() == all.outcomes.size();
    for (size_t i = 0; paired && i < share.outcomes.size(); ++i) all.outcomes[i] += share.outcomes[i] / n;
  }
  if (!paired) all.outcomes.clear();
  return all;
}

SeedMeans SeedMeans::with_moved(const Cell& cell, double by) const {
  SeedMeans moved = *this;
  moved.moved_ = {cell, by};
  return moved;
}

std::set<int64_t> SeedMeans::shared_seeds() const {
  std::optional<std::set<int64_t>> shared;
  for (const auto& [row, m] : asked_) {
    std::set<int64_t> here;
    for (const Trial& trial : table_.rows[row].trials)
      if (trial.values[m] && (!shared || shared->contains(trial.seed))) here.insert(trial.seed);
    shared = here;
  }
  return shared.value_or(std::set<int64_t>{});
}

namespace {

// How much a statistic changes with the mean of one cell, measured between plus and minus its own error.
double estimate_slope(const Statistic& statistic, const SeedMeans& means, const SeedMeans::Cell& cell, double step) {
  const auto value = statistic(means), above = statistic(means.with_moved(cell, step)),
             below = statistic(means.with_moved(cell, -step));
  if (above && below) return (*above - *below) / (2 * step);
  if (above) return (*above - *value) / step;
  if (below) return (*value - *below) / step;
  return std::numeric_limits<double>::infinity();
}

// Standard deviations of a statistic over samples of images: of those that all seeds share, and of those of each seed.
struct ImageDeviations {
  double shared = 0, own = 0;
};

ImageDeviations deviations_over_images(const Statistic& statistic, const SeedMeans& means) {
  std::vector<WeightedShare> shared, own;
  for (const SeedMeans::Cell& cell : means.requested()) {
    const ImageShare share = means.share(cell);
    if (share.images <= 0) continue;
    const double slope = estimate_slope(statistic, means, cell, image_deviation({{1, share}}));
    if (slope != 0) (share.own ? own : shared).push_back({slope, share});
  }
  return {image_deviation(shared), image_deviation(own)};
}

// Seeds with images of their own differ by these too: of them only what the seeds' scatter does not show is left.
double beyond_scatter(const ImageDeviations& images, const std::vector<double>& parts) {
  const double scatter = standard_error(parts);
  return std::sqrt(images.shared * images.shared + std::max(0.0, images.own * images.own - scatter * scatter));
}

}  // namespace

std::optional<Interval> Estimate::interval(double confidence) const {
  if (parts.size() < 2 || !std::isfinite(deviation)) return std::nullopt;
  const PairedDifference seeds = paired_difference(parts, std::vector<double>(parts.size()), confidence);
  const double images = normal_quantile((1 + confidence) / 2) * deviation;
  const double half = std::hypot(seeds.interval.high - seeds.mean, images);
  return Interval{seeds.mean - half, seeds.mean + half};
}

Estimate estimate(const ResultTable& table, const Statistic& statistic) {
  const SeedMeans all(table);
  if (!statistic(all)) return {};
  const std::set<int64_t> seeds = all.shared_seeds();
  Estimate found;
  found.seeds = std::ssize(seeds);
  if (seeds.empty()) return found;
  const SeedMeans shared(table, seeds);
  found.value = statistic(shared);
  if (!found.value || found.seeds < 2) return found;
  const auto n = static_cast<double>(found.seeds);
  for (const int64_t seed : seeds) {
    std::set<int64_t> others = seeds;
    others.erase(seed);
    const auto without = statistic(SeedMeans(table, others));
    if (!without) return {found.seeds, found.value, {}};
    found.parts.push_back(n * *found.value - (n - 1) * *without);
  }
  found.deviation = beyond_scatter(deviations_over_images(statistic, shared), found.parts);
  return found;
}

}  // namespace sparsight
