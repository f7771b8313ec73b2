#include "bench/moe/moe_bench.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include "bench/limits/peak.h"
#include "bench/measure/ratio_interval.h"
#include "bench/moe/contenders.h"
#include "bench/moe/experts_table.h"
#include "bench/moe/many_experts.h"
#include "bench/moe/memory_use.h"
#include "bench/moe/packed_table.h"
#include "bench/moe/routing_share.h"
#include "sparsight/core/error.h"

namespace sparsight::bench {
namespace {

struct Settings {
  ExpertsTable table{.tokens = {1, 49, 197, 1576, 6304}, .experts = {8, 32, 128}, .k = {1, 2}};
  ManyExperts many;
  int64_t threads = 2;
  bool small = true, packed = true, routing = true, memory = true, thousands = true;
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
  sizes("--tokens", settings.table.tokens, "Numbers of tokens T");
  sizes("--experts", settings.table.experts, "Numbers of experts E (128 of them need 10 GB)");
  sizes("--k", settings.table.k, "Numbers of experts per token");
  count("--threads", settings.threads, "Number of threads of everything that is timed");
  count("--rounds", settings.table.rounds, "Number of rounds; at least 6 give intervals of 95 %");
  part("--experts-table", settings.small, "Print the tables of the experts alone, at the sizes above");
  part("--contenders", settings.table.contenders,
       "Also time a loop over experts, _grouped_mm, and (forward) oneDNN's packed linear layers");
  part("--training", settings.table.training, "Also time training steps");
  part("--packed", settings.packed, "Print the table of experts packed as bf16 and int8");
  part("--routing", settings.routing, "Print the share of routing in a layer's forward pass");
  part("--memory", settings.memory, "Print the memory of a training step");
  part("--thousands", settings.thousands, "Print the tables of a whole layer with thousands of experts");
  sizes("--many-experts", settings.many.experts,
        "Its numbers of experts, 2 of each token (4096 with F = 64 need 5 GB)");
  count("--many-hidden", settings.many.hidden, "Its hidden width F");
  app.add_option("--many-tokens", settings.many.tokens, "Its tokens T")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--json", settings.many.json, "Write the results of thousands of experts into this file");
}

void print_explanation(int64_t rounds) {
  std::printf("experts D=%ld F=%ld, GELU, bias, fp32; times in ms: medians of %ld rounds in turn\n", kWidth, kHidden,
              rounds);
  std::printf(
      "limit: the larger of the multiply-adds at the measured peak (c) and of reading the touched weights in a\n"
      "plain loop (m); training: three times that. products: the experts' products alone in the fastest\n"
      "library. packed: fp32 weights packed once. A ratio: median over the rounds, and in brackets the\n%s\n",
      interval_note(static_cast<int>(rounds)).c_str());
}

void run(const Settings& settings) {
  const ExpertsTable& table = settings.table;
  if (const auto k = *std::max_element(table.k.begin(), table.k.end()),
      experts = *std::min_element(table.experts.begin(), table.experts.end());
      k > experts)
    fail_usage("--k ", k, " is more than --experts ", experts, "; lower --k or raise --experts");
  ManyExperts many = settings.many;
  if (const int64_t fewest = *std::min_element(many.experts.begin(), many.experts.end()); fewest < many.k)
    fail_usage("--many-experts ", fewest, " is less than the ", many.k, " of each token; raise it");
  many.rounds = table.rounds, many.contenders = table.contenders, many.training = table.training;
  // Memory before there are threads.
  if (settings.memory) print_memory_use(6304, 8, 2, settings.threads);
  const std::vector<double> memory_of_many =
      settings.thousands ? memory_of_many_experts(many, settings.threads) : std::vector<double>();
  at::set_num_threads(static_cast<int>(settings.threads));
  const Peaks peaks = Peaks::of_active_isa();
  const std::string machine = machine_line(measure_peaks(peaks));
  std::printf("%s\n", machine.c_str());
  if (settings.small) {
    print_explanation(table.rounds);
    print_experts_table(table, peaks);
  }
  if (settings.routing) print_routing_share(6304, 32, table.k, table.rounds);
  if (settings.packed) print_packed_table({table.tokens, table.experts, table.k, table.rounds}, peaks);
  if (settings.thousands) print_many_experts(many, memory_of_many, machine);
}

}  // namespace

void add_moe_bench(CLI::App& app) {
  const auto settings = std::make_shared<Settings>();
  declare(app, *settings);
  app.callback([settings] { run(*settings); });
}

}  // namespace sparsight::bench
