// Published accuracies of domain generalisation, averages over test environments in percent, with their sources. What a
// paper does not give is not there.
#pragma once

#include <string>
#include <vector>

#include "sparsight/dg/results/result_table.h"

namespace sparsight {

struct PublishedResult {
  SelectionRule rule;
  std::string dataset;    // "pacs"
  std::string algorithm;  // with the model in parentheses: "ERM (ViT-S/16)"
  double mean, error;     // error below 0: not given
  std::string source;
};

const std::vector<PublishedResult>& published_results();

// Adds those of the tables' datasets and rules, as rows with an average only.
void add_published(std::vector<DgTable>& tables);

// Table 3 of Li et al. 2023: trained on DomainNet's painting alone; "out" accuracies of clipart, infograph, painting,
// quickdraw, real, sketch.
struct SingleSourceResult {
  std::string model;
  std::vector<double> accuracy;
  double giga_macs;  // 1e9 multiply-adds of an image
};
const std::vector<SingleSourceResult>& published_single_source();

// Relative gains over a baseline: on the source, the mean over the other environments of their gains, and the gain of
// their mean.
struct SingleSourceGain {
  double source, others, mean_of_others;
};
SingleSourceGain single_source_gain(const std::vector<double>& accuracy, const std::vector<double>& baseline,
                                    size_t source);

}  // namespace sparsight
