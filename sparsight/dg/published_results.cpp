#include "sparsight/dg/published_results.h"

#include <algorithm>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

const char* const kGmoe = "Li et al. 2023, table 1";
const char* const kDomainBed = "Gulrajani and Lopez-Paz 2021";

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
  const std::vector<std::string> five{"pacs", "vlcs", "office_home", "terra_incognita", "domain_net"};
  const auto row = [&](const char* algorithm, const std::vector<Average>& averages) {
    add_row(all, SelectionRule::training_domains, algorithm, five, averages, kGmoe);
  };
  row("erm (ResNet-50)", {{85.7, .5}, {77.4, .3}, {67.5, .5}, {47.2, .4}, {41.2, .2}});
  row("irm (ResNet-50)", {{83.5, .8}, {78.5, .5}, {64.3, 2.2}, {47.6, .8}, {33.9, 2.8}});
  row("coral (ResNet-50)", {{86.0, .2}, {77.7, .5}, {68.6, .4}, {46.4, .8}, {41.8, .2}});
  row("mmd (ResNet-50)", {{85.0, .2}, {76.7, .9}, {67.7, .1}, {42.2, 1.4}, {39.4, .8}});
  row("fish (ResNet-50)", {{85.5, .3}, {77.8, .3}, {68.6, .4}, {45.1, 1.3}, {42.7, .2}});
  row("swad (ResNet-50)", {{88.1, .1}, {79.1, .1}, {70.6, .2}, {50.0, .3}, {46.5, .1}});
  row("fishr (ResNet-50)", {{85.5, .2}, {77.8, .2}, {68.6, .2}, {47.4, 1.6}, {41.7, .0}});
  row("miro (ResNet-50)", {{85.4, .4}, {79.0, .0}, {70.5, .4}, {50.4, 1.1}, {44.3, .2}});
  row("erm (ViT-S/16)", {{86.2, .1}, {79.7, .0}, {72.2, .4}, {42.0, .8}, {47.3, .2}});
  row("erm (GMoE-S/16)", {{88.1, .1}, {80.2, .2}, {74.2, .4}, {48.5, .4}, {48.7, .2}});
  // The paper repeats coral's last three numbers for dann: these are its other two.
  add_row(all, SelectionRule::training_domains, "dann (ResNet-50)", {"pacs", "vlcs"}, {{84.6, 1.1}, {78.7, .3}}, kGmoe);
  const std::vector<std::string> three{"sviro", "wilds_camelyon", "wilds_fmow"};
  const std::pair<const char*, std::vector<Average>> rows[] = {
      {"erm (ResNet-50)", {{85.7, .1}, {93.1, .2}, {40.6, .4}}},
      {"erm (ViT-S/16)", {{89.6, .0}, {91.1, .1}, {44.8, .2}}},
      {"erm (GMoE-S/16)", {{90.3, .1}, {93.7, .2}, {46.6, .4}}}};
  for (const auto& [algorithm, averages] : rows)
    add_row(all, SelectionRule::training_domains, algorithm, three, averages, kGmoe);
}

void add_domainbed(std::vector<PublishedResult>& all) {
  const std::vector<std::string> mnist{"colored_mnist", "rotated_mnist"};
  add_row(all, SelectionRule::training_domains, "erm (MNIST CNN)", mnist, {{51.5, -1}, {98.0, -1}}, kDomainBed);
  add_row(all, SelectionRule::leave_one_domain_out, "erm (MNIST CNN)", mnist, {{36.7, -1}, {97.7, -1}}, kDomainBed);
  add_row(all, SelectionRule::oracle, "erm (MNIST CNN)", mnist, {{57.8, -1}, {97.8, -1}}, kDomainBed);
  const std::vector<std::string> five{"pacs", "vlcs", "office_home", "terra_incognita", "domain_net"};
  const auto row = [&](SelectionRule rule, const char* algorithm, const std::vector<double>& means) {
    std::vector<Average> averages;
    for (const double mean : means) averages.push_back({mean, -1});
    add_row(all, rule, algorithm, five, averages, kDomainBed);
  };
  row(SelectionRule::training_domains, "group_dro (ResNet-50)", {84.4, 76.7, 66.0, 43.2, 33.3});
  row(SelectionRule::training_domains, "domain_mixup (ResNet-50)", {84.6, 77.4, 68.1, 47.9, 39.2});
  row(SelectionRule::training_domains, "mldg (ResNet-50)", {84.9, 77.2, 66.8, 47.7, 41.2});
  row(SelectionRule::training_domains, "cdann (ResNet-50)", {82.6, 77.5, 65.8, 45.8, 38.3});
  row(SelectionRule::training_domains, "mtl (ResNet-50)", {84.6, 77.2, 66.4, 45.6, 40.6});
  row(SelectionRule::training_domains, "sagnet (ResNet-50)", {86.3, 77.8, 68.1, 48.6, 40.3});
  row(SelectionRule::training_domains, "arm (ResNet-50)", {85.1, 77.6, 64.8, 45.5, 35.5});
  row(SelectionRule::training_domains, "vrex (ResNet-50)", {84.9, 78.3, 66.4, 46.4, 33.6});
  row(SelectionRule::training_domains, "rsc (ResNet-50)", {85.2, 77.1, 65.5, 46.6, 38.9});
  row(SelectionRule::leave_one_domain_out, "erm (ResNet-50)", {83.0, 77.2, 65.7, 41.4, 40.6});
  row(SelectionRule::leave_one_domain_out, "irm (ResNet-50)", {81.5, 76.3, 64.3, 41.2, 33.5});
  row(SelectionRule::leave_one_domain_out, "dann (ResNet-50)", {81.0, 76.9, 64.9, 44.4, 38.2});
  row(SelectionRule::leave_one_domain_out, "coral (ResNet-50)", {82.6, 78.7, 68.5, 46.3, 41.1});
  row(SelectionRule::leave_one_domain_out, "mmd (ResNet-50)", {83.2, 77.3, 60.2, 46.5, 23.4});
  row(SelectionRule::leave_one_domain_out, "domain_mixup (ResNet-50)", {83.2, 77.7, 67.0, 48.7, 38.5});
  row(SelectionRule::leave_one_domain_out, "group_dro (ResNet-50)", {83.5, 77.9, 65.2, 44.9, 33.0});
  row(SelectionRule::leave_one_domain_out, "mldg (ResNet-50)", {82.9, 77.2, 66.1, 46.2, 41.0});
  row(SelectionRule::leave_one_domain_out, "sagnet (ResNet-50)", {82.3, 77.5, 67.6, 47.2, 40.2});
  row(SelectionRule::leave_one_domain_out, "vrex (ResNet-50)", {81.3, 76.7, 64.9, 37.3, 33.4});
  row(SelectionRule::leave_one_domain_out, "rsc (ResNet-50)", {82.6, 77.5, 65.8, 40.0, 38.9});
}

}  // namespace

const std::vector<PublishedResult>& published_results() {
  static const std::vector<PublishedResult> all = [] {
    std::vector<PublishedResult> list;
    add_gmoe_table(list);
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
              ? std::ranges::find(table.columns, comparable_name(result.dataset))
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
