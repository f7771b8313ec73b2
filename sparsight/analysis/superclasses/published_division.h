// The published division of ImageNet into ten super-classes, of which three random members each are known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sparsight {

// How many of the rows of Daxberger et al. 2023, "Mobile V-MoEs", table of figure 2, are whole in a division.
struct PublishedRows {
  int64_t rows = 0;      // whose three classes are all among the given ones
  int64_t together = 0;  // whose three classes are in one super-class
};

// classes: [K] names as ImageNet has them, also several of a class separated by commas ("cab, hack, taxi"), in any
// case, with spaces or underscores. Nothing unless all classes of at least one row are there.
std::optional<PublishedRows> published_rows(const std::vector<std::string>& classes,
                                            const std::vector<int64_t>& class_to_superclass);

}  // namespace sparsight
