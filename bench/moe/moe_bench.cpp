#include "bench/moe/moe_bench.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>
#include <tuple>

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "bench/moe/contenders.h"
#include "bench/moe/held_table.h"
#include "bench/moe/limits.h"
#include "bench/moe/medians.h"
#include "bench/moe/memory_use.h"
#include "bench/moe/routing_share.h"
#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/isa.h"

namespace sparsight::bench {
namespace {

struct Settings {
  std::vector<int64_t> tokens{1, 49, 197, 1576, 6304}, experts{8, 32, 128}, k{1, 2};
  int64_t threads = 2, rounds = 7;
  bool contenders = true, training = true, held = true, routing = true, memory = true;
};

std::vector<int64_t> numbers(const std::string& text) {
  std::vector<int64_t> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) out.push_back(std::stoll(part));
  return out;
}

Settings parse(const std::vector<std::string>& arguments) {
  Settings settings;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size()) fail_usage("option ", arguments[i], " needs a value");
    const std::string &name = arguments[i], &value = arguments[i + 1];
    if (name == "--tokens")
      settings.tokens = numbers(value);
    else if (name == "--experts")
      settings.experts = numbers(value);
    else if (name == "--k")
      settings.k = numbers(value);
    else if (name == "--threads")
      settings.threads = std::stoll(value);
    else if (name == "--rounds")
      settings.rounds = std::stoll(value);
    else if (name == "--contenders")
      settings.contenders = value == "on";
    else if (name == "--training")
      settings.training = value == "on";
    else if (name == "--held")
      settings.held = value == "on";
    else if (name == "--routing")
      settings.routing = value == "on";
    else if (name == "--memory")
      settings.memory = value == "on";
    else
      fail_usage(
          "unknown option ", name,
          " (known: --tokens --experts --k --threads --rounds --contenders --training --held --routing --memory)");
  }
  return settings;
}

// Forward times by T, K and E.
using Times = std::map<std::tuple<int64_t, int64_t, int64_t>, double>;

void print_cost_of_experts(const Settings& settings, const Times& times) {
  const auto [least, most] = std::minmax_element(settings.experts.begin(), settings.experts.end());
  if (*least == *most) return;
  std::printf("\nforward at E=%ld over E=%ld:", *most, *least);
  for (const int64_t k : settings.k)
    for (const int64_t tokens : settings.tokens)
      std::printf("  %.2f (T=%ld, k=%ld)", times.at({tokens, k, *most}) / times.at({tokens, k, *least}), tokens, k);
  std::printf("\n");
}

}  // namespace

int run_moe_bench(const std::vector<std::string>& arguments) {
  const Settings settings = parse(arguments);
  if (settings.memory) print_memory_use(6304, 8, 2, settings.threads);  // before there are threads
  Times times;
  at::set_num_threads(static_cast<int>(settings.threads));
  const double flops = sgemm_rate(kWidth, kHidden);
  std::printf("experts D=%ld F=%ld, GELU, bias, fp32; %ld threads, instruction set %s\n", kWidth, kHidden,
              settings.threads, isa_name(active_isa()).c_str());
  std::printf(
      "sgemm, operands in cache: %.0f GFLOP/s. Times in ms: medians of %ld rounds in turn. limit: the larger of\n"
      "arithmetic at that rate and touched weights at the rate at which E experts' weights can be read (c or m);\n"
      "training: three times the arithmetic, weights read twice and their gradient written once.\n\n",
      flops / 1e9, settings.rounds);
  std::printf(
      "   T    E k | GB/s |  forward   limit   ratio   dense |    train   limit   ratio   dense |"
      "  loop: fwd   train | grouped_mm: fwd   train\n");
  for (const int64_t experts : settings.experts) {
    ExpertMlpWeights weights = random_weights(experts);
    for (const at::Tensor* w : {&weights.w1, &weights.b1, &weights.w2, &weights.b2}) w->requires_grad_(true);
    for (const int64_t k : settings.k)
      for (const int64_t tokens : settings.tokens) {
        const double bandwidth = read_rate({weights.w1.detach(), weights.w2.detach()});
        const std::vector<Load> loads = random_loads(tokens, experts, k);
        double touched = 0;
        for (const Load& load : loads) touched += static_cast<double>(load.touched) / kLoads;
        const double arithmetic = 4.0 * static_cast<double>(tokens * k * kWidth * kHidden) / flops;
        const double memory = touched * 8.0 * kWidth * kHidden / bandwidth;
        std::vector<Timed> all;
        const auto add = [&](const Forward& forward) {
          all.push_back({[&loads, &weights, forward](int load) {
                           const c10::AutoGradMode no_grad(false);
                           forward(loads[static_cast<size_t>(load)], weights);
                         },
                         {}});
          if (settings.training)
            all.push_back({[&loads, &weights, forward](int load) {
                             train_step(forward, loads[static_cast<size_t>(load)], weights);
                           },
                           {}});
        };
        add(run_ours);
        add(run_dense);
        if (settings.contenders) {
          add(run_loop);
          add(run_grouped_mm);
        }
        std::vector<double> t = medians(std::move(all), settings.rounds);
        if (!settings.training) {
          std::vector<double> spread;
          for (const double x : t) spread.insert(spread.end(), {x, 0.0});
          t = spread;
        }
        t.resize(8);
        times[{tokens, k, experts}] = t[0];
        const double limit = std::max(arithmetic, memory), train_limit = 3 * limit;
        std::printf(
            "%5ld %4ld %ld | %4.0f | %8.3f %8.3f%c %5.2f %8.3f | %8.3f %8.3f  %5.2f %8.3f | %8.3f %8.3f | %12.3f "
            "%8.3f\n",
            tokens, experts, k, bandwidth / 1e9, 1e3 * t[0], 1e3 * limit, arithmetic > memory ? 'c' : 'm', limit / t[0],
            1e3 * t[2], 1e3 * t[1], 1e3 * train_limit, t[1] > 0 ? train_limit / t[1] : 0, 1e3 * t[3], 1e3 * t[4],
            1e3 * t[5], 1e3 * t[6], 1e3 * t[7]);
        std::fflush(stdout);
      }
  }
  print_cost_of_experts(settings, times);
  if (settings.routing) print_routing_share(6304, 32, settings.k, settings.rounds);
  if (settings.held) print_held_table({settings.tokens, settings.experts, settings.k, settings.rounds});
  return 0;
}

}  // namespace sparsight::bench
