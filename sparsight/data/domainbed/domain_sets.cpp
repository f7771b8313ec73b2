#include "sparsight/data/domainbed/domain_sets.h"

#include <utility>

#include "sparsight/core/error.h"
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

DomainSet mnist_set(const char* name, const char* title, std::vector<std::string> environment_titles, int64_t classes,
                    int64_t channels, DataSetPtr (*make)(const std::string& root, uint64_t seed)) {
  DomainSet set{name, std::ssize(environment_titles), classes, channels, 28, 100};
  set.title = title, set.environment_titles = std::move(environment_titles);
  set.make = [make](const DomainBedOptions& options, uint64_t seed) { return make(options.root, seed); };
  return set;
}

DomainSet wilds_set(const char* name, const char* title, const char* environment, int64_t environments, int64_t classes,
                    const char* usual_name, DataSetPtr (*make)(const std::string& root)) {
  DomainSet set{name, environments, classes, 3, 0, 100};
  set.resized_first = true;
  set.title = title;
  for (int64_t e = 0; e < environments; ++e) set.environment_titles.push_back(cat(environment, e));
  set.make = [make, usual_name](const DomainBedOptions& options, uint64_t) {
    return make(data_root(options.root, usual_name, kWildsAddress));
  };
  return set;
}

DomainSet any_folder() {
  DomainSet set{"folder"};
  set.eval_every = 100;
  set.make = [](const DomainBedOptions& options, uint64_t) {
    DataSetPtr all = folder_environments(options, data_root(options.root, ""));
    warn_of_uneven_domains(*all);
    return all;
  };
  return set;
}

DomainSet published_set(const PublishedDomains& published) {
  DomainSet set{published.name, std::ssize(published.domains), published.classes};
  set.eval_every = published.eval_every, set.batch_range = published.batch_range;
  set.title = published.titles.set;
  set.environment_titles = published.titles.environments.empty() ? published.domains : published.titles.environments;
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
    std::vector<DomainSet> sets{
        mnist_set("rotated_mnist", "RotatedMNIST", {"0", "15", "30", "45", "60", "75"}, 10, 1, rotated_mnist),
        mnist_set("colored_mnist", "ColoredMNIST", {"+90%", "+80%", "-90%"}, 2, 2, colored_mnist), any_folder(),
        wilds_set("wilds_camelyon", "WILDSCamelyon", "hospital_", 5, 2, "camelyon17_v1.0", camelyon17),
        wilds_set("wilds_fmow", "WILDSFMoW", "region_", 6, 62, "fmow_v1.1", fmow)};
    for (const PublishedDomains& published : published_domains()) sets.push_back(published_set(published));
    return sets;
  }();
  return all;
}

const DomainSet& domain_set(const std::string& name) { return entry_named(name, domain_sets(), "data set"); }

}  // namespace sparsight
