// The text files of CUB-200-2011 (Wah et al. 2011), and its pictures' parts of birds.
//   images.txt, image_class_labels.txt, train_test_split.txt   image number and class/file, class number, 1 in training
//   bounding_boxes.txt                                         image number, x, y, width, height
//   parts/parts.txt                                            part number and name
//   parts/part_locs.txt                                        image number, part number, x, y, 1 if visible
// Numbers start at 1 there and at 0 here. Coordinates are pixels of the original picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparsight {

struct Keypoint {
  double x = 0, y = 0;
  bool visible = false;
};

struct BoundingBox {
  double x = 0, y = 0, width = 0, height = 0;
};

// N images, P parts.
struct CubTable {
  std::vector<std::string> classes;  // names of their folders, in the order of their numbers
  std::vector<std::string> images;   // [N] class/file
  std::vector<int64_t> labels;       // [N]
  std::vector<bool> is_training;     // [N]
  std::vector<BoundingBox> boxes;    // [N]
  std::vector<std::string> parts;    // [P] "left eye"
  std::vector<Keypoint> keypoints;   // [N * P], image by image

  const Keypoint& keypoint(size_t image, size_t part) const { return keypoints[image * parts.size() + part]; }
};

// `root`: the folder with these files (CUB_200_2011). Raises Error for a missing file, and with file and line for a
// line that is malformed, out of order or does not fit the others.
CubTable read_cub(const std::string& root);

}  // namespace sparsight
