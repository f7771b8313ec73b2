#include "sparsight/train/train_run.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>

#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/catalogue/dist_options.h"
#include "sparsight/catalogue/model_sections.h"
#include "sparsight/core/config.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/private_folder.h"
#include "sparsight/core/toml.h"
#include "sparsight/data/data_info_json.h"
#include "sparsight/eval/records.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/part_files.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/report.h"
#include "sparsight/report/run/explain_folder.h"
#include "sparsight/report/run/superclass_folder.h"
#include "sparsight/report/table.h"
#include "sparsight/train/extend_run.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/trainer.h"

namespace sparsight {
namespace {

constexpr size_t kShownChanges = 5;
constexpr size_t kSharedPiece = size_t{1} << 24;

void print_result(const RunFolder& folder, std::ostream& out) {
  out << result_table(read_run_metrics(folder.metrics())) << "run folder: " << printable(folder.path())
      << "\nreport: " << printable(folder.report()) << "\n";
}

void run_to_the_end(Trainer& trainer, std::ostream& out, GoOn go_on, const dist::Group& group) {
  const RunFolder& folder = trainer.folder();
  const TrainingEnd end = trainer.run();
  if (end == TrainingEnd::interrupted)
    fail("interrupted after step ", trainer.step(),
         go_on == GoOn::resume_flag ? "; resume with: sparsight train --resume " + printable(folder.path())
                                    : "; run the same command again to continue");
  if (!group.leads()) return;
  write_report(folder.path());
  print_result(folder, out);
}

// What the metadata of the last checkpoint says, or an empty object: then reading the checkpoint says what is wrong.
Json last_metadata(const RunFolder& folder, const std::string& name) {
  return try_parse_json_object(read_checkpoint_metadata(folder.checkpoint("last"))[name]).value_or(Json::object());
}

// The division into super-classes that the run began with: that of its checkpoint or, before the first one, of its
// folder. Null: the folder is of a version that did not write it, or was begun without super-classes.
std::optional<std::vector<int64_t>> recorded_superclasses(const RunFolder& folder) {
  if (folder.has_checkpoint("last")) {
    const Json state = last_metadata(folder, "state");
    if (!state.contains("data")) return std::nullopt;
    return data_info_from(state.at("data")).super_class_of;
  }
  if (std::filesystem::exists(folder.superclasses())) return read_superclass_map(folder.superclasses());
  return std::nullopt;
}

// Somebody removed the last checkpoint: a run writes it before the first best one.
[[noreturn]] void fail_without_last(const RunFolder& folder, GoOn go_on) {
  fail(printable(folder.checkpoint("last")), " is missing, so this run cannot be resumed. ",
       go_on == GoOn::resume_flag
           ? "Start a new run from its best weights with --init-from " + printable(folder.checkpoint("best")) +
                 ", or train it again from the start with --overwrite"
           : "Remove the folder " + printable(folder.path()) + " and run the same command again");
}

// The run's steps have the same batches on any number of ranks. Returns how many of them are this rank's.
int64_t batches_per_rank(const RunFolder& folder, int64_t configured, int64_t ranks) {
  constexpr double kMost = 1e9;
  const Json config = last_metadata(folder, "config"), state = last_metadata(folder, "state");
  // What is not there or not a number is of an older version, or reading the checkpoint says what is wrong.
  const double per_rank = number(member(config, "train"), "accumulate").value_or(0),
               before = number(state, "ranks").value_or(1);
  if (!(per_rank >= 1 && per_rank <= kMost && before >= 1 && before <= kMost)) return configured;
  const int64_t all = static_cast<int64_t>(per_rank) * static_cast<int64_t>(before);
  if (all % ranks != 0)
    fail_usage("the steps of ", printable(folder.path()), " have ", all, all == 1 ? " batch" : " batches",
               ", which cannot be shared out equally over ", ranks, " processes; resume with ", before,
               " or another number that divides it");
  if (all / ranks != configured)
    log_info("each of the ", ranks, ranks == 1 ? " process" : " processes",
             " goes on with train.accumulate = ", all / ranks, ": the run began with ", all, " batches per step");
  return all / ranks;
}

// The same bits as an uninterrupted run need the same settings. What to do about NaN does not change them,
// train.accumulate follows from the number of ranks (batches_per_rank), and which rank has which experts may change as
// that number does, and the form of checkpoints at any time.
void check_unchanged(const Json& config, const RunFolder& folder) {
  const Json saved = last_metadata(folder, "config"), before = saved.flatten(), now = config.flatten();
  std::vector<std::string> changes;
  const Json& weights = member(member(config, "train"), "class_weights");
  Json earlier = member(member(saved, "train"), "class_weights");
  if (earlier.is_null()) earlier = "none";  // runs from before there was a choice
  if (earlier.type() != weights.type() || (weights.is_string() && earlier != weights))  // a list has other keys
    changes.push_back(cat("train/class_weights is ", weights.dump(), ", was ", earlier.dump()));
  for (const auto& [key, value] : now.items())
    if (before.contains(key) && before[key] != value && key != "/train/on_nan" && key != "/train/accumulate" &&
        key != "/dist/expert_parallel" && key != "/dist/checkpoint_parts" &&
        !(key == "/train/epochs" && was_extended(folder, before[key], value)))
      changes.push_back(cat(key.substr(1), " is ", value.dump(), ", was ", before[key].dump()));
  if (changes.empty()) return;
  const size_t count = changes.size();
  if (count > kShownChanges) changes.resize(kShownChanges);
  fail(folder.config(), " was changed after the last checkpoint: ", join(changes),
       count > kShownChanges ? cat(" and ", count - kShownChanges, " more") : "",
       "; undo that, or go on with --allow-changed-config");
}

// What a rank writes into: rank 0 into the run's folder, another one into a folder of its own.
class RankFolder {
 public:
  RankFolder(const dist::Group& group, const std::string& path) : run_(path) {
    if (!group.leads()) private_.emplace("sparsight-rank");
    path_ = private_ ? private_->path() + "/run" : path;
  }
  const std::string& path() const { return path_; }

