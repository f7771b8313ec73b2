#include <cstdio>
#include <filesystem>

#include "cli/cmd_superclass.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/read_config.h"
#include "sparsight/analysis/superclasses/affinity.h"
#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/analysis/superclasses/partition.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/readers/npy.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/run/superclass_folder.h"
#include "sparsight/report/run/superclass_report.h"
#include "sparsight/train/superclasses/pipeline.h"

namespace sparsight::cli {
namespace {

SuperclassSearch to_search(const SuperclassSearchArguments& arguments) {
  SuperclassSearch search;
  search.confusion = arguments.confusion;
  search.folds = arguments.folds;
  search.groups = arguments.groups;
  search.clusters.superclasses = arguments.experts;
  search.clusters.method = arguments.method;
  search.clusters.tau = arguments.tau;
  search.clusters.min_cluster_size = arguments.min_size;
  return search;
}

FoundSuperclasses superclasses_of_counts(const SuperclassArguments& arguments) {
  const std::string& file = arguments.search.confusion;
  const at::Tensor counts = read_npy(file);
  check_confusion(counts, printable(file));
  SuperclassSearch search = to_search(arguments.search);
  search.clusters.class_to_group = given_groups(search.groups, {}, counts.size(0));
  return find_superclasses(counts, search.clusters, {}, {{"counts", printable(file)}});
}

void print_found(const FoundSuperclasses& found, bool json) {
  output() << (json ? json_text(superclass_json(found)) + "\n" : superclass_report(found));
}

}  // namespace

void run_superclass(const SuperclassArguments& arguments) {
  begin_interruptible_work();
  if (!arguments.out.empty()) const AtomicFile writable(arguments.out);
  if (arguments.run.empty()) {
    const FoundSuperclasses found = superclasses_of_counts(arguments);
    write_superclass_map(arguments.out, found.clusters.class_to_superclass);
    print_found(found, arguments.json);
    return;
  }
  RunFolder::open(arguments.run);  // a single checkpoint file has no folder for the files
  SuperclassSearch search = to_search(arguments.search);
  search.split = arguments.split;
  const FoundSuperclasses found = superclasses_of_run(arguments.run, arguments.checkpoint, search, arguments.overrides);
  const std::string folder = superclass_folder(arguments.run);
  write_superclasses(folder, found);
  if (!arguments.out.empty()) write_superclass_map(arguments.out, found.clusters.class_to_superclass);
  print_found(found, arguments.json);
  if (!arguments.json) output() << "files: " << printable(folder) << "\n";
}

void run_superclass_train(const SuperclassTrainArguments& arguments) {
  begin_interruptible_work();
  train_with_superclasses({read_config(arguments.config), arguments.out, to_search(arguments.search)}, output());
}

void run_superclass_compare(const SuperclassCompareArguments& arguments) {
  const std::vector<int64_t> first = read_superclass_map(arguments.first),
                             second = read_superclass_map(arguments.second);
  char index[32];
  std::snprintf(index, sizeof index, "%.4f", adjusted_rand_index(first, second));
  output() << "adjusted Rand index: " << index << " (" << first.size() << " classes in " << superclass_count(first)
           << " and " << superclass_count(second) << " super-classes)\n";
}

}  // namespace sparsight::cli
