#include "sparsight/data/domainbed/domainbed.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/data/decorators/subset.h"
#include "sparsight/data/domainbed/domain_sets.h"
#include "sparsight/data/domainbed/numpy_random.h"
#include "sparsight/data/domainbed/seed_hash.h"
#include "sparsight/data/sets/folder.h"

namespace sparsight {
namespace {

// The images of all environments, where a domain is one half of an environment.
class HalvedDomains : public DataSet {
 public:
  HalvedDomains(DataSetPtr all, std::vector<bool> is_out) : all_(std::move(all)), is_out_(std::move(is_out)) {
    info_ = all_->info();
    info_.domains.clear();
    for (const std::string& name : all_->info().domains)
      for (const char* half : {"/in", "/out"}) info_.domains.push_back(name + half);
  }

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return all_->size(); }
  void check(int64_t index) const override { all_->check(index); }
  int64_t label(int64_t index) const override { return all_->label(index); }
  int64_t domain(int64_t index) const override {
    return 2 * all_->domain(index) + (is_out_[static_cast<size_t>(index)] ? 1 : 0);
  }
  Sample get(int64_t index) const override {
    Sample sample = all_->get(index);
    sample.domain = domain(index);
    return sample;
  }

 private:
  DataSetPtr all_;
  std::vector<bool> is_out_;
  DataInfo info_;
};

std::vector<std::vector<int64_t>> by_domain(const DataSet& all) {
  std::vector<std::vector<int64_t>> images(all.info().domains.size());
  for (int64_t i = 0; i < all.size(); ++i) images.at(static_cast<size_t>(all.domain(i))).push_back(i);
  return images;
}

std::vector<bool> tested(const DomainBedOptions& options, const DataInfo& info) {
  std::vector<bool> is_test(info.domains.size(), false);
  for (const int64_t environment : options.test_envs) {
    if (environment >= static_cast<int64_t>(is_test.size()))
      fail_usage("data.test_envs: ", info.name, " has the environments 0 to ", is_test.size() - 1, ", got ",
                 environment);
    is_test[static_cast<size_t>(environment)] = true;
  }
  if (std::ranges::count(is_test, false) == 0)
    fail_usage("data.test_envs names every environment of ", info.name, "; leave at least one to train on");
  return is_test;
}

}  // namespace

void DomainBedOptions::declare(OptionSet& options) {
  options.choice("set", &set, domainbed_names(), "the dataset; folder: any domain/class/image");
  options.text("root", &root, "its folder; empty: its usual name below SPARSIGHT_DATA or data/");
  options.integers("test_envs", &test_envs, {0, 1000000}, "environments kept for testing, by number; the others train");
  options.integer("trial", &trial, {0, 1000000}, "trial seed, from which the split of each environment follows");
  options.real("holdout", &holdout, {0.001, 0.999}, "fraction of each environment's images that do not train");
  options.integer("limit", &limit, {0, 1'000'000'000},
                  "at most this many images of each environment, for short runs; 0: all, as published");
  declare_channels(options, &channels);
}

std::vector<std::string> domainbed_names() {
  std::vector<std::string> names;
  for (const DomainSet& set : domain_sets()) names.push_back(set.name);
  return names;
}

DataSetPtr domainbed_environments(const DomainBedOptions& options, uint64_t seed) {
  return domain_set(options.set).make(options, seed);
}

HoldoutSplit holdout_split(int64_t images, double holdout, int64_t trial, int64_t environment, int64_t limit) {
  const std::vector<int64_t> keys = NumpyRandom(seed_hash({trial, environment})).permutation(images);
  const auto out = static_cast<int64_t>(static_cast<double>(images) * holdout);
  HoldoutSplit split{{keys.begin(), keys.begin() + out}, {keys.begin() + out, keys.end()}};
  if (limit > 0 && limit < images) {
    const auto kept = static_cast<int64_t>(static_cast<double>(limit) * holdout);
    split.out.resize(static_cast<size_t>(std::min(kept, out)));
    split.in.resize(std::min(split.in.size(), static_cast<size_t>(limit - kept)));
  }
  return split;
}

DataSplits make_domainbed(const DomainBedOptions& options, const DataContext& context) {
  const DataSetPtr all = domainbed_environments(options, context.seed);
  const DataInfo& info = all->info();
  const std::vector<bool> is_test = tested(options, info);
  const std::vector<std::vector<int64_t>> images = by_domain(*all);
  std::vector<bool> is_out(static_cast<size_t>(all->size()), false);
  std::vector<int64_t> train, validation, test, monitor;
  for (size_t e = 0; e < images.size(); ++e) {
    const HoldoutSplit split = holdout_split(static_cast<int64_t>(images[e].size()), options.holdout, options.trial,
                                             static_cast<int64_t>(e), options.limit);
    if (split.out.empty() || split.in.empty())
      fail("the environment ", info.domains[e], " of ", info.name, " has ", images[e].size(),
           " images, too few for a holdout of ", options.holdout);
    for (const bool out : {false, true})
      for (const int64_t key : out ? split.out : split.in) {
        const int64_t image = images[e][static_cast<size_t>(key)];
        is_out[static_cast<size_t>(image)] = out;
        if (is_test[e])
          test.push_back(image);
        else
          (out ? validation : train).push_back(image);
        if (is_test[e] || !out) monitor.push_back(image);
      }
  }
  const auto halved = std::make_shared<HalvedDomains>(all, std::move(is_out));
  const auto part = [&](std::vector<int64_t> indices) -> DataSetPtr {
    return std::make_shared<SubsetDataSet>(halved, std::move(indices));
  };
  DataSplits splits{part(std::move(train)), part(std::move(validation)), {}, part(std::move(monitor))};
  if (test.empty())
    splits.test = splits.validation, splits.missing = "test";
  else
    splits.test = part(std::move(test));
  return splits;
}

}  // namespace sparsight
