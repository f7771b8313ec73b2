// The fifteen common corruptions of ImageNet-C, each at five severities (Hendrycks and Dietterich 2019, "Benchmarking
// Neural Network Robustness to Common Corruptions and Perturbations", arXiv:1903.12261), generated. Images of at most
// 64 pixels take the parameters of CIFAR-10-C, larger ones those of ImageNet-C.
//
// Differs from the paper: frost is a generated texture instead of one of six photos; motion blur shifts whole pixels,
// as the public package imagecorruptions does, instead of calling ImageMagick.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/random.h"
#include "sparsight/data/corruptions/picture.h"

namespace sparsight::corruptions {

inline constexpr int kSeverities = 5;

// severity: 0 .. kSeverities - 1. small: parameters of CIFAR-10-C. Returns values in 0..1.
using Corrupt = Picture (*)(const Picture& picture, int severity, bool small, RandomStream& random);

struct Corruption {
  const char *name, *family;  // family: "noise", "blur", "weather", "digital"
  Corrupt corrupt;
  double alexnet_error;  // the mean error of AlexNet on ImageNet-C, 0 to 1, by which the paper's mCE divides
};

// In the paper's order.
const std::vector<Corruption>& all_corruptions();
// Raises UsageError, with the closest name, for an unknown one.
const Corruption& find_corruption(const std::string& name);

// Applies it to a picture, whose size chooses the parameters. severity: 1 .. 5.
Picture corrupted(const Corruption& corruption, const Picture& picture, int64_t severity, RandomStream& random);

Picture gaussian_noise(const Picture& picture, int severity, bool small, RandomStream& random);
Picture shot_noise(const Picture& picture, int severity, bool small, RandomStream& random);
Picture impulse_noise(const Picture& picture, int severity, bool small, RandomStream& random);
Picture defocus_blur(const Picture& picture, int severity, bool small, RandomStream& random);
Picture glass_blur(const Picture& picture, int severity, bool small, RandomStream& random);
Picture motion_blur(const Picture& picture, int severity, bool small, RandomStream& random);
Picture zoom_blur(const Picture& picture, int severity, bool small, RandomStream& random);
Picture snow(const Picture& picture, int severity, bool small, RandomStream& random);
Picture frost(const Picture& picture, int severity, bool small, RandomStream& random);
Picture fog(const Picture& picture, int severity, bool small, RandomStream& random);
Picture brightness(const Picture& picture, int severity, bool small, RandomStream& random);
Picture contrast(const Picture& picture, int severity, bool small, RandomStream& random);
Picture elastic_transform(const Picture& picture, int severity, bool small, RandomStream& random);
Picture pixelate(const Picture& picture, int severity, bool small, RandomStream& random);
Picture jpeg_compression(const Picture& picture, int severity, bool small, RandomStream& random);

}  // namespace sparsight::corruptions
