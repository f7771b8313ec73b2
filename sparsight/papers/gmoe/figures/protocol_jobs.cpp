#include "sparsight/papers/gmoe/figures/protocol_jobs.h"

#include <algorithm>
#include <map>
#include <mutex>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/data/domainbed/domainbed.h"
#include "sparsight/dg/results/result_table.h"
#include "sparsight/dg/sweep.h"
#include "sparsight/eval/statistics.h"

namespace sparsight::gmoe {
namespace {

// On the images trained on, after the last step.
double training_accuracy(const DgResult& result, int64_t left_out) {
  const std::vector<double>& in = result.evaluations.back().in;
  std::vector<double> trained;
  for (size_t e = 0; e < in.size(); ++e)
    if (static_cast<int64_t>(e) != left_out) trained.push_back(100 * in[e]);
  return mean(trained);
}

// The images that accuracies on the environments `left_out` are over: their "in" images, DomainBed's choice.
int64_t test_images(const DgRun& run, const std::vector<int64_t>& left_out) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<int64_t>> known;  // images of each environment
  DomainBedOptions options;
  OptionSet set;
  options.declare(set);
  Json data = dg_config(run).at("data");
  data.erase("name");
  assign(set, data, "data");
  const std::lock_guard lock(mutex);
  std::vector<int64_t>& sizes = known[cat(run.set, "|", run.root)];
  if (sizes.empty()) {
    const DataSetPtr all = domainbed_environments(options, 0);
    sizes.resize(all->info().domains.size());
    for (int64_t i = 0; i < all->size(); ++i) ++sizes.at(static_cast<size_t>(all->domain(i)));
  }
  int64_t images = 0;
  for (const int64_t e : left_out)
    images += std::ssize(holdout_split(sizes.at(static_cast<size_t>(e)), options.holdout, 0, e, options.limit).in);
  return images;
}

}  // namespace

void ProtocolOptions::declare(OptionSet& set) {
  repeats.declare(set);
  set.integer("steps", &steps, {1, 1000000}, "updates of each training; published: 5001");
  set.integer("eval_every", &eval_every, {1, 1000000}, "updates between evaluations, among which validation chooses");
  set.integer("images", &images, {0, 1000000}, "images of each environment; 0: all");
  set.integer("batch", &batch, {1, 100000}, "images of a step from each training environment");
  set.choice("precision", &precision, {"fp32", "bf16", "auto"}, "of training; auto: bf16 where the CPU has it");
}

void ProtocolVit::declare(OptionSet& set) {
  set.integer("side", &side, {8, 4096}, "side of the images in pixels");
  set.integer("width", &width, {1, 4096}, "width of the transformers");
  set.integer("depth", &depth, {1, 100}, "blocks");
  set.integer("heads", &heads, {1, 256}, "attention heads");
  set.integer("patch", &patch, {1, 256}, "patch size in pixels");
  set.real("lr", &lr, {0, 1000}, "learning rate of Adam");
}

DgRun protocol_run(const std::string& set, const std::string& root, const ProtocolOptions& options) {
  DgRun run;
  run.set = set, run.root = root;
  run.steps = options.steps, run.eval_every = options.eval_every;
  if (options.images > 0) run.overrides.push_back(cat("data.limit=", options.images));
  run.overrides.push_back(cat("loader.batch=", options.batch));
  if (options.precision != "fp32") run.overrides.push_back("train.precision=" + options.precision);
  return run;
}

void use_vit(DgRun& run, const ProtocolVit& vit) {
  run.image_size = vit.side;
  for (const std::string& setting :
       {std::string("model.size=custom"), cat("model.width=", vit.width), cat("model.depth=", vit.depth),
        cat("model.heads=", vit.heads), cat("model.patch=", vit.patch), cat("optimizer.lr=", vit.lr)})
    run.overrides.push_back(setting);
}

std::vector<std::string> protocol_notes(const ProtocolOptions& options, const FigureRun& run) {
  const std::string images = options.images > 0 ? cat("at most ", options.images) : "all";
  return {
      cat("Trials: ", options.repeats.trials, ". Updates: ", options.steps, ", evaluated every ", options.eval_every,
          ". Images of each environment: ", images, "; of a step from each training environment: ", options.batch,
          ". Precision: ", options.precision,
          ". Otherwise DomainBed's protocol: each trial splits and trains anew, a fifth of each environment validates, "
          "and the accuracies are those of the evaluation with the best validation on the training environments; "
          "default hyper-parameters, no search."),
      cat("The average is over all environments in each trial. DomainBed's table of the same runs, with standard "
          "errors: sparsight dg table ",
          run.folder, "/runs")};
}

std::vector<Json> environment_jobs(const std::vector<Json>& rows, const std::vector<std::string>& environments,
                                   const Repeats& repeats) {
  std::vector<Json> jobs;
  for (const Json& row : rows) {
    for (const std::string& environment : environments) {
      jobs.push_back(row);
      jobs.back()["environment"] = environment;
    }
    jobs.push_back(row);
    jobs.back()["environment"] = kAverage;
  }
  return with_seeds(jobs, repeats);
}

Json measure_environment(const std::vector<DgRun>& runs, const std::vector<std::string>& environments, const Json& job,
                         const FigureRun& run) {
  SPARSIGHT_CHECK(runs.size() == environments.size());
  const JobStore store(run.folder + "/runs", "runs of a figure by the protocol of DomainBed");
  std::vector<DgResult> results;
  std::vector<int64_t> left_out;
  std::vector<double> trained;
  for (size_t e = 0; e < runs.size(); ++e) {
    if (job.at("environment") != kAverage && job.at("environment") != environments[e]) continue;
    left_out.push_back(static_cast<int64_t>(e));
    results.push_back(train_in_store(runs[e], store));
    trained.push_back(training_accuracy(results.back(), left_out.back()));
  }
  const TrialAccuracies accuracies = trial_accuracies(pointers_to(results), SelectionRule::training_domains, left_out);
  const DgCost cost = results.front().cost.value_or(DgCost());
  return {{"accuracy", trial_averages(accuracies).at(job.at("seed"))},
          {"test_images", test_images(runs.front(), left_out)},
          {"train_accuracy", mean(trained)},
          {"active_parameters", static_cast<double>(cost.active_parameters) / 1e3},
          {"multiply_adds", static_cast<double>(cost.multiply_adds) / 1e6}};
}

Json measure_against(const std::vector<DgRun>& runs, const std::vector<DgRun>& baseline,
                     const std::vector<std::string>& environments, const Json& job, const FigureRun& run) {
  const auto accuracy = [](const Json& result) { return result.at("accuracy").get<double>(); };
  Json result = measure_environment(runs, environments, job, run);
  result["difference"] = nullptr;
  if (!baseline.empty())
    result["difference"] = accuracy(result) - accuracy(measure_environment(baseline, environments, job, run));
  return result;
}

double protocol_seconds(const Json& job, const ProtocolOptions& options, size_t environments,
                        double images_per_second) {
  constexpr double kReading = 0.1;  // of results that are there
  if (job.at("environment") == kAverage) return kReading;
  return kReading +
         static_cast<double>(options.steps * options.batch) * static_cast<double>(environments - 1) / images_per_second;
}

}  // namespace sparsight::gmoe
