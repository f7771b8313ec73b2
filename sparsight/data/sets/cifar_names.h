// The names of CIFAR's classes, for folders without the name files of the official archives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparsight {

const std::vector<std::string>& cifar10_names();
const std::vector<std::string>& cifar100_fine_names();
const std::vector<std::string>& cifar100_coarse_names();
const std::vector<int64_t>& cifar100_fine_to_coarse();  // [100] the coarse class of each fine class

}  // namespace sparsight
