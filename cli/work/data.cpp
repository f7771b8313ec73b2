#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <memory>
#include <mutex>

#include "cli/cmd_data.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/key_values.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/progress.h"
#include "sparsight/data/export_images.h"
#include "sparsight/data/fetch.h"
#include "sparsight/data/fingerprint.h"
#include "sparsight/data/locate.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/data/shards/write_shards.h"
#include "sparsight/data/summary.h"
#include "sparsight/data/verify.h"

namespace sparsight::cli {
namespace {

LocatedSet locate(const SetArguments& arguments) {
  LocatedSet set = locate_set(arguments.what);
  const Json given = key_values(arguments.overrides);
  for (const auto& [key, value] : given.items()) set.settings[key] = value;
  return set;
}

// A single file rather than a dataset.
bool is_file(const SetArguments& arguments) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(arguments.what, ignored) && !arguments.what.ends_with(".csv");
}

DataSplits open_set(const LocatedSet& set, const DataContext& context = {}) {
  return data_sets().make(set.name, set.settings, "data", context);
}

// Progress of a loop whose length is known only once it runs.
class LateProgress {
 public:
  LateProgress(std::string label, std::string unit) : label_(std::move(label)), unit_(std::move(unit)) {}
  void update(int64_t done, int64_t total) {
    const std::lock_guard lock(mutex_);
    if (!progress_) progress_ = std::make_unique<Progress>(label_, total, unit_);
    progress_->update(done);
    if (done == total) progress_.reset();
  }

 private:
  std::mutex mutex_;
  std::string label_, unit_;
  std::unique_ptr<Progress> progress_;
};

// "found, as published (fingerprint 0123456789abcdef)", or what is missing.
std::string state_text(const DataPlace& place, const std::string& folder) {
  try {
    const DataFingerprint found = data_fingerprint(place, folder);
    const std::string difference = place.difference ? place.difference(placed_files(place, folder)) : "";
    const std::string kind = !difference.empty() ? "not as published: " + difference
                             : !found.published  ? "no published checksums are known"
                             : *found.published  ? "as published"
                                                 : "custom data: not the published files";
    return cat("found, ", kind, " (fingerprint ", found.hex, ")");
  } catch (const Error& error) {
    return error.what();
  }
}

void print_remote(const std::vector<RemoteSet>& sets) {
  for (const RemoteSet& set : sets)
    output() << "  " << std::left << std::setw(15) << set.name << set.title << "\n"
             << std::string(17, ' ') << "licence: " << set.licence << "\n";
}

}  // namespace

void run_data_list() {
  output() << "datasets ([data] name = ...):\n";
  for (const auto& entry : data_sets().entries())
    output() << "  " << std::left << std::setw(15) << entry.name << entry.summary << "\n";
  output() << "\ndownloadable (sparsight data fetch NAME):\n";
  print_remote(remote_sets());
  output() << "\npretrained weights (sparsight data fetch NAME), for train.init_from:\n";
  print_remote(remote_weights());
  output() << "\nfiles are searched for in " << data_home()
           << "/ (environment variable SPARSIGHT_DATA) or in data.root\n";
}

void run_data_inspect(const SetArguments& arguments) {
  begin_interruptible_work();
  if (is_file(arguments))
    output() << describe_file(arguments.what) << "\n";
  else
    output() << summary_text(summarise(open_set(locate(arguments))));
}

void run_data_verify(const SetArguments& arguments) {
  begin_interruptible_work();
  if (is_file(arguments)) {
    output() << describe_file(arguments.what) << "\n";
    return;
  }
  LateProgress progress("verify", "images");
  const Verification result =
      verify_set(locate(arguments), [&](int64_t done, int64_t total) { progress.update(done, total); });
  for (const std::string& problem : result.problems) output() << problem << "\n";
  if (result.interrupted)
    fail(arguments.what, ": interrupted after ", result.looked_at, " images, of which ", result.images,
         " are valid; run the same command again to look at all of them");
  if (!result.problems.empty())
    fail(arguments.what, ": ", result.problems.size(), result.problems.size() == 1 ? " problem" : " problems", ", ",
         result.images, " images are valid");
  output() << arguments.what << ": " << result.images << " images are valid";
  if (result.files > 0) output() << ", " << result.files << " files match their checksums";
  output() << "\n";
}

void run_data_make(const DataMakeArguments& arguments) {
  begin_interruptible_work();
  LateProgress progress("make", "images");
  const int64_t images = export_images(open_set(locate(arguments.set)), arguments.folder, arguments.layout,
                                       [&](int64_t done, int64_t total) { progress.update(done, total); });
  log_info("wrote ", images, " images to ", arguments.folder);
}

void run_data_shard(const DataShardArguments& arguments) {
  begin_interruptible_work();
  ShardOptions options{.folder = arguments.folder, .shuffled = arguments.order == "shuffle", .seed = arguments.seed};
  set_shard_size(options, arguments.size);
  const DataSplits splits = open_set(locate(arguments.set), {arguments.seed});
  const bool is_alone = splits.test == splits.validation;  // one of the two stands for the other
  std::vector<std::pair<std::string, DataSetPtr>> parts{{"train", splits.train}};
  if (!is_alone || splits.missing == "test") parts.push_back({"validation", splits.validation});
  if (!is_alone || splits.missing == "validation") parts.push_back({"test", splits.test});
  const auto wanted = [&](const std::string& name) {
    return arguments.splits.empty() || std::ranges::find(arguments.splits, name) != arguments.splits.end();
  };
  for (const std::string& name : arguments.splits)
    if (std::ranges::find(parts, name, &std::pair<std::string, DataSetPtr>::first) == parts.end())
      fail_usage("--split ", name, ": ", splits.train->info().name, " has no such split");
  std::erase_if(parts, [&](const auto& part) { return !wanted(part.first); });
  LateProgress progress("shard", "images");
  const WrittenShards written =
      write_shards(parts, options, [&](int64_t done, int64_t total) { progress.update(done, total); });
  log_info("wrote ", written.images, " images in ", written.shards, written.shards == 1 ? " shard to " : " shards to ",
           arguments.folder, written.kept > 0 ? cat(" (", written.kept, " were there already)") : "");
}

void run_data_fetch(const DataFetchArguments& arguments) {
  begin_interruptible_work();
  const RemoteSet& set = find_remote_set(arguments.name);
  FetchOptions options{arguments.to, arguments.mirror, arguments.from, {}};
  if (options.to.empty()) options.to = data_home() + "/" + usual_folder(set);
  log_info(set.title, " (", set.home, ")");
  log_info("licence: ", set.licence);
  LateProgress progress("fetch", "bytes");
  options.download.progress = [&](int64_t done, int64_t total) {
    if (total > 0) progress.update(done, total);
  };
  fetch_set(set, options);
  output() << options.to << "\n";
}

void run_data_where(const std::string& name) {
  begin_interruptible_work();
  if (name.empty()) {
    for (const DataPlace& place : data_places())
      output() << std::left << std::setw(15) << place.name << printable(place_folder(place, data_home())) << "\n";
    return;
  }
  const DataPlace& place = find_data_place(name);
  const std::string folder = place_folder(place, data_home());
  output() << place.title << "\n"
           << "folder: " << printable(folder) << " (below SPARSIGHT_DATA, or data/ if that is not set)\n"
           << "files:  " << place.files << "\n"
           << "get:    " << place.get << "\n"
           << "state:  " << state_text(place, folder) << "\n";
}

}  // namespace sparsight::cli
