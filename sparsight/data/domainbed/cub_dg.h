// CUB-DG (Li et al. 2023, "Sparse Mixture-of-Experts are Domain Generalizable Learners", section 5.4): the photographs
// of CUB-200-2011 and three stylised copies of each. There is nothing to download: this makes it from CUB-200-2011 and
// the copies, whose styles have the names of public networks for fast style transfer.
//
// (Another dataset of the same name has the domains Photo, Art, Cartoon and Paint.)
#pragma once

#include <functional>
#include <map>
#include <string>

#include "sparsight/data/readers/cub.h"

namespace sparsight {

// Folders that hold class/file, with the names of CUB-200-2011.
struct CubDgFolders {
  std::string cub;  // CUB_200_2011: images/ and the text files of readers/cub.h
  std::string candy, mosaic, udnie;
};

// Makes `target`, which must not exist: domain/class/file for Candy, Mosaic, Natural and Udnie (hard links where the
// disk allows it, else copies) and keypoints.csv (columns domain, image, part, x, y: pixels of that copy; visible parts
// only). progress gets (done, total) images. Returns the number of images. Raises Error if a copy lacks a picture of
// CUB-200-2011 or has one too many; nothing is left at `target` then.
int64_t build_cub_dg(const CubDgFolders& folders, const std::string& target,
                     const std::function<void(int64_t, int64_t)>& progress = {});

// A keypoint of one picture that is resized from [height,width] to [new_height,new_width].
Keypoint rescaled(const Keypoint& point, int64_t height, int64_t width, int64_t new_height, int64_t new_width);

// The visible parts of each picture: for "domain/class/file" a keypoint by the name of the part.
using CubDgKeypoints = std::map<std::string, std::map<std::string, Keypoint>>;

// Whether a folder has them.
bool has_cub_dg_keypoints(const std::string& root);
// Reads them from a folder that build_cub_dg() made. Raises Error naming the line for other content.
CubDgKeypoints read_cub_dg_keypoints(const std::string& root);

}  // namespace sparsight
