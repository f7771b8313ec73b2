// The two text files of CelebA (Liu et al. 2015): attributes and partition of each image.
//   list_attr_celeba.txt     a count; the attribute names; for each image its name and 1 or -1 for each attribute
//   list_eval_partition.txt  for each image its name and 0 (training), 1 (validation) or 2 (test)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sparsight {

struct CelebaTable {
  std::vector<std::string> attributes;  // names, A
  std::vector<std::string> images;      // file names, N
  std::vector<bool> has;                // [N * A], image by image
  std::vector<int8_t> part;             // [N] 0, 1 or 2

  // Raises Error naming the nearest attribute.
  size_t attribute(const std::string& name) const;
  bool holds(size_t image, size_t attribute) const { return has[image * attributes.size() + attribute]; }
};

// Arguments: the content of the two files, and their names for errors. Raises Error if a line is malformed, the count
// is wrong, or the files do not list the same images in the same order.
CelebaTable parse_celeba(std::string_view attributes, const std::string& attributes_name, std::string_view partition,
                         const std::string& partition_name);

}  // namespace sparsight
