#include "sparsight/reproduce/seed_estimate.h"

#include <algorithm>

#include "sparsight/reproduce/results.h"

namespace sparsight {

std::optional<double> SeedMeans::operator()(const Json& settings, const std::string& measure) const {
  const auto column = std::find_if(table_.measures.begin(), table_.measures.end(),
                                   [&](const Measure& known) { return known.key == measure; });
  const auto row = std::find_if(table_.rows.begin(), table_.rows.end(),
                                [&](const ResultRow& known) { return same_on(table_.axes, known.settings, settings); });
  if (column == table_.measures.end() || row == table_.rows.end()) return std::nullopt;
  const auto m = static_cast<size_t>(column - table_.measures.begin());
  std::vector<double> values;
  for (const Trial& trial : row->trials)
    if (trial.values[m] && (!seeds_ || seeds_->contains(trial.seed))) values.push_back(*trial.values[m]);
  if (values.empty()) return std::nullopt;
  asked_.insert({static_cast<size_t>(row - table_.rows.begin()), m});
  return mean(values);
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

std::optional<Interval> Estimate::interval(double confidence) const {
  if (parts.size() < 2) return std::nullopt;
  return paired_difference(parts, std::vector<double>(parts.size()), confidence).interval;
}

Estimate estimate(const ResultTable& table, const Statistic& statistic) {
  const SeedMeans all(table);
  if (!statistic(all)) return {};
  const std::set<int64_t> seeds = all.shared_seeds();
  Estimate found;
  found.seeds = std::ssize(seeds);
  if (seeds.empty()) return found;
  found.value = statistic(SeedMeans(table, seeds));
  if (!found.value || found.seeds < 2) return found;
  const auto n = static_cast<double>(found.seeds);
  for (const int64_t seed : seeds) {
    std::set<int64_t> others = seeds;
    others.erase(seed);
    const auto without = statistic(SeedMeans(table, others));
    if (!without) return {found.seeds, found.value, {}};
    found.parts.push_back(n * *found.value - (n - 1) * *without);
  }
  return found;
}

}  // namespace sparsight
