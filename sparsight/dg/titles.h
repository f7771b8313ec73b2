// What tables call datasets and environments.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// How names of datasets and algorithms are compared: without case, "-" and "_", so that "RotatedMNIST" and
// "rotated_mnist" are the same dataset.
std::string comparable_name(const std::string& name);

// The name in DomainBed's tables ("RotatedMNIST"), whatever way it is written here; other names stay as they are.
std::string dataset_title(const std::string& dataset);

// The titles of environments 0 to count - 1: DomainBed's names; for a dataset that it does not know `names`, where
// there are so many; else numbers.
std::vector<std::string> environment_titles(const std::string& dataset, const std::vector<std::string>& names,
                                            size_t count);

}  // namespace sparsight