  // Where ranks write checkpoints together, or have done so, all of them have those of the run's folder. Raises Error
  // where one does not see it.
  void share_checkpoints(dist::Group& group, RunFolder& folder, bool together) const {
    const auto has_index = [&](const char* name) {
      return std::filesystem::exists(part_index(folder.checkpoint_file(name)));
    };
    if (group.size() == 1 || !group.any(together || (group.leads() && (has_index("last") || has_index("best")))))
      return;
    folder.use_checkpoints_of(run_);
    const std::filesystem::path file = folder.checkpoint_file("last");
    const std::string mark = group.leads() ? temporary_name(file) : "";
    if (group.leads()) std::ofstream(mark).flush();
    const std::string name = group.broadcast(std::filesystem::path(mark).filename().string());
    const bool sees = std::filesystem::exists(file.parent_path() / name);
    const std::vector<std::string> seen = group.all_gather_bytes(sees ? "yes" : "");
    if (group.leads()) std::filesystem::remove(mark);
    if (const auto blind = std::ranges::find(seen, ""); blind != seen.end())
      fail("rank ", blind - seen.begin(), " does not see the checkpoints of rank 0 in ", printable(run_),
           "; give all ranks a folder on a disk that they share, or set dist.checkpoint_parts = false");
  }

  // Gives the other ranks rank 0's files.
  void share(dist::Group& group) const {
    if (group.size() == 1) return;
    std::filesystem::create_directories(path_ + "/checkpoints");
    for (const char* const name : {"config.toml", "extensions.json", "env.json", "superclasses.txt",
                                   "checkpoints/last.safetensors", "checkpoints/best.safetensors", "metrics.jsonl"}) {
      const std::string file = path_ + "/" + name;
      const bool there = group.leads() && std::filesystem::exists(file);
      if (group.any(there)) share(group, file);
    }
  }

 private:
  // Piece by piece: a checkpoint with the experts of all ranks may be larger than the memory of one.
  static void share(dist::Group& group, const std::string& file) {
    std::optional<Descriptor> from;
    if (group.leads()) from = open_for_reading(file);
    const size_t bytes = from ? size_of_file(*from, file) : 0;
    std::optional<AtomicFile> to;
    if (!group.leads()) to.emplace(file);
    for (size_t at = 0;; at += kSharedPiece) {
      std::string piece(at < bytes ? std::min(kSharedPiece, bytes - at) : 0, '\0');
      if (!piece.empty()) read_all_at(from->get(), piece.data(), piece.size(), at, file);
      piece = group.broadcast(piece);
      if (piece.empty()) break;
      if (to) to->write(piece);
    }
    if (to) to->commit();
  }

