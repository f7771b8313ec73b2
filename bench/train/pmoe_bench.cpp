#include "bench/train/pmoe_bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include "sparsight/core/random.h"
#include "sparsight/papers/pmoe/two_layer/two_layer.h"

namespace sparsight::bench {
namespace {

using namespace pmoe;

constexpr int64_t kPatches = 16, kWidth = 784;

// Grids of cells with about as many bright pixels as digits have; the times do not depend on their content.
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
  set.position = at::zeros({samples}, at::kLong);
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

struct PmoeSettings {
  int64_t samples = 1000, epochs = 5, threads = 2;
  std::string form = "separate";
};

void run_pmoe(const PmoeSettings& settings) {
  at::set_num_threads(static_cast<int>(settings.threads));
  const PatchSet data = cells(settings.samples);
  TwoLayerSetting setting = two_layer_preset("paper", settings.form, data);
  const auto model = make_two_layer(setting, data, {});
  setting.sgd.router_epochs = 1;
  PatchSgd sgd(model, data, setting.sgd, 0);
  const double routers = settings.form == "separate" ? median_ms(settings.epochs, [&] { sgd.train_routers(); }) : 0;
  const double epoch = median_ms(settings.epochs, [&] { sgd.train_epoch(); });
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  std::printf(
      "{\"form\": \"%s\", \"samples\": %ld, \"epoch_ms\": %.3f, \"router_epoch_ms\": %.3f, \"peak_mb\": %.0f}\n",
      settings.form.c_str(), settings.samples, epoch, routers, static_cast<double>(use.ru_maxrss) / 1024);
}

}  // namespace

void add_pmoe_bench(CLI::App& app) {
  const auto settings = std::make_shared<PmoeSettings>();
  app.description("Times an epoch of the two-layer patch network on patches in memory.");
  const auto count = [&](const char* name, int64_t& value, const char* help) {
    app.add_option(name, value, help)->check(CLI::Range(1, 1'000'000))->capture_default_str();
  };
  count("--samples", settings->samples, "Number of samples, each of 16 patches of 28 x 28");
  count("--epochs", settings->epochs, "Number of epochs; the median is printed");
  count("--threads", settings->threads, "Number of threads");
  app.add_option("--form", settings->form, "cnn, separate (the router trained first) or joint")->capture_default_str();
  app.callback([settings] { run_pmoe(*settings); });
}

}  // namespace sparsight::bench
