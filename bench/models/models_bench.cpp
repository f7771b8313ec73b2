#include "bench/models/models_bench.h"

#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include "bench/limits/peak.h"
#include "bench/measure/interference.h"
#include "bench/measure/ratio_interval.h"
#include "bench/measure/rounds.h"
#include "bench/measure/table.h"
#include "bench/measure/worker.h"
#include "bench/models/our_model.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/machine.h"
#include "sparsight/core/options.h"
#include "sparsight/io/safetensors.h"

namespace sparsight::bench {
namespace {

struct ModelSettings {
  std::vector<std::string> sizes, routings;
  std::vector<int64_t> batches;
  int64_t patch = 32, threads = 2, rounds = 15;
  std::string type = "fp32", worker = {};
  bool training = false;
};

void declare_models(CLI::App& app, ModelSettings& settings) {
  app.add_option("--size", settings.sizes, "Sizes of ViT, depth x width")->delimiter(',')->capture_default_str();
  app.add_option(
         "--routing", settings.routings,
         "MLPs of the last two blocks: dense, 1 or 2 of 8 experts per token, 1 of 10 per image (Mobile V-MoE); or "
         "GMoE's")
      ->delimiter(',')
      ->check(CLI::IsMember(routing_kinds()))
      ->capture_default_str();
  app.add_option("--batch", settings.batches, "Images at once")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--patch", settings.patch, "Side of a patch; images have 224 pixels")->capture_default_str();
  app.add_option("--threads", settings.threads, "Number of threads")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--rounds", settings.rounds, "Number of rounds; at least 6 give intervals of 95 %")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--type", settings.type, "Type of the products")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  app.add_option("--worker", settings.worker,
                 "Write the first case into this folder, and time as many runs as each line of standard input says");
}

// The case's measured run, and its operations.
std::function<void()> make_work(OurModel& model, bool training) {
  if (training) return [&model] { model.train_step(); };
  return [&model] { model.predict(); };
}

double count_operations(const OurModel& model, bool training) { return (training ? 3 : 1) * model.operations(); }

// Operations per second in the type of the case's products; takes 60 ms.
double peak_now(const Peaks& peaks, bool bf16) {
  const PeakRates rates = measure_peaks(peaks);
  return bf16 ? rates.for_bf16() : rates.for_fp32();
}

// One process of bench/peers/models.py: the answers are JSON, a line each.
void serve(const ModelSettings& settings, const ModelCase& which) {
  const Peaks peaks = Peaks::of_active_isa();
  OurModel model(which);
  model.save(settings.worker + "/model.safetensors");
  if (!settings.training) model.compile();
  Json ready{{"machine", machine_line(measure_peaks(peaks))},
             {"operations", count_operations(model, settings.training)}};
  write_safetensors(settings.worker + "/ours.safetensors",
                    {{{"logits", settings.training ? model.logits() : model.predict().contiguous()}}, {}});
  if (settings.training) ready["loss"] = model.train_step();
  std::cout << ready.dump() << std::endl;
  answer_runs(make_work(model, settings.training), [&] { return peak_now(peaks, which.bf16); });
}

// Runs one batch through models with different MLPs, in turn, round after round, and prints a row for each. The first
// is what the others are compared with.
void print_models(const ModelSettings& settings, const std::vector<ModelCase>& cases, const Peaks& peaks) {
  std::vector<std::unique_ptr<OurModel>> models;
  for (const ModelCase& which : cases) {
    models.push_back(std::make_unique<OurModel>(which));
    if (!settings.training) models.back()->compile();
  }
  std::vector<std::vector<double>> times(cases.size());
  const auto time_run = [&](OurModel& model) {
    const std::function<void()> work = make_work(model, settings.training);
    int64_t runs = 0;
    const double start = seconds_now();
    while (runs == 0 || seconds_now() - start < 0.02) work(), ++runs;
    return (seconds_now() - start) / static_cast<double>(runs);
  };
  std::vector<double> peak;
  for (int64_t round = -1; round < settings.rounds; ++round) {  // the first warms up
    if (round >= 0) peak.push_back(peak_now(peaks, cases[0].bf16));
    for (size_t i = 0; i < models.size(); ++i) {
      const size_t turn = (i + static_cast<size_t>(round + 1)) % models.size();
      const double seconds = time_run(*models[turn]);
      if (round >= 0) times[turn].push_back(seconds);
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    std::vector<double> share;
    for (size_t round = 0; round < peak.size(); ++round)
      share.push_back(count_operations(*models[i], settings.training) / peak[round] / times[i][round]);
    print_row({cases[i].size, cases[i].routing, std::to_string(cases[i].batch), milliseconds(median(times[i])),
               text(median_interval(share)), i == 0 ? "-" : text(ratio_interval(times[i], times[0]))});
  }
}

void run_models(const ModelSettings& settings) {
  if (settings.type == "bf16" && !has_fast_bfloat16())
    fail_usage("--type bf16 needs a CPU with bf16 products (AVX-512 BF16 or AMX); use --type fp32");
  at::set_num_threads(static_cast<int>(settings.threads));
  const bool bf16 = settings.type == "bf16";
  if (!settings.worker.empty())
    return serve(settings, {settings.sizes[0], settings.patch, settings.routings[0], settings.batches[0], bf16});
  const Peaks peaks = Peaks::of_active_isa();
  std::printf("%s\n%s; ViT of patch %ld at %ld pixels, %s, ms; ratio: %s\n", machine_line(measure_peaks(peaks)).c_str(),
              settings.training ? "training step" : "forward pass", settings.patch, kSide, settings.type.c_str(),
              interval_note(static_cast<int>(settings.rounds)).c_str());
  print_header(
      {"size", "MLPs", "batch", "ours", "multiply-adds at peak / ours", cat("time / that of ", settings.routings[0])});
  InterferenceWatch watch;
  for (const std::string& size : settings.sizes)
    for (const int64_t batch : settings.batches) {
      std::vector<ModelCase> cases;
      for (const std::string& routing : settings.routings)
        cases.push_back({size, settings.patch, routing, batch, bf16});
      print_models(settings, cases, peaks);
    }
  watch.print();
}

void add_table(CLI::App& app, ModelSettings defaults) {
  const auto settings = std::make_shared<ModelSettings>(std::move(defaults));
  declare_models(app, *settings);
  app.callback([settings] { run_models(*settings); });
}

}  // namespace

void add_models_bench(CLI::App& app) {
  app.description("Times forward passes of whole vision transformers, dense and routed.");
  add_table(
      app,
      {.sizes = {"12x384", "12x192", "6x64"}, .routings = {"dense", "top1", "top2", "mobile"}, .batches = {1, 32}});
}

void add_train_bench(CLI::App& app) {
  app.description("Times training steps of whole vision transformers, dense and routed.");
  add_table(app, {.sizes = {"12x384"},
                  .routings = {"dense", "top1", "top2", "gmoe"},
                  .batches = {16},
                  .patch = 16,
                  .rounds = 7,
                  .training = true});
}

}  // namespace sparsight::bench
