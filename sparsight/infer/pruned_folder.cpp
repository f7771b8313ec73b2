#include "sparsight/infer/pruned_folder.h"

#include <filesystem>
#include <optional>

#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/toml.h"
#include "sparsight/io/atomic_folder.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/io/shard_index.h"
#include "sparsight/models/pruned_config.h"

namespace sparsight {
namespace {

// The run folder that the checkpoint is from; nothing for a checkpoint by itself.
std::optional<RunFolder> source_folder(const std::string& source) {
  if (!std::filesystem::is_directory(source) || is_sharded(source)) return std::nullopt;
  return RunFolder::open(source);
}

// The last checkpoint of the source without the experts; nothing where it cannot be trained further.
// Later evaluations are compared with that of the pruned weights.
std::optional<Checkpoint> pruned_last(const std::optional<RunFolder>& source, const PrunedFolder& folder,
                                      const ExpertPruner& pruner, int64_t blocks) {
  if (!source || !source->has_checkpoint("last")) return std::nullopt;
  const Checkpoint last = read_checkpoint(source->checkpoint("last"));
  if (const auto foreign = pruner.find_foreign_shape(last.training)) {
    log_warning("the pruned run cannot be resumed: the optimiser keeps ", printable(*foreign),
                " in another shape than that of the parameter; train it further with --init-from");
    return std::nullopt;
  }
  Checkpoint pruned = pruned_checkpoint(last, pruner, blocks);
  if (const auto progress = pruned.state.find("progress"); progress != pruned.state.end() && progress->is_object()) {
    (*progress)["best_accuracy"] = folder.split == "val" ? folder.evaluation.accuracy : -1;
    (*progress)["evaluations_since_best"] = 0;
  }
  return pruned;
}

void write_log(const PrunedFolder& folder, const LoadedModel& loaded, const RunFolder& run, const Cost& cost,
               bool done) {
  MetricsLog log(run.metrics(), 0);
  log.write({{"kind", "note"},
             {"step", loaded.step},
             {"text", "experts were removed from the run " + printable(folder.source)}});
  log.write(metrics_line(folder.evaluation, folder.split, loaded.weights, loaded.step));
  if (!done) return;
  log.write({{"kind", "done"},
             {"step", loaded.step},
             {"best_step", loaded.step},
             {"seconds", number(member(folder.best.state, "progress"), "seconds").value_or(0)},
             {"parameters", cost.parameters},
             {"active_parameters", cost.active_parameters},
             {"multiply_adds", cost.multiply_adds}});
}

// What env.json of a pruned run says of it; null where there is none.
Json pruned_provenance(const std::string& out) {
  constexpr size_t kMaxEnvironmentBytes = 16 << 20;
  const std::string file = out + "/env.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return {};
  const Json environment = Json::parse(read_file(file, kMaxEnvironmentBytes), nullptr, false);
  return member(environment, "pruned");
}

[[noreturn]] void fail_exists(const std::string& out) {
  fail(printable(out), " exists already; choose another folder with --out");
}

}  // namespace

Checkpoint pruned_checkpoint(const Checkpoint& checkpoint, const ExpertPruner& pruner, int64_t blocks) {
  return {pruner.prune(checkpoint.weights), pruner.prune(checkpoint.training),
          config_with_experts(checkpoint.config, pruner.experts(), blocks), checkpoint.state};
}

void check_out(const std::string& out) {
  std::error_code error;
  const bool exists = std::filesystem::exists(std::filesystem::symlink_status(out, error));
  if (exists && !(std::filesystem::is_directory(out, error) && std::filesystem::is_empty(out, error)) &&
      pruned_provenance(out).is_null())
    fail_exists(out);
}

void write_pruned_folder(const PrunedFolder& folder, const LoadedModel& loaded, const ExpertPruner& pruner,
                         int64_t blocks) {
  const std::optional<RunFolder> source = source_folder(folder.source);
  const std::optional<Checkpoint> last = pruned_last(source, folder, pruner, blocks);
  const bool done = !last || source->is_done();
  if (const Json earlier = pruned_provenance(folder.out); !earlier.is_null()) {
    if (earlier != folder.provenance) fail_exists(folder.out);
    return;
  }
  std::error_code ignored;
  std::filesystem::remove(folder.out, ignored);  // where it is empty
  AtomicFolder made(folder.out);
  create_folder(made.aside() + "/checkpoints");
  write_file_atomically(made.aside() + "/config.toml", to_toml(last ? last->config : folder.best.config));
  const RunFolder run = RunFolder::open(made.aside());
  Json environment = describe_environment();
  environment["pruned"] = folder.provenance;
  write_file_atomically(run.env(), environment.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  if (!loaded.data.super_class_of.empty()) write_superclass_map(run.superclasses(), loaded.data.super_class_of);
  if (last) write_checkpoint(run.checkpoint_file("last"), *last);
  write_checkpoint(run.checkpoint_file("best"), folder.best);
  write_log(folder, loaded, run, total(loaded.model->cost({})), done);
  if (done) run.mark_done();
  made.commit();
}

}  // namespace sparsight
