#include "bench/moe/moe_bench.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "bench/moe/contenders.h"
#include "bench/moe/limits.h"
#include "bench/moe/medians.h"
#include "bench/moe/memory_use.h"
#include "bench/moe/packed_table.h"
#include "bench/moe/routing_share.h"
#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/isa.h"

namespace sparsight::bench {
namespace {

struct Settings {
  std::vector<int64_t> tokens{1, 49, 197, 1576, 6304}, experts{8, 32, 128}, k{1, 2};
  int64_t threads = 2, rounds = 7;
  bool contenders = true, training = true, packed = true, routing = true, memory = true;
};

void declare(CLI::App& app, Settings& settings) {
  app.description("Times the experts of one MoE layer, the machine's limits and other implementations.");
  const auto sizes = [&](const char* name, std::vector<int64_t>& values, const char* help) {
    app.add_option(name, values, help)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::Range(1, 1'000'000))
        ->type_name("N,N,...")
        ->capture_default_str();
  };
  const auto count = [&](const char* name, int64_t& value, const char* help) {
    app.add_option(name, value, help)->check(CLI::Range(1, 1000))->capture_default_str();
  };
  const auto part = [&](const char* name, bool& value, const char* help) {
    app.add_option(name, value, help)->check(CLI::IsMember({"on", "off"}))->default_str("on");
  };
  sizes("--tokens", settings.tokens, "Numbers of tokens T");
  sizes("--experts", settings.experts, "Numbers of experts E (128 of them need 8 GB)");
  sizes("--k", settings.k, "Numbers of experts per token");
  count("--threads", settings.threads, "Number of threads of everything that is timed");
  count("--rounds", settings.rounds, "Number of rounds; medians are printed");
  part("--contenders", settings.contenders, "Also time a loop over experts and _grouped_mm");
  part("--training", settings.training, "Also time training steps");
  part("--packed", settings.packed, "Print the table of experts packed as bf16 and int8");
  part("--routing", settings.routing, "Print the share of routing in a layer's forward pass");
  part("--memory", settings.memory, "Print the memory of a training step");
}

struct Size {
  int64_t tokens, experts, k;
};

// Seconds of a forward pass and of a training step; 0 if not run.
struct Pair {
  double forward = 0, training = 0;
};

// Medians of rounds in which all of these run in turn.
struct Row {
  double sgemm_rate, read_rate;  // operations and bytes per second
  double arithmetic, reading;    // seconds at least: the products at sgemm_rate, reading the touched weights once
  std::vector<Pair> ways;        // ours, dense, and then the contenders
  double packed;                 // ours forward, packed for inference
  double limit() const { return std::max(arithmetic, reading); }
};

Row measure(const Settings& settings, Size size, const ExpertMlpWeights& weights, const PackedExperts& packed,
            const Sgemm& sgemm) {
  const std::vector<Load> loads = random_loads(size.tokens, size.experts, size.k);
  const auto at = [&](int load) -> const Load& { return loads[static_cast<size_t>(load)]; };
  std::vector<Timed> all{{[&](int) { sgemm.run(); }, {}},
                         {[&](int load) { read_touched(weights, at(load).rows.offsets); }, {}},
                         {[&](int load) { run_packed(at(load), packed); }, {}}};
  const auto add = [&](const Forward& forward) {
    all.push_back({[&, forward](int load) {
                     const c10::AutoGradMode no_grad(false);
                     forward(at(load), weights);
                   },
                   {}});
    if (settings.training) all.push_back({[&, forward](int load) { train_step(forward, at(load), weights); }, {}});
  };
  add(run_ours);
  add(run_dense);
  if (settings.contenders) {
    add(run_loop);
    add(run_grouped_mm);
  }
  const std::vector<double> times = medians(std::move(all), settings.rounds);
  Row row;
  row.sgemm_rate = sgemm.flops() / times[0];
  row.arithmetic = 4.0 * static_cast<double>(size.tokens * size.k * kWidth * kHidden) / row.sgemm_rate;
  row.reading = times[1];
  double touched = 0;
  for (const Load& load : loads) touched += static_cast<double>(load.touched) / kLoads;
  row.read_rate = touched * 8.0 * kWidth * kHidden / row.reading;
  row.packed = times[2];
  for (size_t i = 3; i < times.size(); i += settings.training ? 2 : 1)
    row.ways.push_back({times[i], settings.training ? times[i + 1] : 0});
  row.ways.resize(4);
  return row;
}

void print(Size size, const Row& row) {
  const double limit = row.limit();
  std::printf("%5ld %4ld %ld | %4.0f %4.0f |", size.tokens, size.experts, size.k, row.sgemm_rate / 1e9,
              row.read_rate / 1e9);
  std::printf(" %8.3f %5.2f |", 1e3 * row.packed, limit / row.packed);
  const auto beside_limit = [&](double time, double minimum, double dense) {
    std::printf(" %8.3f %8.3f%c %5.2f %8.3f |", 1e3 * time, 1e3 * minimum, row.arithmetic > row.reading ? 'c' : 'm',
                time > 0 ? minimum / time : 0, 1e3 * dense);
  };
  beside_limit(row.ways[0].forward, limit, row.ways[1].forward);
  beside_limit(row.ways[0].training, 3 * limit, row.ways[1].training);
  std::printf(" %8.3f %8.3f | %12.3f %8.3f\n", 1e3 * row.ways[2].forward, 1e3 * row.ways[2].training,
              1e3 * row.ways[3].forward, 1e3 * row.ways[3].training);
  std::fflush(stdout);
}

// Forward times by T, K and E.
using Times = std::map<std::tuple<int64_t, int64_t, int64_t>, double>;

void print_cost_of_experts(const char* what, const Settings& settings, const Times& times) {
  const auto [minimum, maximum] = std::minmax_element(settings.experts.begin(), settings.experts.end());
  if (*minimum == *maximum) return;
  std::printf("\n%s at E=%ld over E=%ld:", what, *maximum, *minimum);
  for (const int64_t k : settings.k)
    for (const int64_t tokens : settings.tokens)
      std::printf("  %.2f (T=%ld, k=%ld)", times.at({tokens, k, *maximum}) / times.at({tokens, k, *minimum}), tokens,
                  k);
  std::printf("\n");
}

void run(const Settings& settings) {
  if (const auto k = *std::max_element(settings.k.begin(), settings.k.end()),
      experts = *std::min_element(settings.experts.begin(), settings.experts.end());
      k > experts)
    fail_usage("--k ", k, " is more than --experts ", experts, "; lower --k or raise --experts");
  if (settings.memory) print_memory_use(6304, 8, 2, settings.threads);  // before there are threads
  Times times, packed_times;
  at::set_num_threads(static_cast<int>(settings.threads));
  const Sgemm sgemm(kWidth, kHidden);
  std::printf("experts D=%ld F=%ld, GELU, bias, fp32; %ld threads, instruction set %s\n", kWidth, kHidden,
              settings.threads, isa_name(active_isa()).c_str());
  std::printf(
      "Times in ms: medians of %ld rounds in turn. limit: the larger of arithmetic at the rate of sgemm with operands\n"
      "in cache (c; GFLOP/s) and of reading the touched weights in a plain loop (m; GB/s), both measured in the same\n"
      "rounds; packed: forward with weights packed once for inference, in fp32; train: three times the arithmetic,\n"
      "weights read twice and their gradient written once.\n\n",
      settings.rounds);
  std::printf(
      "   T    E k | GF/s GB/s |     packed ratio |  forward   limit   ratio   dense |    train   limit   ratio   "
      "dense |"
      "  loop: fwd   train | grouped_mm: fwd   train\n");
  for (const int64_t experts : settings.experts) {
    ExpertMlpWeights weights = random_weights(experts);
    for (const at::Tensor* w : {&weights.w1, &weights.b1, &weights.w2, &weights.b2}) w->requires_grad_(true);
    const PackedExperts packed = pack_expert_weights(weights, WeightType::fp32);
    for (const int64_t k : settings.k)
      for (const int64_t tokens : settings.tokens) {
        const Size size{tokens, experts, k};
        const Row row = measure(settings, size, weights, packed, sgemm);
        print(size, row);
        times[{tokens, k, experts}] = row.ways[0].forward;
        packed_times[{tokens, k, experts}] = row.packed;
      }
  }
  print_cost_of_experts("forward", settings, times);
  print_cost_of_experts("packed", settings, packed_times);
  if (settings.routing) print_routing_share(6304, 32, settings.k, settings.rounds);
  if (settings.packed) print_packed_table({settings.tokens, settings.experts, settings.k, settings.rounds});
}

}  // namespace

void add_moe_bench(CLI::App& app) {
  const auto settings = std::make_shared<Settings>();
  declare(app, *settings);
  app.callback([settings] { run(*settings); });
}

}  // namespace sparsight::bench
