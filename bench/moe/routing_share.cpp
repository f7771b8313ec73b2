#include "bench/moe/routing_share.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "bench/measure/interference.h"
#include "bench/measure/ratio_interval.h"
#include "bench/measure/rounds.h"
#include "bench/moe/contenders.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/routing/combine_parts.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/row_numbers.h"
#include "sparsight/ops/sort_by_expert.h"
#include "sparsight/ops/top_experts.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight::bench {
namespace {

// Seconds since the last call.
class Lap {
 public:
  double operator()() {
    const double now = seconds_now(), lap = now - last_;
    last_ = now;
    return lap;
  }

 private:
  double last_ = seconds_now();
};

struct RoutingShare {
  double logits, choice, sort, permute, combine;  // seconds: tokens times the router's weights; softmax, top-k, gates;
                                                  // counting sort and row map; gather rows; scatter-add rows
  double experts;                                 // the rest of the forward pass
  MedianInterval of_forward;                      // routing / (routing + experts), of each round
};

// Gathers tokens for their experts as the layer does, the rows of one task at a time.
void permute(const at::Tensor& x, const RowMap& map) {
  const int64_t rows = map.row_token.size(0), width = x.size(1), task = cpu::kernels().task_rows;
  const float* const from = x.const_data_ptr<float>();
  const int64_t* const token = map.row_token.const_data_ptr<int64_t>();
  at::parallel_for(0, (rows + task - 1) / task, 1, [&](int64_t begin, int64_t end) {
    thread_local std::vector<float> here;
    here.resize(static_cast<size_t>(task * width));
    for (int64_t r = begin * task; r < std::min(rows, end * task); ++r)
      std::copy_n(from + token[r] * width, width, here.data() + r % task * width);
  });
}

RoutingShare measure_routing_share(int64_t tokens, int64_t k, const ExpertMlpWeights& weights, int64_t rounds) {
  const c10::AutoGradMode no_grad(false);
  const int64_t experts = weights.w1.size(0);
  const std::vector<Load> loads = random_loads(tokens, experts, k);
  const at::Tensor& router = weights.b2;  // any [E,D] will do
  const at::Tensor token = at::arange(tokens).unsqueeze(1).expand({tokens, k}).reshape({-1});
  const at::Tensor kept = at::ones({tokens * k}, at::kBool);
  at::Tensor x = at::empty({tokens, kWidth});
  const at::Tensor outputs = cpu::empty_from_arena({tokens * k, kWidth});
  at::Tensor sums = cpu::empty_from_arena({tokens, kWidth});
  std::vector<std::vector<double>> laps(6);
  std::vector<double> share;
  for (int64_t round = 0; round <= rounds; ++round) {
    x.copy_(loads[static_cast<size_t>(round % kLoads)].tokens);
    Lap lap;
    const at::Tensor logits = router_logits(x, router);
    const double logits_time = lap();
    const at::Tensor scores = at::softmax(logits, 1), chosen = top_experts(scores, k), gate = scores.gather(1, chosen);
    const double choice_time = lap();
    const ExpertGroups groups = sort_by_expert(chosen.reshape({-1}), kept, experts);
    const ExpertRows rows{map_rows(token, groups.order, tokens), groups.offsets,
                          gate.reshape({-1}).index_select(0, groups.order)};
    const double sort_time = lap();
    permute(x, rows.map);
    const double permute_time = lap();
    outputs.fill_(1.0f);
    lap();
    cpu::combine_parts(cpu::torch_threads(), cpu::row_numbers(rows.map), rows.gate.const_data_ptr<float>(),
                       {outputs.const_data_ptr<float>(), kWidth, 1, kWidth}, sums.data_ptr<float>());
    const double combine_time = lap();
    expert_mlp(x, rows, weights, {});
    const double rest = std::max(0.0, lap() - permute_time - combine_time);
    const double times[] = {logits_time, choice_time, sort_time, permute_time, combine_time, rest};
    if (round > 0)  // the first warms up
      for (size_t i = 0; i < laps.size(); ++i) laps[i].push_back(times[i]);
    if (round > 0) share.push_back(1 - rest / std::accumulate(std::begin(times), std::end(times), 0.0));
  }
  return {median(laps[0]), median(laps[1]), median(laps[2]),       median(laps[3]),
          median(laps[4]), median(laps[5]), median_interval(share)};
}

}  // namespace

void print_routing_share(int64_t tokens, int64_t experts, const std::vector<int64_t>& ks, int64_t rounds) {
  std::printf("\nRouting's share of the forward pass, T=%ld, E=%ld (ms):\n", tokens, experts);
  InterferenceWatch watch;
  const ExpertMlpWeights weights = random_weights(experts);
  for (const int64_t k : ks) {
    const RoutingShare s = measure_routing_share(tokens, k, weights, rounds);
    std::printf(
        "  k=%ld: logits %.2f, top-k %.2f, sort %.2f, permute %.2f, combine %.2f, experts %.2f: %.1f %% "
        "[%.1f, %.1f]\n",
        k, 1e3 * s.logits, 1e3 * s.choice, 1e3 * s.sort, 1e3 * s.permute, 1e3 * s.combine, 1e3 * s.experts,
        100 * s.of_forward.median, 100 * s.of_forward.low, 100 * s.of_forward.high);
  }
  watch.print();
}

}  // namespace sparsight::bench
