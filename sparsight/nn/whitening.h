// Whitening filters for a first convolution: its outputs are uncorrelated and of equal variance on the images that they
// were fitted to. From the public CIFAR-10 speed records; Jordan 2024, "94% on CIFAR-10 in 3.29 Seconds on a Single
// GPU", section 3.2 (arXiv:2404.00498).
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// images: [B,C,H,W], as the convolution sees them. Returns [2 C kernel²,C,kernel,kernel] fp32: the eigenvectors of the
// patches' second moments, in ascending order of the eigenvalues v, each divided by sqrt(v + epsilon), and all of them
// once more with the opposite sign. The moments are summed in fp64 and in a fixed order, so that neither threads nor
// ranks change their bits. Raises UsageError for images smaller than the kernel.
at::Tensor whitening_filters(const at::Tensor& images, int64_t kernel, double epsilon);

}  // namespace sparsight
