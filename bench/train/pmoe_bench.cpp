#include "bench/train/pmoe_bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <ATen/Parallel.h>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"
#include "sparsight/train/two_layer.h"

namespace sparsight::bench {
namespace {

constexpr int64_t kPatches = 16, kWidth = 784;

// Grids of cells with as many bright pixels as digits have; the times do not depend on what they show.
PatchSet cells(int64_t samples) {
  PatchSet set;
  set.table = at::empty({samples * kPatches, kWidth}, at::kByte);
  auto* const pixels = set.table.mutable_data_ptr<uint8_t>();
  RandomStream random(0, "pmoe_bench");
  for (int64_t i = 0; i < set.table.numel(); ++i) {
    const uint32_t bits = random.bits_at(i);
    pixels[i] = bits % 5 == 0 ? static_cast<uint8_t>(bits >> 24) : 0;
  }
  set.labels = at::arange(samples, at::kLong).remainder(2);
  set.place = at::zeros({samples}, at::kLong);
  set.patches = kPatches;
  set.classes = 2;
  return set;
}

double median_ms(int64_t rounds, const std::function<void()>& run) {
  std::vector<double> times;
  for (int64_t round = 0; round <= rounds; ++round) {  // the first warms up
    const auto start = std::chrono::steady_clock::now();
    run();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin() + 1, times.end());
  return times[1 + rounds / 2];
}

}  // namespace

int run_pmoe_bench(const std::vector<std::string>& arguments) {
  int64_t samples = 1000, epochs = 5, threads = 2;
  std::string form = "separate";
  for (size_t i = 0; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size()) fail_usage("option ", arguments[i], " needs a value");
    const std::string &name = arguments[i], &value = arguments[i + 1];
    if (name == "--samples")
      samples = std::stoll(value);
    else if (name == "--epochs")
      epochs = std::stoll(value);
    else if (name == "--threads")
      threads = std::stoll(value);
    else if (name == "--form")
      form = value;
    else
      fail_usage("unknown option ", name, " (known: --samples --epochs --threads --form)");
  }
  at::set_num_threads(static_cast<int>(threads));
  const PatchSet data = cells(samples);
  TwoLayerSetting setting = two_layer_preset("paper", form, data);
  const auto model = make_two_layer(setting, data, {});
  setting.sgd.router_epochs = 1;
  PatchSgd sgd(model, data, setting.sgd, 0);
  const double routers = form == "separate" ? median_ms(epochs, [&] { sgd.train_routers(); }) : 0;
  const double epoch = median_ms(epochs, [&] { sgd.train_epoch(); });
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  std::printf(
      "{\"form\": \"%s\", \"samples\": %ld, \"epoch_ms\": %.3f, \"router_epoch_ms\": %.3f, \"peak_mb\": %.0f}\n",
      form.c_str(), samples, epoch, routers, static_cast<double>(use.ru_maxrss) / 1024);
  return 0;
}

}  // namespace sparsight::bench
