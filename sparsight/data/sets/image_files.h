// A dataset of image files, decoded on demand.
#pragma once

#include <string>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

struct ImageFile {
  std::string path;  // bytes as in the file system, in any encoding
  std::string id;    // printable, relative to the dataset's root
  int64_t label = 0, domain = 0;
  std::vector<float> attributes;
  std::vector<int64_t> labels = {};  // of multi-label data, as Sample::labels
};

class ImageFilesSet : public DataSet {
 public:
  ImageFilesSet(DataInfo info, std::vector<ImageFile> files);  // every image is read with info.channels

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  Sample get(int64_t index) const override;
  void check(int64_t index) const override;
  int64_t label(int64_t index) const override { return files_.at(index).label; }
  int64_t domain(int64_t index) const override { return files_.at(index).domain; }
  std::string file(int64_t index) const override { return files_.at(index).path; }
  std::vector<int64_t> labels(int64_t index) const override {
    return info_.multi_label ? files_.at(index).labels : DataSet::labels(index);
  }

 private:
  DataInfo info_;
  std::vector<ImageFile> files_;
};

}  // namespace sparsight
