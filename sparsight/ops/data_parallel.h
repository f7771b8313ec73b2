// Data parallelism over threads, for functions that treat each image by itself: every thread computes some of the
// images, forward and backward, instead of some rows of each operation. Threads wait for each other once per pass
// instead of several times per layer, and the activations of a thread stay in its cache.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

namespace sparsight {

// images: images first .. first + images.size(0) of the batch. Returns one row for each.
using ImageFunction = std::function<at::Tensor(const at::Tensor& images, int64_t first)>;

// f(images), with the gradient of the images: of nothing else that f reads, and no second derivatives. f is called on
// several threads at once, each with as many images as the others or one more. With fewer than 8 images a thread, away
// from the CPU and where no gradient is needed it is called once, with all images. Images are split by their number and
// that of the threads alone, so that the same numbers give the same bits.
at::Tensor data_parallel(const at::Tensor& images, const ImageFunction& f);

}  // namespace sparsight
