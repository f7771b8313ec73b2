#include "sparsight/data/sets/celeba.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <unordered_set>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/data/readers/celeba.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/data/sets/image_files.h"

namespace sparsight {
namespace {

constexpr const char* kFolder = "img_align_celeba";

std::string read_text(const std::string& path) {
  const Bytes bytes = read_bytes(path, kMaxListBytes);
  return {bytes.begin(), bytes.end()};
}

// The class and domain of an image in a task; label -1: it is not used.
struct Kind {
  int64_t label = -1, domain = 0;
};

struct Task {
  std::vector<std::string> classes, domains;
  std::vector<Kind> image_kind;  // of each image
};

Task make_task(const CelebaTable& table, const std::string& name) {
  Task task;
  const size_t smiling = table.attribute("Smiling");
  task.classes = {"not smiling", "smiling"};
  task.domains = {"celeba"};
  task.image_kind.resize(table.images.size());
  const auto each = [&](const auto& kind) {
    for (size_t i = 0; i < table.images.size(); ++i) task.image_kind[i] = kind(i);
  };
  if (name == "spurious_hair") {
    const size_t black = table.attribute("Black_Hair"), blond = table.attribute("Blond_Hair");
    task.domains = {"black hair", "blond hair"};
    each([&](size_t i) {
      if (table.holds(i, black) == table.holds(i, blond)) return Kind{};
      return Kind{table.holds(i, smiling), table.holds(i, blond)};
    });
  } else if (name == "smiling_glasses") {
    const size_t glasses = table.attribute("Eyeglasses");
    task.classes = {"not smiling, eyeglasses", "smiling, eyeglasses", "smiling, no eyeglasses",
                    "not smiling, no eyeglasses"};
    each([&](size_t i) {
      if (table.holds(i, glasses)) return Kind{table.holds(i, smiling) ? 1 : 0};
      return Kind{table.holds(i, smiling) ? 2 : 3};
    });
  } else {
    each([&](size_t i) { return Kind{table.holds(i, smiling)}; });
  }
  return task;
}

// The fraction of a split that each kind makes up: [class][domain].
using Shares = std::vector<std::vector<double>>;

Shares even_shares(const Task& task) {
  const auto kinds = static_cast<double>(task.classes.size() * task.domains.size());
  return Shares(task.classes.size(), std::vector<double>(task.domains.size(), 1 / kinds));
}
Shares correlated_shares(double correlation) {
  const double often = correlation / 2, seldom = 0.5 - often;
  return {{seldom, often}, {often, seldom}};  // not smiling: mostly blond; smiling: mostly black
}

using Counts = std::vector<std::vector<int64_t>>;  // [class][domain]

constexpr const char* kParts[] = {"training", "validation", "test"};

// Which images of a split are used.
struct Choice {
  int part = 0;
  int64_t count = 0;  // 0: as many as the rarest kind allows
  Shares shares;
  std::string cells = "exact";
  int64_t block = 0;
};

Counts zero_counts(const Task& task) { return Counts(task.classes.size(), std::vector<int64_t>(task.domains.size())); }

// The images of each kind in a split: [class][domain][...].
std::vector<std::vector<std::vector<size_t>>> by_kind(const CelebaTable& table, const Task& task, int part) {
  std::vector<std::vector<std::vector<size_t>>> images(task.classes.size());
  for (auto& of_class : images) of_class.resize(task.domains.size());
  for (size_t i = 0; i < table.images.size(); ++i)
    if (const Kind& kind = task.image_kind[i]; kind.label >= 0 && table.part[i] == part)
      images[kind.label][kind.domain].push_back(i);
  return images;
}

// The largest number of images for which there are enough of each kind.
int64_t max_images(const std::vector<std::vector<std::vector<size_t>>>& there, const Shares& shares) {
  double maximum = 1e9;
  for (size_t label = 0; label < there.size(); ++label)
    for (size_t domain = 0; domain < there[label].size(); ++domain)
      if (shares[label][domain] > 0)
        maximum = std::min(maximum, static_cast<double>(there[label][domain].size()) / shares[label][domain]);
  return static_cast<int64_t>(maximum + 1e-9);
}

// The number of each kind among `count` images.
Counts wanted_counts(const Task& task, int64_t count, const Shares& shares) {
  Counts wanted = zero_counts(task);
  for (size_t label = 0; label < wanted.size(); ++label)
    for (size_t domain = 0; domain < wanted[label].size(); ++domain)
      wanted[label][domain] = std::llround(static_cast<double>(count) * shares[label][domain]);
  return wanted;
}

// "2375 smiling with black hair, ...".
std::string counts_text(const Task& task, const Counts& counts) {
  std::vector<std::string> parts;
  for (size_t label = counts.size(); label-- > 0;)
    for (size_t domain = 0; domain < counts[label].size(); ++domain)
      parts.push_back(cat(counts[label][domain], " ", task.classes[label], " with ", task.domains[domain]));
  return join(parts);
}

// Slices of the row of blocks, which start every `block` images.
std::vector<size_t> sliced(const std::vector<std::vector<std::vector<size_t>>>& there, const Counts& wanted,
                           int64_t block) {
  std::vector<const std::vector<size_t>*> blocks;
  std::vector<int64_t> lengths;
  for (size_t label = there.size(); label-- > 0;)
    for (size_t domain = 0; domain < there[label].size(); ++domain) {
      blocks.push_back(&there[label][domain]);
      lengths.push_back(wanted[label][domain]);
    }
  std::vector<size_t> chosen;
  for (size_t b = 0; b < blocks.size(); ++b)
    for (int64_t i = 0; i < lengths[b]; ++i) {
      const size_t of = b + static_cast<size_t>(i / block), offset = static_cast<size_t>(i % block);
      if (of < blocks.size() && offset < blocks[of]->size()) chosen.push_back((*blocks[of])[offset]);
    }
  return chosen;
}

// The images of a split, in the order of the files.
std::vector<size_t> choose(const CelebaTable& table, const Task& task, const Choice& choice) {
  const auto there = by_kind(table, task, choice.part);
  const int64_t maximum = max_images(there, choice.shares);
  int64_t count = choice.count == 0 ? maximum : choice.count;
  if (choice.cells == "capped") count = std::min(count, maximum);
  const Counts wanted = wanted_counts(task, count, choice.shares);
  std::vector<size_t> chosen;
  if (choice.cells == "sliced") {
    chosen = sliced(there, wanted, choice.block);
  } else {
    for (size_t label = 0; label < there.size(); ++label)
      for (size_t domain = 0; domain < there[label].size(); ++domain) {
        const auto& images = there[label][domain];
        const int64_t want = wanted[label][domain], have = std::ssize(images);
        if (want > have)
          fail("CelebA's ", kParts[choice.part], " split has ", have, " images of \"", task.classes[label], "\"",
               task.domains.size() > 1 ? cat(" with ", task.domains[domain]) : "", "; ", count, " images need ", want);
        chosen.insert(chosen.end(), images.begin(), images.begin() + want);
      }
  }
  std::sort(chosen.begin(), chosen.end());
  if (chosen.empty()) fail("CelebA's ", kParts[choice.part], " split has no images for this task");
  if (task.domains.size() > 1) {
    Counts taken = zero_counts(task);
    for (const size_t i : chosen) ++taken[task.image_kind[i].label][task.image_kind[i].domain];
    log_info("CelebA's ", kParts[choice.part], " split: ", chosen.size(), " images, ", counts_text(task, taken));
  }
  return chosen;
}

// Raises Error naming an image that is listed but missing.
void check_images_exist(const CelebaTable& table, const std::string& folder) {
  std::unordered_set<std::string> there;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) there.insert(entry.path().filename());
  if (error) fail(printable(folder), " cannot be read: ", error.message());
  for (const std::string& name : table.images)
    if (!there.contains(name))
      fail(printable(folder), " has no ", printable(name), ", which is in list_attr_celeba.txt (", there.size(), " of ",
           table.images.size(), " images are there)");
}

}  // namespace

