#include "sparsight/data/sets/image_files.h"

#include "sparsight/core/error.h"
#include "sparsight/data/readers/image.h"

namespace sparsight {

ImageFilesSet::ImageFilesSet(DataInfo info, std::vector<ImageFile> files)
    : info_(std::move(info)), files_(std::move(files)) {
  for (const ImageFile& file : files_) {
    SPARSIGHT_CHECK(file.label >= 0 && file.label < static_cast<int64_t>(info_.classes.size()));
    SPARSIGHT_CHECK(file.domain >= 0 && file.domain < static_cast<int64_t>(info_.domains.size()));
  }
}

Sample ImageFilesSet::get(int64_t index) const {
  const ImageFile& file = files_.at(index);
  ImageDecoding decoding;
  decoding.channels = static_cast<int>(info_.channels);
  return {read_image(file.path, decoding), file.label, file.domain, file.attributes, file.id, file.labels};
}

void ImageFilesSet::check(int64_t index) const { check_image_file(files_.at(index).path); }

}  // namespace sparsight
