#include "bench/attacks/attack_bench.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include <nlohmann/json.hpp>

#include "bench/attacks/attacked_vit.h"
#include "bench/limits/peak.h"
#include "bench/measure/interference.h"
#include "bench/measure/ratio_interval.h"
#include "bench/measure/rounds.h"
#include "bench/measure/table.h"
#include "bench/measure/worker.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/ops/caching_allocator.h"

namespace sparsight::bench {
namespace {

constexpr int kOneLoad = 1;  // attacks take seconds

struct AttackBenchSettings {
  ModelCase which{.size = "12x192", .batch = 32};
  int64_t steps = 10, threads = 2, rounds = 7;
  int64_t targets = 3, targeted_steps = 3, leaving_rounds = 5;  // some seconds a round
  double epsilon = 1;                                           // in 255ths, of the attack that images leave
  std::string worker;
};

Timed plain(std::function<void()> work) {
  return {[work = std::move(work)](int) { work(); }};
}

void pass_rows(AttackedVit& vit, const AttackBenchSettings& settings, const Peak& peak) {
  const auto erm = vit.algorithm("erm", 0), pgd = vit.algorithm("pgd_training", settings.steps);
  // Takes as many gradients as the attack does, so that both last as long.
  const auto gradients = [&] {
    for (int64_t i = 0; i < settings.steps; ++i) vit.input_gradient();
  };
  const RoundTimes times = time_rounds({plain(gradients),
                                        plain([&] { vit.attack(settings.steps); }),
                                        plain([&] { vit.update(*erm); }),
                                        plain([&] { vit.update(*pgd); }),
                                        {[&](int) { peak.run(); }, [&] { return peak.seconds(); }}},
                                       settings.rounds, kOneLoad);
  // A pass back to the pixels costs as many multiply-adds as the forward pass: none are for gradients of weights.
  const auto k = static_cast<double>(settings.steps);
  std::vector<double> limit, parts;
  for (size_t i = 0; i < times[0].size(); ++i) {
    limit.push_back(k * 2 * vit.operations() / peak.operations() * times[4][i]);
    parts.push_back(times[1][i] + times[2][i]);
  }
  const std::string steps = std::to_string(settings.steps);
  print_header({"work on " + std::to_string(vit.images()) + " images", "ms", "compared with", "ratio"});
  print_row({"forward + input gradient", milliseconds(median(times[0]) / k), "multiply-adds at peak (limit / ours)",
             text(ratio_interval(limit, times[0]))});
  print_row({"PGD of " + steps + " steps", milliseconds(median(times[1])), steps + " x forward + input gradient",
             text(ratio_interval(times[1], times[0]))});
  print_row({"pgd_training of " + steps + " steps", milliseconds(median(times[3])), "PGD, and a step of erm",
             text(ratio_interval(times[3], parts))});
}

void leaving_rows(AttackedVit& vit, const AttackBenchSettings& settings) {
  const double epsilon = settings.epsilon / 255;
  AttackResult left, stayed;
  const auto attack = [&](bool leave) {
    return vit.targeted(settings.targets, settings.targeted_steps, epsilon, leave);
  };
  const RoundTimes times = time_rounds({plain([&] { left = attack(true); }), plain([&] { stayed = attack(false); })},
                                       settings.leaving_rounds, kOneLoad);
  const int64_t robust = left.correct.sum().item<int64_t>();
  print_header({"APGD-T, " + std::to_string(settings.targets) + " classes", "ms", "gradients per image",
                "robust images", "all images / this"});
  const auto row = [&](const char* name, const std::vector<double>& own, const AttackResult& result,
                       const std::string& ratio) {
    const double gradients = static_cast<double>(result.cost.gradients) / static_cast<double>(vit.images());
    print_row({name, milliseconds(median(own)), whole(gradients), std::to_string(result.correct.sum().item<int64_t>()),
               ratio});
  };
  row("fooled images leave", times[0], left, text(ratio_interval(times[1], times[0])));
  row("all images until none is robust", times[1], stayed, "1");
  if (robust == vit.images()) std::printf("No image was fooled: raise --epsilon\n");
}

// One process of bench/peers/models.py: the answers are JSON, a line each.
void serve_gradients(const AttackBenchSettings& settings, const Peaks& peaks) {
  const OurModel model(settings.which);
  model.save(settings.worker + "/model.safetensors");
  AttackedVit vit(settings.which);
  vit.use_labels(model.labels());
  write_safetensors(settings.worker + "/ours.safetensors", {{{"gradient", vit.input_gradient().contiguous()}}, {}});
  std::cout << Json{{"machine", machine_line(measure_peaks(peaks))}, {"operations", 2 * vit.operations()}} << std::endl;
  answer_runs([&] { vit.input_gradient(); }, [&] { return measure_peaks(peaks).for_fp32(); });
}

void run_attack_bench(const AttackBenchSettings& settings) {
  // Before this process has threads.
  const double memory = settings.worker.empty() ? memory_per_image(settings.which, settings.threads) : 0;
  use_caching_allocator();  // as `sparsight` does
  at::set_num_threads(static_cast<int>(settings.threads));
  const Peaks peaks = Peaks::of_active_isa();
  if (!settings.worker.empty()) return serve_gradients(settings, peaks);
  const PeakRates rates = measure_peaks(peaks);
  std::printf("%s\nViT %s, patch %ld at %ld pixels, %s, fp32; ratio: %s\n", machine_line(rates).c_str(),
              settings.which.size.c_str(), settings.which.patch, kSide, settings.which.routing.c_str(),
              interval_note(static_cast<int>(settings.rounds)).c_str());
  InterferenceWatch watch;
  AttackedVit vit(settings.which);
  pass_rows(vit, settings, peaks.fp32);
  leaving_rows(vit, settings);
  std::printf("\nforward + input gradient: at most %.2f MiB per image beyond the loaded model\n", memory / (1 << 20));
  watch.print();
}

}  // namespace

void add_attack_bench(CLI::App& app) {
  const auto settings = std::make_shared<AttackBenchSettings>();
  app.description("Times attacks on a vision transformer, and training under attack.");
  app.add_option("--size", settings->which.size, "Size of the ViT, depth x width")->capture_default_str();
  app.add_option("--routing", settings->which.routing, "MLPs of the last two blocks")
      ->check(CLI::IsMember(routing_kinds()))
      ->capture_default_str();
  app.add_option("--patch", settings->which.patch, "Side of a patch; images have 224 pixels")->capture_default_str();
  app.add_option("--batch", settings->which.batch, "Images at once")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--steps", settings->steps, "Steps of PGD (k)")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--targets", settings->targets, "Classes of APGD-T")->check(CLI::Range(1, 999))->capture_default_str();
  app.add_option("--leaving-rounds", settings->leaving_rounds, "Number of rounds of APGD-T")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--targeted-steps", settings->targeted_steps, "Steps of APGD-T for each class")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--epsilon", settings->epsilon, "Epsilon of APGD-T, in 255ths")->capture_default_str();
  app.add_option("--threads", settings->threads, "Number of threads")->check(CLI::Range(1, 256))->capture_default_str();
  app.add_option("--rounds", settings->rounds, "Number of rounds")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--worker", settings->worker,
                 "Write the model into this folder, and time as many runs as each line of standard input says");
  app.callback([settings] { run_attack_bench(*settings); });
}

}  // namespace sparsight::bench
