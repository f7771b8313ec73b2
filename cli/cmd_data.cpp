#include <filesystem>
#include <iomanip>
#include <memory>
#include <mutex>

#include "cli/key_values.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/progress.h"
#include "sparsight/data/export_images.h"
#include "sparsight/data/fetch.h"
#include "sparsight/data/fingerprint.h"
#include "sparsight/data/locate.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/data/summary.h"
#include "sparsight/data/verify.h"

namespace sparsight::cli {
namespace {

// A dataset on the command line: a name or a path, and settings of the [data] section.
struct SetArguments {
  std::string what;
  std::vector<std::string> overrides;

  void declare(CLI::App* verb, const std::string& help) {
    verb->add_option("set", what, help)->type_name("SET|PATH")->required();
    verb->add_option("--set", overrides, "A setting of the dataset, as in [data]; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
  }

  LocatedSet locate() const {
    LocatedSet set = locate_set(what);
    const Json given = key_values(overrides);
    for (const auto& [key, value] : given.items()) set.settings[key] = value;
    return set;
  }

  // A single file rather than a dataset.
  bool is_file() const {
    std::error_code ignored;
    return std::filesystem::is_regular_file(what, ignored) && !what.ends_with(".csv");
  }
};

DataSplits open_set(const LocatedSet& set) { return data_sets().make(set.name, set.settings, "data", DataContext{}); }

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

void list_sets() {
  output() << "datasets ([data] name = ...):\n";
  for (const auto& entry : data_sets().entries())
    output() << "  " << std::left << std::setw(15) << entry.name << entry.summary << "\n";
  output() << "\ndownloadable (sparsight data fetch NAME):\n";
  for (const RemoteSet& set : remote_sets())
    output() << "  " << std::left << std::setw(15) << set.name << set.title << "\n"
             << std::string(17, ' ') << "licence: " << set.licence << "\n";
  output() << "\nfiles are searched for in " << data_home()
           << "/ (environment variable SPARSIGHT_DATA) or in data.root\n";
}

void add_inspect(CLI::App& app) {
  const auto arguments = std::make_shared<SetArguments>();
  CLI::App* verb = add_verb(app, "inspect", "Show counts, classes, domains and image sizes",
                            "sparsight data inspect mnist\n"
                            "sparsight data inspect my/photos\n"
                            "sparsight data inspect cifar100 --set labels=coarse\n"
                            "sparsight data inspect picture.png");
  arguments->declare(verb, "Name of a dataset, or a folder, manifest or single file");
  interruptible(verb, [arguments] {
    if (arguments->is_file())
      output() << describe_file(arguments->what) << "\n";
    else
      output() << summary_text(summarise(open_set(arguments->locate())));
  });
}

void add_verify(CLI::App& app) {
  const auto arguments = std::make_shared<SetArguments>();
  CLI::App* verb = add_verb(app, "verify", "Check every file and every image, and list all problems",
                            "sparsight data verify mnist\n"
                            "sparsight data verify my/photos");
  arguments->declare(verb, "Name of a dataset, or a folder, manifest or single file");
  interruptible(verb, [arguments] {
    if (arguments->is_file()) {
      output() << describe_file(arguments->what) << "\n";
      return;
    }
    LateProgress progress("verify", "images");
    const Verification result =
        verify_set(arguments->locate(), [&](int64_t done, int64_t total) { progress.update(done, total); });
    for (const std::string& problem : result.problems) output() << problem << "\n";
    if (!result.problems.empty())
      fail(arguments->what, ": ", result.problems.size(), result.problems.size() == 1 ? " problem" : " problems", ", ",
           result.images, " images are valid");
    output() << arguments->what << ": " << result.images << " images are valid";
    if (result.files > 0) output() << ", " << result.files << " files match their checksums";
    output() << "\n";
  });
}

void add_make(CLI::App& app) {
  struct Arguments {
    std::string folder, layout = "class", name = "glyphs";
    std::vector<std::string> overrides;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = add_verb(app, "make", "Write a dataset as PNG files (default: glyphs)",
                            "sparsight data make my/glyphs --set side=64 --set train=1000\n"
                            "sparsight data make my/glyph_domains --layout domain");
  verb->add_option("folder", arguments->folder, "Folder to create; must not exist")->type_name("FOLDER")->required();
  verb->add_option("--from", arguments->name, "Dataset to write: a name or a path")
      ->type_name("SET|PATH")
      ->capture_default_str();
  verb->add_option("--layout", arguments->layout, "class: train/class/image ...; domain: domain/class/image")
      ->check(CLI::IsMember({"class", "domain"}))
      ->capture_default_str();
  verb->add_option("--set", arguments->overrides, "A setting of the dataset, as in [data]; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  interruptible(verb, [arguments] {
    SetArguments set{arguments->name, arguments->overrides};
    LateProgress progress("make", "images");
    const int64_t images = export_images(open_set(set.locate()), arguments->folder, arguments->layout,
                                         [&](int64_t done, int64_t total) { progress.update(done, total); });
    log_info("wrote ", images, " images to ", arguments->folder);
  });
}

void add_fetch(CLI::App& app) {
  struct Arguments {
    std::string name, to, mirror, from;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = add_verb(app, "fetch", "Download a published dataset from its official URLs and verify it",
                            "sparsight data fetch mnist\n"
                            "sparsight data fetch cifar10 --to /big/disk/cifar10\n"
                            "sparsight data fetch mnist --from ~/Downloads/mnist");
  verb->add_option("name", arguments->name, "Dataset (see sparsight data list)")->type_name("NAME")->required();
  verb->add_option("--to", arguments->to, "Folder for the files (default: NAME in SPARSIGHT_DATA or data/)")
      ->type_name("FOLDER");
  verb->add_option("--mirror", arguments->mirror, "URL of a folder with the files, instead of the official one")
      ->type_name("URL");
  verb->add_option("--from", arguments->from, "Take the files from this folder instead of downloading them")
      ->type_name("FOLDER");
  interruptible(verb, [arguments] {
    const RemoteSet& set = find_remote_set(arguments->name);
    FetchOptions options{arguments->to, arguments->mirror, arguments->from, {}};
    if (options.to.empty()) options.to = data_home() + "/" + set.name;
    log_info(set.title, " (", set.home, ")");
    log_info("licence: ", set.licence);
    LateProgress progress("fetch", "bytes");
    options.download.progress = [&](int64_t done, int64_t total) {
      if (total > 0) progress.update(done, total);
    };
    fetch_set(set, options);
    output() << options.to << "\n";
  });
}

// "found, as published (fingerprint 0123456789abcdef)", or what is missing.
std::string state_of(const DataPlace& place, const std::string& folder) {
  try {
    const DataFingerprint found = data_fingerprint(place, folder);
    const char* kind = !found.published   ? "no published checksums are known"
                       : *found.published ? "as published"
                                          : "custom data: not the published files";
    return cat("found, ", kind, " (fingerprint ", found.hex, ")");
  } catch (const Error& error) {
    return error.what();
  }
}

void add_where(CLI::App& app) {
  const auto name = std::make_shared<std::string>();
  CLI::App* verb = add_verb(app, "where", "Show where a dataset's files go, and whether they are there",
                            "sparsight data where mnist");
  verb->add_option("name", *name, "Dataset (default: the folder of each)")->type_name("NAME");
  interruptible(verb, [name] {
    if (name->empty()) {
      for (const DataPlace& place : data_places())
        output() << std::left << std::setw(15) << place.name << printable(data_home()) << "/" << place.name << "\n";
      return;
    }
    const DataPlace& place = find_data_place(*name);
    const std::string folder = data_home() + "/" + place.name;
    output() << place.title << "\n"
             << "folder: " << printable(folder) << " (below SPARSIGHT_DATA, or data/ if that is not set)\n"
             << "files:  " << place.files << "\n"
             << "get:    " << place.get << "\n"
             << "state:  " << state_of(place, folder) << "\n";
  });
}

}  // namespace

void add_data(CLI::App& app) {
  CLI::App* verb = add_verb(app, "data", "Inspect, verify, generate and download datasets",
                            "sparsight data list\n"
                            "sparsight data inspect glyphs\n"
                            "sparsight data fetch mnist");
  verb->require_subcommand(1);
  add_verb(*verb, "list", "List the datasets, their licences and what they need", "sparsight data list")
      ->callback(list_sets);
  add_inspect(*verb);
  add_verify(*verb);
  add_make(*verb);
  add_fetch(*verb);
  add_where(*verb);
}

}  // namespace sparsight::cli
