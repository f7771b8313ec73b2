// Which images two parts of a dataset share: by the name of the image (Sample::id) and by its pixels, since files can
// be copied under other names. What a part is called says nothing.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

struct SharedImages {
  std::vector<int64_t> by_id, by_content;  // positions in the first part, ascending; by_content without those of by_id
  std::string example;                     // "train/7 = test/12", or ""
};

// The images of a part, to be compared with those of others.
class ImageIdentities {
 public:
  // Reads all images of `part`, with all compute threads. An image that cannot be read has only its position's name.
  explicit ImageIdentities(const DataSet& part);

  // Reads all images of `other`. Raises Error if interrupted.
  SharedImages shared_with(const DataSet& other) const;

 private:
  std::unordered_map<std::string, std::vector<int64_t>> by_id_, by_content_;
  std::vector<std::string> ids_;
};

}  // namespace sparsight
