#include "bench/moe/experts_table.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <c10/core/GradMode.h>

#include "bench/measure/interference.h"
#include "bench/measure/ratio_interval.h"
#include "bench/measure/rounds.h"
#include "bench/measure/table.h"
#include "bench/moe/contenders.h"
#include "bench/moe/limits.h"
#include "sparsight/ops/packed_experts.h"

namespace sparsight::bench {
namespace {

struct Size {
  int64_t tokens, experts, k;
};

using Times = std::vector<double>;  // one per round

// The experts in every form that is timed.
struct Weights {
  explicit Weights(int64_t experts)
      : plain(random_weights(experts)), packed(pack_expert_weights(plain, WeightType::fp32)) {
    for (const at::Tensor* w : {&plain.w1, &plain.b1, &plain.w2, &plain.b2}) w->requires_grad_(true);
  }
  ExpertMlpWeights plain;
  PackedExperts packed;
};

// The times of one size, by what was timed.
struct Measured {
  std::map<std::string, Times> times;
  Times limit;  // of the forward pass
  bool bound_by_arithmetic = false;
  double peak = 0;      // operations per second
  double reading = 0;   // bytes per second
  std::string product;  // the fastest of Products
  const Times& at(const std::string& name) const { return times.at(name); }
};

class Measurement {
 public:
  Measurement(const ExpertsTable& table, Size size, const Weights& weights, const Peaks& peaks)
      : table_(table),
        size_(size),
        weights_(weights),
        peaks_(peaks),
        loads_(random_loads(size.tokens, size.experts, size.k)),
        products_(loads_, weights.plain) {}

  Measured run() {
    add_limits();
    add("packed", [&](int load) { run_packed(of(load), weights_.packed); });
    add_way("ours", run_ours);
    add_way("dense", run_dense);
    if (table_.contenders) {
      add_way("loop", run_loop);
      add_way("grouped_mm", run_grouped_mm);
      const int64_t rows = std::max<int64_t>(1, size_.tokens * size_.k / size_.experts);
      add("oneDNN", [&, experts = onednn_experts(weights_.plain, rows)](int load) { run_onednn(of(load), experts); });
    }
    Measured measured;
    const RoundTimes times = time_rounds(works_, table_.rounds);
    for (size_t i = 0; i < names_.size(); ++i) measured.times[names_[i]] = times[i];
    set_limits(measured);
    return measured;
  }

 private:
  const Load& of(int load) const { return loads_[static_cast<size_t>(load)]; }

  void add(const std::string& name, const Work& work) {
    names_.push_back(name);
    works_.push_back({[work](int load) {
      const c10::AutoGradMode no_grad(false);
      work(load);
    }});
  }
  void add_peak(const std::string& name, const Peak& peak) {
    names_.push_back(name);
    works_.push_back({[&peak](int) { peak.run(); }, [&peak] { return peak.seconds(); }});
  }
  // Forward as `name`, and the training step as "train " + name.
  void add_way(const std::string& name, const Forward& forward) {
    add(name, [&, forward](int load) { forward(of(load), weights_.plain); });
    if (!table_.training) return;
    names_.push_back("train " + name);
    works_.push_back({[&, forward](int load) { train_step(forward, of(load), weights_.plain); }});
  }

  void add_limits() {
    add_peak("peak fp32", peaks_.fp32);
    if (peaks_.bf16.operations() > 0) add_peak("peak bf16", peaks_.bf16);
    add("reading", [&](int load) { read_touched(stored(weights_.plain), of(load).rows.offsets); });
    for (int way = 0; way < Products::kWays; ++way)
      add(Products::name(way) + std::string(" product"), [&, way](int load) { products_.run(way, load); });
  }

  void set_limits(Measured& measured) const {
    const double operations = 4.0 * static_cast<double>(size_.tokens * size_.k * kWidth * kHidden);
    Times arithmetic, peak;
    for (size_t round = 0; round < measured.at("ours").size(); ++round) {
      PeakRates rates{.fp32 = peaks_.fp32.operations() / measured.at("peak fp32")[round]};
      if (peaks_.bf16.operations() > 0) rates.bf16 = peaks_.bf16.operations() / measured.at("peak bf16")[round];
      peak.push_back(rates.for_fp32());
      arithmetic.push_back(operations / rates.for_fp32());
      measured.limit.push_back(std::max(arithmetic.back(), measured.at("reading")[round]));
    }
    measured.peak = median(peak);
    measured.bound_by_arithmetic = median(arithmetic) > median(measured.at("reading"));
    double touched = 0;
    for (const Load& load : loads_) touched += static_cast<double>(load.touched) / kLoads;
    measured.reading = touched * bytes_per_expert(stored(weights_.plain)) / median(measured.at("reading"));
    for (int way = 0; way < Products::kWays; ++way) {
      const std::string name = Products::name(way);
      if (measured.product.empty() ||
          median(measured.at(name + " product")) < median(measured.at(measured.product + " product")))
        measured.product = name;
    }
  }

