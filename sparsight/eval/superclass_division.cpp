#include "sparsight/eval/superclass_division.h"

#include <algorithm>
#include <filesystem>

#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/analysis/superclasses/random_map.h"
#include "sparsight/catalogue/superclass_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/data_info_json.h"
#include "sparsight/eval/guidance.h"

namespace sparsight {
namespace {

constexpr size_t kNamedMembers = 3;

SuperclassOptions superclass_options(const Json& resolved) {
  if (!resolved.contains("superclasses")) return {};  // of a version that did not have them
  const auto options = read_section<SuperclassOptions>(resolved, "superclasses");
  if (options.source == "file" && options.file.empty())
    fail_usage("superclasses.source = \"file\" needs superclasses.file: a text file with one integer per line");
  if (options.source != "file" && !options.file.empty())
    fail_usage("superclasses.file = ", shown(options.file), " is not read with superclasses.source = \"",
               options.source, "\"; set superclasses.source = \"file\", or leave the file out");
  return options;
}

std::vector<int64_t> superclass_sizes(const std::vector<int64_t>& super_class_of) {
  std::vector<int64_t> sizes(static_cast<size_t>(superclass_count(super_class_of)), 0);
  for (const int64_t group : super_class_of) ++sizes[static_cast<size_t>(group)];
  return sizes;
}

std::vector<int64_t> random_division(const SuperclassOptions& options, const Json& resolved, const DataInfo& data) {
  const auto seed = static_cast<uint64_t>(options.seed);
  if (options.sizes == "equal") return random_superclass_map(std::ssize(data.classes), guided_experts(resolved), seed);
  if (data.super_class_of.empty())
    fail_usage("superclasses.sizes = \"matched\" takes the sizes of the dataset's own super-classes, and ", data.name,
               " has none; set superclasses.sizes = \"equal\"");
  return random_superclass_map_of_sizes(superclass_sizes(data.super_class_of), seed);
}

// `map` has a number for each class, and each super-class of 0 to the largest number has a class.
void check_division(const std::vector<int64_t>& map, const DataInfo& data, const std::string& source) {
  if (map.size() != data.classes.size())
    fail(source, " has ", map.size(), " lines, and ", data.name, " has ", data.classes.size(),
         " classes; write one super-class per class, in the order of the classes");
  const auto [low, high] = std::minmax_element(map.begin(), map.end());
  if (map.empty()) return;
  if (*low < 0 || *high >= std::ssize(map))
    fail(source, " has super-class ", *low < 0 ? *low : *high, " for ", map.size(), " classes; use 0 to ",
         map.size() - 1);
  const std::vector<int64_t> sizes = superclass_sizes(map);
  if (const auto gap = std::ranges::find(sizes, 0); gap != sizes.end())
    fail(source, " has super-classes up to ", *high, ", but no class in ", gap - sizes.begin(),
         "; number them without gaps");
}

DataInfo divided(DataInfo data, std::vector<int64_t> map) {
  if (map == data.super_class_of) return data;
  data.super_classes = names_by_classes(map, data.classes);
  data.super_class_of = std::move(map);
  return data;
}

// The division that the run began with is still the one that its configuration gives.
void check_unchanged_division(const std::vector<int64_t>& recorded, const std::vector<int64_t>& now) {
  if (recorded == now) return;
  std::string change = cat("has ", recorded.size(), " classes in super-classes, now ", now.size());
  if (recorded.size() == now.size()) {
    const auto changed = std::ranges::mismatch(recorded, now).in1 - recorded.begin();
    change = cat("has class ", changed, " in super-class ", recorded[static_cast<size_t>(changed)], ", now ",
                 now[static_cast<size_t>(changed)]);
  }
  fail("the super-classes were changed: this run ", change,
       "; its experts are trained for the earlier ones: undo that, or start a new run");
}

}  // namespace

DataInfo with_superclasses(const Json& resolved, const DataInfo& data) {
  const SuperclassOptions options = superclass_options(resolved);
  if (options.source == "data") return data;
  const bool from_file = options.source == "file";
  std::vector<int64_t> map = from_file ? read_superclass_map(options.file) : random_division(options, resolved, data);
  check_division(map, data, from_file ? printable(options.file) : "the random division");
  return divided(data, std::move(map));
}

DataInfo with_recorded_superclasses(const Json& resolved, const DataInfo& data, const std::vector<int64_t>& recorded) {
  const SuperclassOptions options = superclass_options(resolved);
  if (recorded.empty()) {
    DataInfo undivided = data;
    undivided.super_class_of.clear(), undivided.super_classes.clear();
    return options.source == "data" ? undivided : with_superclasses(resolved, data);
  }
  check_division(recorded, data, "the division of this run");
  if (options.source == "file" && !std::filesystem::exists(options.file))
    log_info(options.file, " is gone; the run goes on with the super-classes that it has recorded");
  else
    check_unchanged_division(recorded, with_superclasses(resolved, data).super_class_of);
  return divided(data, recorded);
}

void check_trained_superclasses(const Json& state, const DataInfo& data) {
  if (!state.contains("data")) return;
  const std::vector<int64_t> trained = data_info_from(state.at("data")).super_class_of;
  if (!trained.empty()) check_unchanged_division(trained, data.super_class_of);
}

std::vector<std::string> names_by_classes(const std::vector<int64_t>& super_class_of,
                                          const std::vector<std::string>& classes) {
  std::vector<std::string> names(static_cast<size_t>(superclass_count(super_class_of)));
  std::vector<size_t> members(names.size(), 0);
  for (size_t k = 0; k < super_class_of.size(); ++k) {
    const auto group = static_cast<size_t>(super_class_of[k]);
    if (members[group]++ < kNamedMembers) names[group] += (names[group].empty() ? "" : ", ") + classes[k];
  }
  for (size_t group = 0; group < names.size(); ++group)
    if (members[group] > kNamedMembers) names[group] += ", ...";
  return names;
}

}  // namespace sparsight
