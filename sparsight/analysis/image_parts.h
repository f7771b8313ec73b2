// The experts of the parts of objects (analysis/keypoint_patches.h) over many images: of each layer, for all images and
// for each domain.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sparsight/analysis/keypoint_patches.h"
#include "sparsight/analysis/patch_tint.h"
#include "sparsight/cost/layer_cost.h"
#include "sparsight/data/domainbed/cub_dg.h"

namespace sparsight {

class ImageParts {
 public:
  // domains: their names; with fewer than two, only all images together are counted.
  ImageParts(const CubDgKeypoints& keypoints, std::vector<std::string> domains);

  // Image `image` of the routings, by its id. from: its size in keypoints, to: of the model's input. Returns its parts
  // in pixels of the latter; none if the image has no keypoints. Raises Error for a keypoint outside of the image.
  std::vector<PicturePoint> add(const std::vector<Routing>& routings, int64_t image, const std::string& id,
                                int64_t domain, MapSize from, MapSize to);

  const std::vector<std::string>& names() const { return names_; }  // of the parts, in byte order
  // PartExperts::json of each layer and domain, with "domain": a name, or null for all images, which come first.
  Json json() const;

 private:
  const CubDgKeypoints& keypoints_;
  std::vector<std::string> domains_, names_;
  std::vector<std::pair<std::string, std::map<int64_t, PartExperts>>> layers_;  // by domain, -1 for all
};

}  // namespace sparsight
