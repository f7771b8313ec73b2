#include "bench/moe/packed_table.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include <ATen/ATen.h>
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

constexpr int64_t kSmallBatch = 197;  // the tokens of one image of ViT

double largest_error(const std::vector<Load>& loads, const ExpertMlpWeights& weights, const PackedExperts& packed) {
  double error = 0;
  for (const Load& load : loads) {
    const at::Tensor exact = run_ours(load, weights);
    const at::Tensor difference = (run_packed(load, packed) - exact).abs().max() / exact.abs().max();
    error = std::max(error, difference.item<double>());
  }
  return error;
}

struct PackedSize {
  int64_t tokens, experts, k;
  double operations() const { return 4.0 * static_cast<double>(tokens * k * kWidth * kHidden); }
};

// In this order, from 0 on.
enum Column { kFp32, kPeakFp32, kPeakBf16, kPeakInt8, kBf16, kReadBf16, kInt8, kReadInt8 };

double rate_in(const RoundTimes& times, Column peak, double operations, size_t round) {
  return operations > 0 ? operations / times[peak][round] : 0;
}

// One limit for each round.
std::vector<double> packed_limit(const RoundTimes& times, const Peaks& peaks, Column type, double operations) {
  std::vector<double> limit;
  for (size_t round = 0; round < times[kFp32].size(); ++round) {
    const PeakRates rates{.fp32 = rate_in(times, kPeakFp32, peaks.fp32.operations(), round),
                          .bf16 = rate_in(times, kPeakBf16, peaks.bf16.operations(), round),
                          .int8 = rate_in(times, kPeakInt8, peaks.int8.operations(), round)};
    const double rate = type == kBf16 ? rates.for_bf16() : rates.for_int8();
    limit.push_back(std::max(operations / rate, times[type == kBf16 ? kReadBf16 : kReadInt8][round]));
  }
  return limit;
}

void print_packed_row(PackedSize size, const ExpertMlpWeights& weights, const PackedExperts& bf16,
                      const PackedExperts& int8, const Peaks& peaks, int64_t rounds) {
  const std::vector<Load> loads = random_loads(size.tokens, size.experts, size.k);
  const auto of = [&loads](int load) -> const Load& { return loads[static_cast<size_t>(load)]; };
  const auto peak = [](const Peak& of) { return Timed{[&of](int) { of.run(); }, [&of] { return of.seconds(); }}; };
  const RoundTimes times = time_rounds({{[&](int load) { run_ours(of(load), weights); }},
                                        peak(peaks.fp32),
                                        peak(peaks.bf16),
                                        peak(peaks.int8),
                                        {[&](int load) { run_packed(of(load), bf16); }},
                                        {[&](int load) { read_touched(stored(bf16), of(load).rows.offsets); }},
                                        {[&](int load) { run_packed(of(load), int8); }},
                                        {[&](int load) { read_touched(stored(int8), of(load).rows.offsets); }}},
                                       rounds);
  std::vector<std::string> cells{std::to_string(size.tokens), std::to_string(size.experts), std::to_string(size.k),
                                 milliseconds(median(times[kFp32]))};
  for (const Column type : {kBf16, kInt8}) {
    const std::vector<double> limit = packed_limit(times, peaks, type, size.operations());
    char error[32];
    std::snprintf(error, sizeof error, "%.4f", largest_error(loads, weights, type == kBf16 ? bf16 : int8));
    cells.push_back(milliseconds(median(times[type])));
    cells.push_back(text(ratio_interval(times[type], times[kFp32])));
    cells.push_back(text(ratio_interval(limit, times[type])));
    cells.push_back(error);
  }
  print_row(cells);
}

}  // namespace

void print_packed_table(const PackedSizes& sizes, const Peaks& peaks) {
  const c10::AutoGradMode no_grad(false);
  std::printf("\nExperts packed in fewer bits, forward; error: largest difference from fp32 over the largest value\n");
  print_header({"T", "E", "k", "fp32", "bf16", "bf16 / fp32", "limit / bf16", "error", "int8", "int8 / fp32",
                "limit / int8", "error"});
  InterferenceWatch watch;
  for (const int64_t experts : sizes.experts) {
    const ExpertMlpWeights weights = random_weights(experts);
    const PackedExperts bf16 = pack_expert_weights(weights, WeightType::bf16),
                        int8 = pack_expert_weights(weights, WeightType::int8);
    for (const int64_t k : sizes.k)
      for (const int64_t tokens : sizes.tokens)
        if (tokens <= kSmallBatch) print_packed_row({tokens, experts, k}, weights, bf16, int8, peaks, sizes.rounds);
  }
  watch.print();
}

}  // namespace sparsight::bench
