// Seeds, splits and hyper-parameters against DomainBed's own code: tests/golden/domainbed/make_protocol.py made the
// file.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/limits.h"
#include "sparsight/data/domainbed/domainbed.h"
#include "sparsight/data/domainbed/seed_hash.h"
#include "sparsight/data/hash.h"
#include "sparsight/dg/hyperparameters.h"
#include "sparsight/io/atomic_file.h"
#include "tests/support/paths.h"

namespace sparsight::domainbed_golden_test {
namespace {

const Json& golden(const std::string& part) {
  static const Json all =
      Json::parse(read_file(test::source_path("tests/golden/domainbed/protocol.json"), kMaxConfigBytes));
  return all.at(part);
}

void expect_same(const Json& got, const Json& expected, const std::string& of) {
  if (expected.is_number())
    EXPECT_DOUBLE_EQ(got.get<double>(), expected.get<double>()) << of;
  else
    EXPECT_EQ(got, expected) << of;
}

// What DomainBed draws for every algorithm and dataset, and for these.
Json all_values(const Json& row) {
  Json values = row.at("values");
  for (const Json& shared : golden("hyperparameters_of_every_run"))
    if (shared.at("hparams_seed") == row.at("hparams_seed") && shared.at("trial") == row.at("trial"))
      values.update(shared.at("values"));
  return values;
}

// In the row of one dataset no name is missing, and none is added.
void expect_row(const Json& row, const std::string& set) {
  const std::string algorithm = row.at("algorithm");
  const auto list = all_hyperparameters(algorithm, set, row.at("hparams_seed"), row.at("trial"));
  const Json values = all_values(row);
  std::set<std::string> names;
  for (const Hyperparameter& parameter : list) {
    if (parameter.name == parameter.key) continue;  // DomainBed has no name for it
    const std::string of = cat(algorithm, " ", set, " ", row.at("hparams_seed").dump(), " ", parameter.name);
    EXPECT_TRUE(names.insert(parameter.name).second) << of;
    ASSERT_TRUE(values.contains(parameter.name)) << of;
    expect_same(parameter.value, values.at(parameter.name), of);
  }
  for (const auto& [name, value] : values.items()) EXPECT_TRUE(names.contains(name)) << algorithm << " " << name;
}

}  // namespace

TEST(DomainBedGolden, G33_HyperparametersOfEveryAlgorithmOnEveryDataset) {
  std::set<std::string> algorithms, sets;
  for (const Json& row : golden("hyperparameters")) {
    algorithms.insert(row.at("algorithm").get<std::string>());
    for (const Json& set : row.at("sets")) {
      sets.insert(set.get<std::string>());
      expect_row(row, set.get<std::string>());
    }
  }
  EXPECT_EQ(algorithms.size(), 34u);
  EXPECT_EQ(sets.size(), 10u);
}

TEST(DomainBedGolden, G35_SeedHashes) {
  for (const Json& row : golden("seed_hashes")) EXPECT_EQ(seed_hash(row.at("of")), row.at("hash")) << row;
}

TEST(DomainBedGolden, G36_Splits) {
  for (const Json& row : golden("splits")) {
    const HoldoutSplit split = holdout_split(row.at("images"), .2, row.at("trial"), row.at("environment"));
    EXPECT_EQ(split.out.size(), row.at("out")) << row;
    std::vector<int64_t> keys = split.out;
    keys.insert(keys.end(), split.in.begin(), split.in.end());
    std::string text;
    for (const int64_t key : keys) text += (text.empty() ? "" : " ") + std::to_string(key);
    Hasher md5("md5");
    md5.add(text.data(), text.size());
    EXPECT_EQ(md5.hex(), row.at("md5")) << row;
    keys.resize(20);
    EXPECT_EQ(Json(keys), row.at("first")) << row;
  }
}

}  // namespace sparsight::domainbed_golden_test
