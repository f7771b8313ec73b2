#include "bench/dist/dist_bench.h"

#include <iostream>
#include <memory>

#include <ATen/Parallel.h>

#include "bench/measure/rounds.h"
#include "bench/models/our_model.h"
#include "sparsight/core/json_text.h"
#include "sparsight/dist/gradient_sum.h"
#include "sparsight/dist/join.h"

namespace sparsight::bench {
namespace {

struct RankSettings {
  ModelCase which = {.size = "12x192", .batch = 16};
  int64_t threads = 1, batches = 1;
};

// Rank 0 reads how often to step, a number per line, and answers with the seconds of a step; the others follow it. An
// empty message ends them.
void serve(const RankSettings& settings) {
  at::set_num_threads(static_cast<int>(settings.threads));
  const dist::GroupPtr group = dist::join_group();
  OurModel model(settings.which);
  if (group->leads()) std::cout << Json{{"operations", 3 * model.operations()}}.dump() << std::endl;
  dist::GradientSum sum(group, model.model()->parameters());
  for (std::string line; !group->leads() || std::getline(std::cin, line); line.clear()) {
    const std::string runs = group->broadcast(line);
    if (runs.empty()) return;
    const double start = seconds_now();
    for (int64_t i = 0; i < std::stoll(runs); ++i) model.train_step(settings.batches, &sum);
    const double seconds = (seconds_now() - start) / static_cast<double>(std::stoll(runs));
    if (group->leads()) std::cout << Json{{"seconds", seconds}}.dump() << std::endl;
  }
  group->broadcast("");
}

}  // namespace

void add_dist_bench(CLI::App& app) {
  app.description("A rank of a group that bench/peers/dist.py times (./dev bench dist).");
  const auto settings = std::make_shared<RankSettings>();
  app.add_option("--size", settings->which.size, "Size of the ViT, depth x width")->capture_default_str();
  app.add_option("--patch", settings->which.patch, "Side of a patch; images have 224 pixels")->capture_default_str();
  app.add_option("--routing", settings->which.routing, "MLPs of the last two blocks")
      ->check(CLI::IsMember(routing_kinds()))
      ->capture_default_str();
  app.add_option("--batch", settings->which.batch, "Images of a batch")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--batches", settings->batches, "Batches of a step on each rank")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--threads", settings->threads, "Threads of each rank")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.callback([settings] { serve(*settings); });
}

}  // namespace sparsight::bench
