#include "sparsight/dg/results/published_results.h"

#include <algorithm>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

const char* const kGmoe = "Li et al. 2023, table 1";
const char* const kGmoeCombined = "Li et al. 2023, table 2";
// The first preprint's SF-MoE is a predecessor of GMoE: four experts in blocks 5 and 11, two for each token.
const char* const kPreprint = "Li et al. 2022, first preprint";
const char* const kDomainBed = "Gulrajani and Lopez-Paz 2021";

const std::vector<std::string> kFive{"pacs", "vlcs", "office_home", "terra_incognita", "domain_net"};

struct Average {
  double mean, error;  // error below 0: not given
};

void add_row(std::vector<PublishedResult>& all, SelectionRule rule, const std::string& algorithm,
             const std::vector<std::string>& datasets, const std::vector<Average>& averages, const char* source) {
  SPARSIGHT_CHECK(datasets.size() == averages.size());
  for (size_t i = 0; i < datasets.size(); ++i)
    all.push_back({rule, datasets[i], algorithm, averages[i].mean, averages[i].error, source});
}

void add_gmoe_table(std::vector<PublishedResult>& all) {
  const auto row = [&](const char* algorithm, const std::vector<Average>& averages) {
    add_row(all, SelectionRule::training_domains, algorithm, kFive, averages, kGmoe);
  };
  row("ERM (ResNet-50)", {{85.7, .5}, {77.4, .3}, {67.5, .5}, {47.2, .4}, {41.2, .2}});
  row("IRM (ResNet-50)", {{83.5, .8}, {78.5, .5}, {64.3, 2.2}, {47.6, .8}, {33.9, 2.8}});
  row("CORAL (ResNet-50)", {{86.0, .2}, {77.7, .5}, {68.6, .4}, {46.4, .8}, {41.8, .2}});
  row("MMD (ResNet-50)", {{85.0, .2}, {76.7, .9}, {67.7, .1}, {42.2, 1.4}, {39.4, .8}});
  row("Fish (ResNet-50)", {{85.5, .3}, {77.8, .3}, {68.6, .4}, {45.1, 1.3}, {42.7, .2}});
  row("SWAD (ResNet-50)", {{88.1, .1}, {79.1, .1}, {70.6, .2}, {50.0, .3}, {46.5, .1}});
  row("Fishr (ResNet-50)", {{85.5, .2}, {77.8, .2}, {68.6, .2}, {47.4, 1.6}, {41.7, .0}});
  row("MIRO (ResNet-50)", {{85.4, .4}, {79.0, .0}, {70.5, .4}, {50.4, 1.1}, {44.3, .2}});
  row("ERM (ViT-S/16)", {{86.2, .1}, {79.7, .0}, {72.2, .4}, {42.0, .8}, {47.3, .2}});
  row("ERM (GMoE-S/16)", {{88.1, .1}, {80.2, .2}, {74.2, .4}, {48.5, .4}, {48.7, .2}});
  // The paper repeats coral's last three numbers for dann: these are its other two.
  add_row(all, SelectionRule::training_domains, "DANN (ResNet-50)", {"pacs", "vlcs"}, {{84.6, 1.1}, {78.7, .3}}, kGmoe);
  const std::vector<std::string> three{"sviro", "wilds_camelyon", "wilds_fmow"};
  const std::pair<const char*, std::vector<Average>> rows[] = {
      {"ERM (ResNet-50)", {{85.7, .1}, {93.1, .2}, {40.6, .4}}},
      {"ERM (ViT-S/16)", {{89.6, .0}, {91.1, .1}, {44.8, .2}}},
      {"ERM (GMoE-S/16)", {{90.3, .1}, {93.7, .2}, {46.6, .4}}}};
  for (const auto& [algorithm, averages] : rows)
    add_row(all, SelectionRule::training_domains, algorithm, three, averages, kGmoe);
  for (const auto& [algorithm, mean] : {std::pair{"Fish (GMoE-S/16)", 48.8}, std::pair{"SWAD (GMoE-S/16)", 49.6}})
    add_row(all, SelectionRule::training_domains, algorithm, {"domain_net"}, {{mean, -1}}, kGmoeCombined);
}

