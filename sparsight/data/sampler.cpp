#include "sparsight/data/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/core/shuffle.h"

namespace sparsight {
namespace {

std::vector<int64_t> all_indices(const DataSet& data) {
  std::vector<int64_t> indices(data.size());
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

// Takes images from the groups in turn, with the groups in a new random order each round.
std::vector<int64_t> balanced(std::vector<std::vector<int64_t>> groups, int64_t samples, RandomStream& random) {
  std::erase_if(groups, [](const std::vector<int64_t>& group) { return group.empty(); });
  for (std::vector<int64_t>& group : groups) shuffle(group, random);
  std::vector<int64_t> turn(groups.size()), next(groups.size(), 0), order;
  std::iota(turn.begin(), turn.end(), 0);
  while (static_cast<int64_t>(order.size()) < samples) {
    shuffle(turn, random);
    for (const int64_t g : turn) {
      if (static_cast<int64_t>(order.size()) == samples) break;
      if (next[g] == static_cast<int64_t>(groups[g].size())) {
        shuffle(groups[g], random);
        next[g] = 0;
      }
      order.push_back(groups[g][next[g]++]);
    }
  }
  return order;
}

template <class FindKey>
std::vector<std::vector<int64_t>> grouped(const DataSet& data, size_t groups, FindKey find_key) {
  std::vector<std::vector<int64_t>> lists(groups);
  for (int64_t i = 0; i < data.size(); ++i) lists.at(find_key(i)).push_back(i);
  return lists;
}

std::vector<int64_t> weighted(const DataSet& data, const std::vector<double>& class_weights, int64_t samples,
                              RandomStream& random) {
  if (class_weights.size() != data.info().classes.size())
    fail_usage("loader.class_weights must hold one weight per class, got ", class_weights.size(), " for ",
               data.info().classes.size(), " classes");
  std::vector<double> cumulative;
  double sum = 0;
  for (int64_t i = 0; i < data.size(); ++i) cumulative.push_back(sum += class_weights[data.label(i)]);
  if (!(sum > 0)) fail_usage("loader.class_weights must not be 0 for every class of the dataset");
  std::vector<int64_t> order(static_cast<size_t>(samples));
  for (int64_t& index : order) {
    const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), random.uniform() * sum);
    index = std::min<int64_t>(found - cumulative.begin(), data.size() - 1);
  }
  return order;
}

// Images that follow one another in one shard: `count` from `first` on.
struct ShardRun {
  int64_t first = 0, count = 0;
};

std::vector<ShardRun> shard_runs(const DataSet& data) {
  std::vector<ShardRun> runs;
  int64_t before = -1;
  for (int64_t i = 0; i < data.size(); ++i) {
    const int64_t shard = data.shard(i);
    if (shard < 0)
      fail_usage("loader.sampling = \"shards\" needs data in shards, which ", data.info().name,
                 " is not; use \"shuffle\"");
    if (shard != before) runs.push_back({i, 0});
    ++runs.back().count;
    before = shard;
  }
  return runs;
}

// Sorts by i + random number below `buffer`; what is `buffer` or more places further on stays behind. Of two images at
// one place the later one is first: otherwise a buffer of 2 would move none.
std::vector<int64_t> shard_by_shard(const DataSet& data, int64_t buffer, RandomStream& random) {
  std::vector<ShardRun> runs = shard_runs(data);
  shuffle(runs, random);
  std::vector<int64_t> stream;
  stream.reserve(static_cast<size_t>(data.size()));
  for (const ShardRun& run : runs)
    for (int64_t i = 0; i < run.count; ++i) stream.push_back(run.first + i);
  std::vector<std::pair<int64_t, int64_t>> placed;  // place, -i
  placed.reserve(stream.size());
  for (int64_t i = 0; i < std::ssize(stream); ++i) placed.emplace_back(i + random.below(buffer), -i);
  std::ranges::sort(placed);
  std::vector<int64_t> order;
  order.reserve(stream.size());
  for (const auto& [place, negative] : placed) order.push_back(stream[static_cast<size_t>(-negative)]);
  return order;
}

}  // namespace

const std::vector<std::string>& sampling_names() {
  static const std::vector<std::string> names{"shuffle",     "sequential", "class_balanced", "domain_balanced",
                                              "replacement", "weighted",   "shards"};
  return names;
}

int64_t epoch_samples(const std::string& sampling, const DataSet& data, int64_t fewest) {
  const bool repeats = sampling == "class_balanced" || sampling == "domain_balanced" || sampling == "weighted";
  return repeats && data.size() > 0 ? std::max(data.size(), fewest) : data.size();
}

std::vector<int64_t> epoch_order(const std::string& sampling, const DataSet& data,
                                 const std::vector<double>& class_weights, uint64_t seed, int64_t epoch, int64_t fewest,
                                 int64_t shuffle_buffer) {
  const int64_t samples = epoch_samples(sampling, data, fewest);
  RandomStream random(seed, "sampler", static_cast<uint64_t>(epoch));
  if (sampling == "sequential") return all_indices(data);
  if (sampling == "class_balanced" || sampling == "weighted")
    need_single_labels(data.info(), cat("loader.sampling = \"", sampling, "\""));
  if (sampling == "class_balanced")
    return balanced(grouped(data, data.info().classes.size(), [&](int64_t i) { return data.label(i); }), samples,
                    random);
  if (sampling == "domain_balanced")
    return balanced(grouped(data, data.info().domains.size(), [&](int64_t i) { return data.domain(i); }), samples,
                    random);
  if (sampling == "replacement") {
    std::vector<int64_t> order(static_cast<size_t>(data.size()));
    for (int64_t& index : order) index = random.below(data.size());
    return order;
  }
  if (sampling == "weighted") return weighted(data, class_weights, samples, random);
  if (sampling == "shards") return shard_by_shard(data, shuffle_buffer, random);
  SPARSIGHT_CHECK(sampling == "shuffle");
  std::vector<int64_t> order = all_indices(data);
  shuffle(order, random);
  return order;
}

std::vector<int64_t> repeated(const std::vector<int64_t>& order, int64_t views) {
  std::vector<int64_t> result(order.size());
  for (size_t i = 0; i < result.size(); ++i) result[i] = order[i / static_cast<size_t>(views)];
  return result;
}

}  // namespace sparsight