  const ExpertsTable& table_;
  const Size size_;
  const Weights& weights_;
  const Peaks& peaks_;
  const std::vector<Load> loads_;
  const Products products_;
  std::vector<std::string> names_;
  std::vector<Timed> works_;
};

using Cells = std::vector<std::string>;

Cells size_cells(Size size) {
  return {std::to_string(size.tokens), std::to_string(size.experts), std::to_string(size.k)};
}

void add_ratio(Cells& cells, const Times& time, const Times& other) {
  cells.push_back(text(ratio_interval(time, other)));
}

// The columns of each contender: its time, and ours over it.
void add_contenders(Cells& cells, const Measured& measured, const std::string& prefix, const Cells& contenders) {
  for (const std::string& name : contenders) {
    cells.push_back(milliseconds(median(measured.at(prefix + name))));
    add_ratio(cells, measured.at(name == "oneDNN" ? "packed" : prefix + "ours"), measured.at(prefix + name));
  }
}

void print_forward(Size size, const Measured& measured, const Cells& contenders) {
  const Times& product = measured.at(measured.product + " product");
  Cells cells = size_cells(size);
  cells.push_back(whole(measured.peak / 1e9));
  cells.push_back(whole(measured.reading / 1e9));
  cells.push_back(milliseconds(median(measured.limit)) + (measured.bound_by_arithmetic ? " c" : " m"));
  cells.push_back(milliseconds(median(product)) + " " + measured.product);
  for (const char* name : {"ours", "packed"}) {
    cells.push_back(milliseconds(median(measured.at(name))));
    add_ratio(cells, measured.limit, measured.at(name));
    add_ratio(cells, measured.at(name), product);
  }
  add_contenders(cells, measured, "", contenders);
  print_row(cells);
}

Cells training_row(Size size, const Measured& measured, const Cells& contenders) {
  Times limit = measured.limit;
  for (double& time : limit) time *= 3;
  Cells cells = size_cells(size);
  cells.push_back(milliseconds(median(limit)));
  cells.push_back(milliseconds(median(measured.at("train ours"))));
  add_ratio(cells, limit, measured.at("train ours"));
  add_contenders(cells, measured, "train ", contenders);
  return cells;
}

Cells header(Cells columns, const Cells& contenders) {
  for (const std::string& name : contenders) {
    columns.push_back(name);
    columns.push_back((name == "oneDNN" ? "packed / " : "ours / ") + name);
  }
  return columns;
}

// Forward times by T, K and E.
using TimesBySize = std::map<std::tuple<int64_t, int64_t, int64_t>, double>;

void print_cost_of_experts(const char* what, const ExpertsTable& table, const TimesBySize& times) {
  const auto [minimum, maximum] = std::minmax_element(table.experts.begin(), table.experts.end());
  if (*minimum == *maximum) return;
  std::printf("\n%s at E=%ld over E=%ld:", what, *maximum, *minimum);
  for (const int64_t k : table.k)
    for (const int64_t tokens : table.tokens)
      std::printf("  %.2f (T=%ld, k=%ld)", times.at({tokens, k, *maximum}) / times.at({tokens, k, *minimum}), tokens,
                  k);
  std::printf("\n");
}

}  // namespace

void print_experts_table(const ExpertsTable& table, const Peaks& peaks) {
  const Cells learning = table.contenders ? Cells{"dense", "loop", "grouped_mm"} : Cells{"dense"};
  Cells all = learning;
  if (table.contenders) all.push_back("oneDNN");
  InterferenceWatch watch;
  TimesBySize times, packed_times;
  std::vector<Cells> training;
  std::printf("\nForward\n");
  print_header(header({"T", "E", "k", "GFLOP/s", "GB/s", "limit", "products", "ours", "limit / ours", "ours / products",
                       "packed", "limit / packed", "packed / products"},
                      all));
  for (const int64_t experts : table.experts) {
    const Weights weights(experts);
    for (const int64_t k : table.k)
      for (const int64_t tokens : table.tokens) {
        const Size size{tokens, experts, k};
        const Measured measured = Measurement(table, size, weights, peaks).run();
        print_forward(size, measured, all);
        if (table.training) training.push_back(training_row(size, measured, learning));
        times[{tokens, k, experts}] = median(measured.at("ours"));
        packed_times[{tokens, k, experts}] = median(measured.at("packed"));
      }
  }
  if (table.training) {
    std::printf("\nTraining\n");
    print_header(header({"T", "E", "k", "limit", "ours", "limit / ours"}, learning));
    for (const Cells& row : training) print_row(row);
  }
  watch.print();
  print_cost_of_experts("ours", table, times);
  print_cost_of_experts("packed", table, packed_times);
}

}  // namespace sparsight::bench
