#include "bench/moe/many_experts.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <nlohmann/json.hpp>

#include "bench/measure/interference.h"
#include "bench/measure/own_process.h"
#include "bench/measure/ratio_interval.h"
#include "bench/measure/results_file.h"
#include "bench/measure/rounds.h"
#include "bench/measure/table.h"
#include "bench/moe/contenders.h"
#include "bench/moe/large_layer.h"
#include "sparsight/moe/routing_stats.h"
#include "sparsight/ops/packed_experts.h"

namespace sparsight::bench {
namespace {

constexpr int kBatches = 2;  // different batches of tokens in turn
constexpr double kMiB = 1 << 20;

using Times = std::vector<double>;
using TimesByName = std::map<std::string, Times>;

// The works of one size that run here. What a contender cannot do is said once and left out.
class Works {
 public:
  void add(const std::string& name, const Work& work) {
    try {
      work(0);
    } catch (const std::exception& error) {
      const std::string text = error.what();
      std::printf("%s does not run at this size: %s\n", name.c_str(), text.substr(0, text.find('\n')).c_str());
      return;
    }
    names_.push_back(name);
    works_.push_back({work});
  }
  TimesByName run(int64_t rounds) const {
    TimesByName times;
    const RoundTimes measured = time_rounds(works_, rounds, kBatches);
    for (size_t i = 0; i < names_.size(); ++i) times[names_[i]] = measured[i];
    return times;
  }

