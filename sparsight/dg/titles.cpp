#include "sparsight/dg/titles.h"

#include <algorithm>
#include <cctype>

#include "sparsight/data/domainbed/domain_sets.h"

namespace sparsight {
namespace {

// Null for a dataset of one's own.
const DomainSet* known_set(const std::string& dataset) {
  for (const DomainSet& set : domain_sets())
    if (!set.title.empty() && comparable_name(set.name) == comparable_name(dataset)) return &set;
  return nullptr;
}

}  // namespace

std::string comparable_name(const std::string& name) {
  std::string plain;
  for (const char c : name)
    if (c != '_' && c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

std::string dataset_title(const std::string& dataset) {
  const std::string name = dataset.substr(0, dataset.find(' '));  // before " (data ...)"
  const DomainSet* set = known_set(name);
  return set ? set->title + dataset.substr(name.size()) : dataset;
}

std::vector<std::string> environment_titles(const std::string& dataset, const std::vector<std::string>& names,
                                            size_t count) {
  const DomainSet* set = known_set(dataset.substr(0, dataset.find(' ')));
  if (set && set->environment_titles.size() == count) return set->environment_titles;
  if (names.size() == count) return names;
  std::vector<std::string> numbers;
  for (size_t e = 0; e < count; ++e) numbers.push_back(std::to_string(e));
  return numbers;
}

}  // namespace sparsight
