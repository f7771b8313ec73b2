// What the protocol of domain generalisation knows of each dataset, algorithm and model stands beside it, and names
// only things that there are.
#include <gtest/gtest.h>

#include <set>

#include <nlohmann/json.hpp>

#include "sparsight/data/domainbed/domain_sets.h"
#include "sparsight/data/domainbed/domainbed.h"
#include "sparsight/data/domainbed/published_domains.h"
#include "sparsight/dg/dg_run.h"
#include "sparsight/dg/hyperparameters.h"
#include "sparsight/dg/random_range.h"
#include "sparsight/dg/sweep.h"
#include "sparsight/train/algorithm.h"

namespace sparsight::dg_declarations_test {
namespace {

void expect_known(const std::vector<ProtocolDefault>& defaults, const Json& config, const std::string& of) {
  const std::set<std::string> groups{kPhotographs, kSmallImages, kEverySet};
  std::set<std::vector<std::string>> seen;
  for (const ProtocolDefault& entry : defaults) {
    if (!groups.contains(entry.set)) {
      EXPECT_NO_THROW(domain_set(entry.set)) << of;
    }
    const std::string which = entry.key.empty() ? entry.name : entry.key;
    EXPECT_FALSE(which.empty()) << of;
    EXPECT_TRUE(seen.insert({entry.set, entry.key, which}).second) << of << " " << which;
    const size_t dot = entry.key.find('.');
    if (!entry.key.empty()) {
      EXPECT_TRUE(config.at(entry.key.substr(0, dot)).contains(entry.key.substr(dot + 1))) << of << " " << entry.key;
    }
    NumpyRandom random(1);
    if (entry.range && !entry.range->empty()) {
      EXPECT_NO_THROW(sample_range(*entry.range, random)) << of << " " << which;
    }
  }
}

}  // namespace

TEST(DomainSets, EachDeclaresWhatTheProtocolNeeds) {
  for (const std::string& name : domainbed_names()) {
    const DomainSet& set = domain_set(name);
    EXPECT_TRUE(set.make) << name;
    EXPECT_GT(set.eval_every, 0) << name;
    if (name == "folder") continue;
    EXPECT_GE(set.environments, 3) << name;
    EXPECT_GE(set.classes, 2) << name;
    DgRun run;
    run.set = name;
    EXPECT_EQ(environments_of_set(run), set.environments) << name;
    if (!set.batch_range.empty()) {
      NumpyRandom random(1);
      EXPECT_NO_THROW(sample_range(set.batch_range, random)) << name;
    }
  }
  for (const PublishedDomains& published : published_domains())
    EXPECT_EQ(domain_set(published.name).environments, std::ssize(published.domains));
}

TEST(DomainSets, EveryModelAndAlgorithmHasAConfigurationForEach) {
  for (const DomainSet& set : domain_sets())
    for (const DgModel& model : dg_models()) {
      DgRun run;
      run.set = set.name, run.model = model.name;
      EXPECT_NO_THROW(dg_config(run)) << set.name << " " << model.name;
    }
  for (const auto& entry : algorithms().entries())
    for (const DomainSet& set : domain_sets()) {
      DgRun run;
      run.set = set.name, run.algorithm = entry.name;
      EXPECT_NO_THROW(dg_config(run)) << set.name << " " << entry.name;
    }
}

TEST(DomainSets, DefaultsNameDatasetsAndSettingsThatThereAre) {
  for (const DgModel& model : dg_models()) {
    DgRun run;
    run.set = "pacs", run.model = model.name;
    expect_known(model.defaults, dg_config(run), model.name);
  }
  for (const std::string& name : algorithms_with_defaults()) {
    DgRun run;
    run.set = "pacs", run.algorithm = name;
    expect_known(defaults_of_algorithm(name), dg_config(run), name);
  }
}

// Section 4: of MIRO and SWAD, by dataset.
TEST(DomainSets, G33_DefaultsOfMiroAndSwad) {
  const std::tuple<const char*, double, double, double, double> rows[] = {{"pacs", .01, 3e-5, 0, 0},
                                                                          {"vlcs", .01, 1e-5, .5, 1e-6},
                                                                          {"office_home", .1, 3e-5, .1, 1e-6},
                                                                          {"terra_incognita", .1, 3e-5, 0, 1e-4},
                                                                          {"domain_net", .1, 3e-5, .1, 0}};
  for (const auto& [set, lambda, lr, dropout, weight_decay] : rows) {
    DgRun run;
    run.set = set, run.algorithm = "miro";
    const Json config = dg_config(run);
    EXPECT_EQ(config["algorithm"]["lambda"], lambda) << set;
    EXPECT_EQ(config["optimizer"]["lr"], lr) << set;
    EXPECT_EQ(config["model"]["dropout"], dropout) << set;
    EXPECT_EQ(config["optimizer"]["weight_decay"], weight_decay) << set;
  }
  const std::tuple<const char*, double, int64_t> valleys[] = {
      {"pacs", .3, 100}, {"vlcs", .2, 50}, {"domain_net", .3, 500}, {"terra_incognita", .3, 100}};
  for (const auto& [set, tolerance, segment] : valleys) {
    DgRun run;
    run.set = set, run.algorithm = "swad";
    const Json config = dg_config(run);
    EXPECT_EQ(config["algorithm"]["tolerance"], tolerance) << set;
    EXPECT_EQ(config["train"]["eval_every"], segment) << set;
    run.eval_every = 7;
    EXPECT_EQ(dg_config(run)["train"]["eval_every"], 7) << set;
  }
}

}  // namespace sparsight::dg_declarations_test