void CelebaOptions::declare(OptionSet& set) {
  set.text("root", &root,
           "folder with img_align_celeba/ and the two lists; empty: celeba below SPARSIGHT_DATA or data/");
  set.choice("task", &task, {"smiling", "spurious_hair", "smiling_glasses"},
             "smiling: smiling or not; spurious_hair: the same, with hair colour correlated in training; or smiling "
             "and eyeglasses");
  set.integer("train", &train, {0, 1000000}, "number of training images, the first of each kind; 0: all");
  set.integer("test", &test, {0, 1000000}, "number of test images; 0: all");
  set.real("correlation", &correlation, {0.5, 1},
           "spurious_hair: fraction of smiling faces with black hair in training");
  set.choice("cells", &cells, {"exact", "capped", "sliced"},
             "spurious_hair, where a combination has too few images for `train`: an error; fewer images, in the right "
             "shares; or slices of a row of blocks, as in the paper's code");
  set.integer("block", &block, {1, 1000000}, "images from the start of one block to the next, for cells = \"sliced\"");
}

DataSplits make_celeba(const CelebaOptions& options, const DataContext&) {
  const std::string root = data_root(options.root, "celeba"), folder = root + "/" + kFolder;
  for (const char* name : {kFolder, "list_attr_celeba.txt", "list_eval_partition.txt"})
    if (!path_exists(root + "/" + name))
      fail(printable(root), " has no ", name, "; CelebA is ", kFolder,
           "/ with the aligned images, list_attr_celeba.txt and list_eval_partition.txt, in one folder");
  const CelebaTable table = parse_celeba(read_text(root + "/list_attr_celeba.txt"), "list_attr_celeba.txt",
                                         read_text(root + "/list_eval_partition.txt"), "list_eval_partition.txt");
  check_images_exist(table, folder);
  const Task task = make_task(table, options.task);
  DataInfo info;
  info.name = "celeba";
  info.classes = task.classes;
  info.domains = task.domains;
  const auto part = [&](const Choice& choice) -> DataSetPtr {
    std::vector<ImageFile> files;
    for (const size_t i : choose(table, task, choice))
      files.push_back({folder + "/" + table.images[i],
                       printable(table.images[i]),
                       task.image_kind[i].label,
                       task.image_kind[i].domain,
                       {}});
    return std::make_shared<ImageFilesSet>(info, std::move(files));
  };
  const bool spurious = options.task == "spurious_hair";
  if (options.cells == "sliced" && (!spurious || options.train == 0))
    fail_usage("data.cells = \"sliced\" is for data.task = \"spurious_hair\" with a number of images, data.train");
  const Shares even = even_shares(task), training = spurious ? correlated_shares(options.correlation) : even;
  return {part({0, options.train, training, options.cells, options.block}), part({1, 0, training}),
          part({2, options.test, even})};
}

}  // namespace sparsight