void add_preprint(std::vector<PublishedResult>& all) {
  const auto row = [&](SelectionRule rule, const char* algorithm, const std::vector<Average>& averages) {
    add_row(all, rule, algorithm, kFive, averages, kPreprint);
  };
  row(SelectionRule::training_domains, "ERM (ViT-S/16)", {{86.6, -1}, {77.9, -1}, {72.3, -1}, {42.6, -1}, {46.4, -1}});
  row(SelectionRule::training_domains, "ERM (SF-MoE)", {{87.3, -1}, {80.2, -1}, {73.0, -1}, {46.3, -1}, {48.3, -1}});
  row(SelectionRule::leave_one_domain_out, "ERM (ViT-S/16)",
      {{86.6, .1}, {78.3, .2}, {71.9, .2}, {41.9, .3}, {46.1, .2}});
  row(SelectionRule::leave_one_domain_out, "ERM (SF-MoE)",
      {{87.1, .3}, {79.7, .1}, {72.1, .2}, {43.8, .3}, {47.8, .2}});
}

void add_domainbed(std::vector<PublishedResult>& all) {
  const std::vector<std::string> mnist{"colored_mnist", "rotated_mnist"};
  add_row(all, SelectionRule::training_domains, "ERM (MNIST CNN)", mnist, {{51.5, -1}, {98.0, -1}}, kDomainBed);
  add_row(all, SelectionRule::leave_one_domain_out, "ERM (MNIST CNN)", mnist, {{36.7, -1}, {97.7, -1}}, kDomainBed);
  add_row(all, SelectionRule::oracle, "ERM (MNIST CNN)", mnist, {{57.8, -1}, {97.8, -1}}, kDomainBed);
  const auto row = [&](SelectionRule rule, const char* algorithm, const std::vector<double>& means) {
    std::vector<Average> averages;
    for (const double mean : means) averages.push_back({mean, -1});
    add_row(all, rule, algorithm, kFive, averages, kDomainBed);
  };
  add_row(all, SelectionRule::training_domains, "DANN (ResNet-50)", {"office_home", "terra_incognita", "domain_net"},
          {{65.9, .6}, {46.7, .5}, {38.3, .1}}, kDomainBed);
  row(SelectionRule::training_domains, "GroupDRO (ResNet-50)", {84.4, 76.7, 66.0, 43.2, 33.3});
  row(SelectionRule::training_domains, "Mixup (ResNet-50)", {84.6, 77.4, 68.1, 47.9, 39.2});
  row(SelectionRule::training_domains, "MLDG (ResNet-50)", {84.9, 77.2, 66.8, 47.7, 41.2});
  row(SelectionRule::training_domains, "CDANN (ResNet-50)", {82.6, 77.5, 65.8, 45.8, 38.3});
  row(SelectionRule::training_domains, "MTL (ResNet-50)", {84.6, 77.2, 66.4, 45.6, 40.6});
  row(SelectionRule::training_domains, "SagNet (ResNet-50)", {86.3, 77.8, 68.1, 48.6, 40.3});
  row(SelectionRule::training_domains, "ARM (ResNet-50)", {85.1, 77.6, 64.8, 45.5, 35.5});
  row(SelectionRule::training_domains, "VREx (ResNet-50)", {84.9, 78.3, 66.4, 46.4, 33.6});
  row(SelectionRule::training_domains, "RSC (ResNet-50)", {85.2, 77.1, 65.5, 46.6, 38.9});
  add_row(all, SelectionRule::leave_one_domain_out, "ERM (ResNet-50)", kFive,
          {{83.0, .7}, {77.2, .4}, {65.7, .5}, {41.4, 1.4}, {40.6, .2}}, kDomainBed);
  row(SelectionRule::leave_one_domain_out, "IRM (ResNet-50)", {81.5, 76.3, 64.3, 41.2, 33.5});
  row(SelectionRule::leave_one_domain_out, "DANN (ResNet-50)", {81.0, 76.9, 64.9, 44.4, 38.2});
  row(SelectionRule::leave_one_domain_out, "CORAL (ResNet-50)", {82.6, 78.7, 68.5, 46.3, 41.1});
  row(SelectionRule::leave_one_domain_out, "MMD (ResNet-50)", {83.2, 77.3, 60.2, 46.5, 23.4});
  row(SelectionRule::leave_one_domain_out, "Mixup (ResNet-50)", {83.2, 77.7, 67.0, 48.7, 38.5});
  row(SelectionRule::leave_one_domain_out, "GroupDRO (ResNet-50)", {83.5, 77.9, 65.2, 44.9, 33.0});
  row(SelectionRule::leave_one_domain_out, "MLDG (ResNet-50)", {82.9, 77.2, 66.1, 46.2, 41.0});
  row(SelectionRule::leave_one_domain_out, "SagNet (ResNet-50)", {82.3, 77.5, 67.6, 47.2, 40.2});
  row(SelectionRule::leave_one_domain_out, "VREx (ResNet-50)", {81.3, 76.7, 64.9, 37.3, 33.4});
  row(SelectionRule::leave_one_domain_out, "RSC (ResNet-50)", {82.6, 77.5, 65.8, 40.0, 38.9});
}

}  // namespace

