#include "sparsight/data/domainbed/domain_sets.h"

#include "sparsight/core/nearest_name.h"
#include "sparsight/data/domainbed/domainbed.h"
#include "sparsight/data/domainbed/mnist_domains.h"
#include "sparsight/data/domainbed/published_domains.h"
#include "sparsight/data/domainbed/wilds.h"
#include "sparsight/data/readers/folder.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/data/sets/folder.h"

namespace sparsight {
namespace {

DataSetPtr folder_environments(const DomainBedOptions& options, const std::string& root) {
  DomainFolderOptions folder;
  folder.root = root;
  folder.channels = options.channels;
  return all_of_domain_folder(folder);
}

DomainSet mnist_set(const char* name, int64_t environments, int64_t classes, int64_t channels,
                    DataSetPtr (*make)(const std::string& root, uint64_t seed)) {
  DomainSet set{name, environments, classes, channels, 28, 100};
  set.make = [make](const DomainBedOptions& options, uint64_t seed) { return make(options.root, seed); };
  return set;
}

DomainSet wilds_set(const char* name, int64_t environments, int64_t classes, const char* usual_name,
                    DataSetPtr (*make)(const std::string& root)) {
  DomainSet set{name, environments, classes, 3, 0, 100};
  set.resized_first = true;
  set.make = [make, usual_name](const DomainBedOptions& options, uint64_t) {
    return make(data_root(options.root, usual_name, kWildsAddress));
  };
  return set;
}

DomainSet any_folder() {
  DomainSet set{"folder"};
  set.eval_every = 100;
  set.make = [](const DomainBedOptions& options, uint64_t) {
    return folder_environments(options, data_root(options.root, ""));
  };
  return set;
}

DomainSet published_set(const PublishedDomains& published) {
  DomainSet set{published.name, std::ssize(published.domains), published.classes};
  set.eval_every = published.eval_every, set.batch_range = published.batch_range;
  set.make = [&published](const DomainBedOptions& options, uint64_t) {
    const std::string root = data_root(options.root, published.folder, published.obtain);
    DataSetPtr all = folder_environments(options, root);
    check_published(*all, published, root);
    return all;
  };
  return set;
}

}  // namespace

const std::vector<DomainSet>& domain_sets() {
  static const std::vector<DomainSet> all = [] {
    std::vector<DomainSet> sets{mnist_set("rotated_mnist", 6, 10, 1, rotated_mnist),
                                mnist_set("colored_mnist", 3, 2, 2, colored_mnist), any_folder(),
                                wilds_set("wilds_camelyon", 5, 2, "camelyon17_v1.0", camelyon17),
                                wilds_set("wilds_fmow", 6, 62, "fmow_v1.1", fmow)};
    for (const PublishedDomains& published : published_domains()) sets.push_back(published_set(published));
    return sets;
  }();
  return all;
}

const DomainSet& domain_set(const std::string& name) { return entry_named(name, domain_sets(), "data set"); }

}  // namespace sparsight
