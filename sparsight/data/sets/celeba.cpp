#include "sparsight/data/sets/celeba.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <unordered_set>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/bytes.h"
#include "sparsight/data/readers/celeba.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/data/sets/image_files.h"

namespace sparsight {
namespace {

constexpr int64_t kMaxListBytes = int64_t{1} << 28;
constexpr const char* kFolder = "img_align_celeba";

std::string read_text(const std::string& path) {
  const Bytes bytes = read_bytes(path, kMaxListBytes);
  return {bytes.begin(), bytes.end()};
}

// What an image is in a task; label -1: it takes no part.
struct Kind {
  int64_t label = -1, domain = 0;
};

struct Task {
  std::vector<std::string> classes, domains;
  std::vector<Kind> kind_of;  // of each image
};

Task task_of(const CelebaTable& table, const std::string& name) {
  Task task;
  const size_t smiling = table.attribute("Smiling");
  task.classes = {"not smiling", "smiling"};
  task.domains = {"celeba"};
  task.kind_of.resize(table.images.size());
  const auto each = [&](const auto& kind) {
    for (size_t i = 0; i < table.images.size(); ++i) task.kind_of[i] = kind(i);
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

// The share of a part that each kind makes up: [class][domain].
using Shares = std::vector<std::vector<double>>;

Shares even_shares(const Task& task) {
  const auto kinds = static_cast<double>(task.classes.size() * task.domains.size());
  return Shares(task.classes.size(), std::vector<double>(task.domains.size(), 1 / kinds));
}
Shares correlated_shares(double correlation) {
  const double often = correlation / 2, seldom = 0.5 - often;
  return {{seldom, often}, {often, seldom}};  // not smiling: mostly blond; smiling: mostly black
}

// The images of a part: `count` in all, or for 0 as many as the scarcest kind allows.
std::vector<size_t> choose(const CelebaTable& table, const Task& task, int part, int64_t count, const Shares& shares) {
  std::vector<std::vector<int64_t>> there(task.classes.size(), std::vector<int64_t>(task.domains.size()));
  for (size_t i = 0; i < table.images.size(); ++i)
    if (const Kind& kind = task.kind_of[i]; kind.label >= 0 && table.part[i] == part) ++there[kind.label][kind.domain];
  const auto wanted = [&](int64_t of, size_t label, size_t domain) {
    return static_cast<int64_t>(std::llround(static_cast<double>(of) * shares[label][domain]));
  };
  static constexpr const char* kParts[] = {"training", "validation", "test"};
  double most = static_cast<double>(table.images.size());
  for (size_t label = 0; label < there.size(); ++label)
    for (size_t domain = 0; domain < there[label].size(); ++domain) {
      if (shares[label][domain] > 0)
        most = std::min(most, static_cast<double>(there[label][domain]) / shares[label][domain]);
      if (const int64_t want = wanted(count, label, domain); want > there[label][domain])
        fail("CelebA's ", kParts[part], " part has ", there[label][domain], " images of \"", task.classes[label], "\"",
             task.domains.size() > 1 ? cat(" with ", task.domains[domain]) : "", "; ", count, " images need ", want);
    }
  if (count == 0) count = static_cast<int64_t>(most + 1e-9);
  std::vector<size_t> chosen;
  std::vector<std::vector<int64_t>> taken(task.classes.size(), std::vector<int64_t>(task.domains.size()));
  for (size_t i = 0; i < table.images.size(); ++i) {
    const Kind& kind = task.kind_of[i];
    if (kind.label < 0 || table.part[i] != part) continue;
    int64_t& have = taken[kind.label][kind.domain];
    if (have >= std::min(wanted(count, kind.label, kind.domain), there[kind.label][kind.domain])) continue;
    ++have;
    chosen.push_back(i);
  }
  if (chosen.empty()) fail("CelebA's ", kParts[part], " part has no images for this task");
  return chosen;
}

// Raises Error naming an image that is listed but not there.
void check_images_exist(const CelebaTable& table, const std::string& folder) {
  std::unordered_set<std::string> there;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) there.insert(entry.path().filename());
  if (error) fail(printable(folder), " cannot be read: ", error.message());
  for (const std::string& name : table.images)
    if (!there.contains(name))
      fail(printable(folder), " has no ", printable(name), ", which list_attr_celeba.txt lists (", there.size(), " of ",
           table.images.size(), " images are there)");
}

}  // namespace

void CelebaOptions::declare(OptionSet& set) {
  set.text("root", &root,
           "folder with img_align_celeba/ and the two lists; empty: celeba below SPARSIGHT_DATA or data/");
  set.choice("task", &task, {"smiling", "spurious_hair", "smiling_glasses"},
             "smiling or not; the same with hair that goes along with it in training; smiling and eyeglasses");
  set.integer("train", &train, {0, 1000000}, "training images, the first of each kind; 0 for as many as there are");
  set.integer("test", &test, {0, 1000000}, "test images; 0 for as many as there are");
  set.real("correlation", &correlation, {0.5, 1}, "spurious_hair: share of smiling faces with black hair in training");
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
  const Task task = task_of(table, options.task);
  DataInfo info;
  info.name = "celeba";
  info.classes = task.classes;
  info.domains = task.domains;
  const auto part = [&](int number, int64_t count, const Shares& shares) -> DataSetPtr {
    std::vector<ImageFile> files;
    for (const size_t i : choose(table, task, number, count, shares))
      files.push_back({folder + "/" + table.images[i],
                       printable(table.images[i]),
                       task.kind_of[i].label,
                       task.kind_of[i].domain,
                       {}});
    return std::make_shared<ImageFilesSet>(info, std::move(files));
  };
  const Shares even = even_shares(task),
               training = options.task == "spurious_hair" ? correlated_shares(options.correlation) : even;
  return {part(0, options.train, training), part(1, 0, training), part(2, options.test, even)};
}

}  // namespace sparsight
