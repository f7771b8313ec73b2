#include "sparsight/cost/ranks_cost.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

constexpr double kNumberBytes = 4, kCountBytes = 8;
constexpr int64_t kMaxRanks = 1'000'000;
constexpr size_t kMaxListed = 1000;

int64_t parse_rank_count(std::string_view text, const std::string& whole) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > kMaxRanks)
    fail_usage("--ranks is \"", printable(whole), "\"; give numbers from 1 to ", kMaxRanks,
               " separated by commas, or a range such as 1..1000");
  return value;
}

bool divides_experts(const RankWork& work, int64_t expert_ranks) {
  return !work.layers.empty() && std::ranges::all_of(work.layers, [&](const ExpertExchange& layer) {
    return layer.experts % expert_ranks == 0;
  });
}

}  // namespace

const std::vector<Network>& networks() {
  static const std::vector<Network> all{
      {"10gbe", "10 Gbit Ethernet, TCP", 30e-6, 1.25e9},
      {"100gbe", "100 Gbit Ethernet, RDMA", 5e-6, 12.5e9},
      {"nvlink", "NVLink 4, 450 GB/s in each direction", 3e-6, 450e9},
  };
  return all;
}

const Network& find_network(const std::string& name) {
  std::vector<std::string> names;
  for (const Network& network : networks()) names.push_back(network.name);
  return networks()[find_position(name, names, "network")];
}

double all_to_all_seconds(double bytes, int64_t ranks, const Network& network) {
  const auto others = static_cast<double>(ranks - 1);
  return others * network.alpha + others / static_cast<double>(ranks) * bytes / network.beta;
}

double ordered_sum_seconds(double bytes, int64_t ranks, int64_t minibatches, const Network& network) {
  return static_cast<double>(minibatches + 1) * all_to_all_seconds(bytes, ranks, network);
}

double expert_exchange_seconds(const RankWork& work, int64_t expert_ranks, const Network& network) {
  double seconds = 0;
  for (const ExpertExchange& layer : work.layers) {
    const double rows = layer.rows * static_cast<double>(work.images);
    const auto travel = [&](double bytes) { return all_to_all_seconds(bytes, expert_ranks, network); };
    seconds += travel(kCountBytes * static_cast<double>(layer.experts)) +
               2 * travel(kNumberBytes * rows * static_cast<double>(layer.width)) +
               2 * travel(kNumberBytes * rows * static_cast<double>(layer.outputs));
  }
  return seconds;
}

RanksStep ranks_step(const RankWork& work, int64_t ranks, int64_t expert_ranks, const Network& network) {
  RanksStep step{ranks, expert_ranks};
  step.compute = work.compute_seconds;
  int64_t experts = 0;  // parameters of a rank
  for (const ExpertExchange& layer : work.layers) experts += layer.parameters / expert_ranks;
  const auto sum = [&](int64_t parameters, int64_t over) {
    return over == 1
               ? 0
               : ordered_sum_seconds(kNumberBytes * static_cast<double>(parameters), over, work.minibatches, network);
  };
  step.parameters = work.other_parameters + experts;
  if (expert_ranks == 1) {
    step.sums = sum(step.parameters, ranks);
    return step;
  }
  step.sums = sum(work.other_parameters, ranks) + sum(experts, ranks / expert_ranks);
  step.exchanges = static_cast<double>(work.minibatches) * expert_exchange_seconds(work, expert_ranks, network);
  return step;
}

std::string RanksChoice::best() const {
  if (data.ranks == 1) return "none";
  const RanksStep* fastest = &data;
  std::string name = "data";
  const auto try_step = [&](const std::optional<RanksStep>& step, const char* of) {
    if (!step || step->seconds() >= fastest->seconds()) return;
    fastest = &*step, name = of;
  };
  try_step(experts, "expert");
  try_step(both, "both");
  return name;
}

RanksChoice ranks_choice(const RankWork& work, int64_t ranks, const Network& network) {
  RanksChoice choice{ranks_step(work, ranks, 1, network)};
  for (int64_t n = 2; n <= ranks; ++n) {
    if (ranks % n != 0 || !divides_experts(work, n)) continue;
    const RanksStep step = ranks_step(work, ranks, n, network);
    std::optional<RanksStep>& place = n == ranks ? choice.experts : choice.both;
    if (!place || step.seconds() < place->seconds()) place = step;
  }
  return choice;
}

std::vector<int64_t> parse_ranks(const std::string& text) {
  std::vector<int64_t> ranks;
  if (const size_t dots = text.find(".."); dots != std::string::npos) {
    const int64_t begin = parse_rank_count(std::string_view(text).substr(0, dots), text),
                  end = parse_rank_count(std::string_view(text).substr(dots + 2), text);
    if (begin > end)
      fail_usage("--ranks is \"", printable(text), "\", a range that ends before it begins; write ", end, "..", begin);
    for (int64_t r = begin; r < end; r *= 2) ranks.push_back(r);
    ranks.push_back(end);
    return ranks;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    ranks.push_back(parse_rank_count(std::string_view(text).substr(begin, comma - begin), text));
    if (ranks.size() > kMaxListed) fail_usage("--ranks lists more than ", kMaxListed, " numbers; give a range");
    begin = comma + 1;
  }
  return ranks;
}

}  // namespace sparsight