  std::optional<PrivateFolder> private_;
  std::string run_, path_;
};

// Raises Error where the ranks were started with different programs or configurations.
void check_same_run(dist::Group& group, const Json& config) {
  if (group.size() == 1) return;
  const Json environment = describe_environment();
  for (const char* const what : {"sparsight", "torch"})
    dist::check_same(group, cat("version of ", what), environment[what].dump());
  Json shared = config;  // where data is, and how many threads there are, may differ between hosts
  shared["run"].erase("threads");
  if (shared.contains("data")) shared["data"].erase("root");
  dist::check_same(group, "configuration", shared.dump());
}

}  // namespace

void start_training(const Json& config, const std::string& path, bool overwrite, std::ostream& out, GoOn go_on,
                    const dist::GroupPtr& group) {
  check_same_run(*group, config);
  const RankFolder place(*group, path);
  if (group->restarts() > 0 && group->any(group->leads() && std::filesystem::exists(path + "/env.json")))
    return resume_training(path, {.go_on = go_on}, out, group);
  TrainingSetup setup = make_training_setup(config, /*fresh=*/true, std::nullopt, group);
  RunFolder folder = RunFolder::create(place.path(), overwrite ? IfExists::kOverwrite : IfExists::kRefuse);
  place.share_checkpoints(*group, folder, dist_options(setup.config).checkpoint_parts);
  if (overwrite) {  // what was made of the earlier weights
    remove_explanations(folder.path());
    remove_run_records(folder.path());
    remove_superclasses(folder.path());
  }
  write_file_atomically(folder.env(), describe_environment().dump(2) + "\n");
  if (!setup.data.super_class_of.empty()) write_superclass_map(folder.superclasses(), setup.data.super_class_of);
  write_file_atomically(folder.config(), to_toml(setup.config));
  Trainer trainer(std::move(setup), std::move(folder));
  run_to_the_end(trainer, out, go_on, *group);
}

void resume_training(const std::string& path, const ResumeOptions& options, std::ostream& out,
                     const dist::GroupPtr& group) {
  const RankFolder place(*group, path);
  std::optional<RunFolder> opened;  // and locked
  if (group->leads()) opened = RunFolder::create(path, IfExists::kResume);
  if (group->leads() && options.more_epochs > 0) extend_run(*opened, options.more_epochs);
  if (group->any(opened && opened->is_done())) {  // not an error: a job that is restarted must end at some point
    if (!group->leads()) return;
    log_info("the run ", path, " is finished; to train it for 5 more epochs: --set train.epochs=+5");
    write_report(opened->path());
    print_result(*opened, out);
    return;
  }
  place.share(*group);
  if (!opened) opened = RunFolder::create(place.path(), IfExists::kResume);
  RunFolder folder = std::move(*opened);
  if (group->leads()) warn_of_other_kernels(folder.env());
  Config config = Config::from_text(read_file(folder.config(), kMaxConfigBytes), folder.config());
  check_trained_names(config.tree(), config_sections());
  const Json resolved = resolve(config, config_sections());
  place.share_checkpoints(*group, folder, dist_options(resolved).checkpoint_parts);
  const bool fresh = !folder.has_checkpoint("last");
  if (fresh && folder.has_checkpoint("best")) fail_without_last(folder, options.go_on);
  if (!fresh) {
    const int64_t configured = resolved["train"]["accumulate"].get<int64_t>(),
                  own = batches_per_rank(folder, configured, group->size());
    if (!options.allow_changed_config) check_unchanged(resolved, folder);
    config.set(cat("train.accumulate=", own));
  }
  if (!options.on_nan.empty()) config.set("train.on_nan=" + options.on_nan);
  TrainingSetup setup =
      make_training_setup(resolve(config, config_sections()), fresh, recorded_superclasses(folder), group);
  Trainer trainer(std::move(setup), std::move(folder));
  trainer.resume();
  run_to_the_end(trainer, out, options.go_on, *group);
}

}  // namespace sparsight