 private:
  std::vector<std::string> names_;
  std::vector<Timed> works_;
};

Work without_gradients(const Work& work) {
  return [work](int load) {
    const c10::AutoGradMode no_grad(false);
    work(load);
  };
}

const std::vector<std::pair<const char*, Forward>>& ways() {
  static const std::vector<std::pair<const char*, Forward>> all = {
      {"ours", run_ours}, {"dense", run_dense}, {"loop", run_loop}, {"grouped_mm", run_grouped_mm}};
  return all;
}

bool is_contender(const std::string& name) { return name == "loop" || name == "grouped_mm" || name == "oneDNN"; }

// Everything of one number of experts, in turn.
TimesByName measure(const ManyExperts& sizes, int64_t experts, double& weight_bytes) {
  const std::vector<Load> loads = random_loads(sizes.tokens, experts, sizes.k);
  const auto of = [&](int load) -> const Load& { return loads[static_cast<size_t>(load)]; };
  LargeLayer layer(experts, sizes.k, sizes.hidden);
  weight_bytes = layer.weight_bytes();
  const ExpertMlpWeights weights = random_weights(experts, sizes.hidden);
  for (const at::Tensor* w : {&weights.w1, &weights.b1, &weights.w2, &weights.b2}) w->requires_grad_(true);
  const PackedExperts packed = pack_expert_weights(weights, WeightType::fp32);
  OnednnExperts onednn;
  if (sizes.contenders) onednn = onednn_experts(weights, std::max<int64_t>(1, sizes.tokens * sizes.k / experts));
  const Routing routing = layer.forward(of(0).tokens);
  Works works;
  works.add("layer", [&](int load) { layer.forward(of(load).tokens); });
  works.add("statistics", without_gradients([&](int) { routing_stats(routing); }));
  works.add("packed", without_gradients([&](int load) { run_packed(of(load), packed); }));
  if (sizes.contenders) works.add("oneDNN", without_gradients([&](int load) { run_onednn(of(load), onednn); }));
  if (sizes.training) works.add("train layer", [&](int load) { layer.train_step(of(load).tokens, of(load).out_grad); });
  for (const auto& [name, forward] : ways()) {
    if (is_contender(name) && !sizes.contenders) continue;
    works.add(name, without_gradients([&, run = forward](int load) { run(of(load), weights); }));
    if (sizes.training)
      works.add(std::string("train ") + name, [&, run = forward](int load) { train_step(run, of(load), weights); });
  }
  return works.run(sizes.rounds);
}

std::string time_text(const TimesByName& times, const std::string& name) {
  return times.contains(name) ? milliseconds(median(times.at(name))) : "-";
}

// The ratio of `ours` to another.
std::string time_ratio(const TimesByName& times, const std::string& ours, const std::string& other) {
  return times.contains(other) ? text(ratio_interval(times.at(ours), times.at(other))) : "-";
}

std::vector<std::string> make_cells(const ManyExperts& sizes, int64_t experts, const TimesByName& times,
                                    const std::string& prefix) {
  const double seconds = median(times.at(prefix + "layer"));
  std::vector<std::string> cells{std::to_string(experts), time_text(times, prefix + "layer"),
                                 whole(static_cast<double>(sizes.tokens) / seconds), time_text(times, prefix + "ours")};
  for (const char* other : {"dense", "loop", "grouped_mm"}) {
    if (is_contender(other) && !sizes.contenders) continue;
    cells.push_back(time_text(times, prefix + other));
    cells.push_back(time_ratio(times, prefix + "ours", prefix + other));
  }
  return cells;
}

std::vector<std::string> column_names(const ManyExperts& sizes) {
  std::vector<std::string> columns{"E", "layer", "tokens/s", "ours", "dense", "ours / dense"};
  if (sizes.contenders) columns.insert(columns.end(), {"loop", "ours / loop", "grouped_mm", "ours / grouped_mm"});
  return columns;
}

Json result_row(int64_t experts, const TimesByName& times, double weight_bytes, double peak_bytes) {
  Json row{{"experts", experts}, {"weight_bytes", weight_bytes}, {"training_peak_bytes", peak_bytes}};
  for (const auto& [name, seconds] : times) {
    const MedianInterval found = median_interval(seconds);
    row["seconds"][name] = {{"median", found.median}, {"low", found.low}, {"high", found.high}};
  }
  return row;
}

}  // namespace

std::vector<double> memory_of_many_experts(const ManyExperts& sizes, int64_t threads) {
  std::vector<double> all;
  if (!sizes.training) return all;
  for (const int64_t experts : sizes.experts)
    all.push_back(values_in_own_process(1, [&] {
      at::set_num_threads(static_cast<int>(threads));
      const at::Tensor tokens = at::randn({sizes.tokens, kWidth}), grad = at::randn({sizes.tokens, kWidth});
      LargeLayer small(8, std::min<int64_t>(sizes.k, 8), sizes.hidden), layer(experts, sizes.k, sizes.hidden);
      small.train_step(tokens.narrow(0, 0, 1), grad.narrow(0, 0, 1));  // what libraries allocate once
      const double peak = peak_growth([&] { layer.train_step(tokens, grad); });
      return std::vector<double>{peak - layer.weight_bytes()};
    })[0]);
  return all;
}

void print_many_experts(const ManyExperts& sizes, const std::vector<double>& memory, const std::string& machine) {
  std::printf(
      "\nThousands of experts, T=%ld, k=%ld, D=%ld, F=%ld. layer: router, top-k, sort, experts and combination, in\n"
      "training with losses and backward; ours, dense, loop, grouped_mm: the experts alone. Times in ms.\n",
      sizes.tokens, sizes.k, kWidth, sizes.hidden);
  InterferenceWatch watch;
  Json rows = Json::array();
  std::vector<std::vector<std::string>> training;
  std::vector<std::string> columns = column_names(sizes), forward_columns = columns;
  forward_columns.insert(forward_columns.end(), {"packed", "statistics"});
  if (sizes.contenders) forward_columns.insert(forward_columns.end(), {"oneDNN", "packed / oneDNN"});
  print_header(forward_columns);
  for (size_t i = 0; i < sizes.experts.size(); ++i) {
    const int64_t experts = sizes.experts[i];
    double weights = 0;
    const TimesByName times = measure(sizes, experts, weights);
    std::vector<std::string> cells = make_cells(sizes, experts, times, "");
    for (const char* name : {"packed", "statistics"}) cells.push_back(time_text(times, name));
    if (sizes.contenders) {
      cells.push_back(time_text(times, "oneDNN"));
      cells.push_back(time_ratio(times, "packed", "oneDNN"));
    }
    print_row(cells);
    const double peak = i < memory.size() ? memory[i] : 0;
    rows.push_back(result_row(experts, times, weights, peak));
    if (!sizes.training) continue;
    training.push_back(make_cells(sizes, experts, times, "train "));
    training.back().push_back(whole(weights / kMiB));
    training.back().push_back(whole(peak / kMiB));
  }
  if (sizes.training) {
    std::printf(
        "\nTraining; MiB of the weights, and of the peak of a step of the layer without weights and gradients\n");
    columns.insert(columns.end(), {"weights", "peak"});
    print_header(columns);
    for (const auto& row : training) print_row(row);
  }
  watch.print();
  if (sizes.json.empty()) return;
  write_results(sizes.json, {.benchmark = "moe: thousands of experts",
                             .machine = machine,
                             .settings = {{"tokens", sizes.tokens},
                                          {"k", sizes.k},
                                          {"width", kWidth},
                                          {"hidden", sizes.hidden},
                                          {"rounds", sizes.rounds},
                                          {"threads", at::get_num_threads()}},
                             .rows = rows});
}

}  // namespace sparsight::bench