const std::vector<PublishedResult>& published_results() {
  static const std::vector<PublishedResult> all = [] {
    std::vector<PublishedResult> list;
    add_gmoe_table(list);
    add_preprint(list);
    add_domainbed(list);
    return list;
  }();
  return all;
}

void add_published(std::vector<DgTable>& tables) {
  for (DgTable& table : tables)
    for (const PublishedResult& result : published_results()) {
      if (result.rule != table.rule) continue;
      const auto column =
          table.dataset == kAverages
              ? std::ranges::find(table.columns, comparable_name(result.dataset), comparable_name)
              : (comparable_name(result.dataset) == table.dataset ? table.columns.end() - 1 : table.columns.end());
      if (column == table.columns.end()) continue;
      const std::string label = cat(result.algorithm, ", ", result.source);
      auto row = std::ranges::find(table.rows, label, &DgTable::Row::algorithm);
      if (row == table.rows.end()) {
        row = table.rows.insert(table.rows.end(), {label, result.source, {}});
        row->cells.resize(table.columns.size());
      }
      row->cells[static_cast<size_t>(column - table.columns.begin())] = MeanAndError{result.mean, result.error};
    }
  for (DgTable& table : tables)
    for (DgTable::Row& row : table.rows)
      if (table.dataset == kAverages && row.source != "this run") {
        row.cells.pop_back();
        row.cells = with_mean(row.cells);
      }
}

const std::vector<SingleSourceResult>& published_single_source() {
  static const std::vector<SingleSourceResult> all{{"ResNet-50", {37.1, 12.9, 62.7, 2.2, 49.3, 33.3}, 4.1},
                                                   {"ResNet-101", {40.5, 13.1, 63.4, 3.1, 51.2, 35.4}, 7.9},
                                                   {"ViT-S/16", {42.7, 15.9, 69.0, 5.0, 56.4, 37.0}, 4.6},
                                                   {"GMoE-S/16", {43.5, 16.1, 69.3, 5.3, 56.4, 38.0}, 4.8}};
  return all;
}

SingleSourceGain single_source_gain(const std::vector<double>& accuracy, const std::vector<double>& baseline,
                                    size_t source) {
  SPARSIGHT_CHECK(accuracy.size() == baseline.size() && source < accuracy.size() && accuracy.size() > 1);
  SingleSourceGain gain{accuracy[source] / baseline[source] - 1, 0, 0};
  double sum = 0, baseline_sum = 0;
  for (size_t e = 0; e < accuracy.size(); ++e) {
    if (e == source) continue;
    gain.others += (accuracy[e] / baseline[e] - 1) / static_cast<double>(accuracy.size() - 1);
    sum += accuracy[e], baseline_sum += baseline[e];
  }
  gain.mean_of_others = sum / baseline_sum - 1;
  return gain;
}

}  // namespace sparsight
