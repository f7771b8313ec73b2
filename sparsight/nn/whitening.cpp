#include "sparsight/nn/whitening.h"

#include <cmath>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// Mean of p p^T over all patches p of the images: [D,D] fp64, where D = C kernel².
at::Tensor patch_moments(const at::Tensor& images, int64_t kernel) {
  const int64_t channels = images.size(1), height = images.size(2), width = images.size(3),
                dim = channels * kernel * kernel, rows = height - kernel + 1, columns = width - kernel + 1;
  const at::Tensor sums = at::zeros({dim, dim}, at::kDouble);
  auto* const sum = sums.data_ptr<double>();
  const float* image = images.const_data_ptr<float>();
  std::vector<double> patch(static_cast<size_t>(dim));
  for (int64_t b = 0; b < images.size(0); ++b, image += channels * height * width)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        auto next = patch.begin();
        for (int64_t c = 0; c < channels; ++c)
          for (int64_t y = 0; y < kernel; ++y)
            for (int64_t x = 0; x < kernel; ++x) *next++ = image[(c * height + i + y) * width + j + x];
        for (int64_t p = 0; p < dim; ++p)
          for (int64_t q = 0; q <= p; ++q)
            sum[p * dim + q] += patch[static_cast<size_t>(p)] * patch[static_cast<size_t>(q)];
      }
  return sums / static_cast<double>(images.size(0) * rows * columns);
}

}  // namespace

at::Tensor whitening_filters(const at::Tensor& images, int64_t kernel, double epsilon) {
  if (images.size(2) < kernel || images.size(3) < kernel)
    fail_usage("whitening needs images of at least ", kernel, "x", kernel, " pixels, got ", images.size(2), "x",
               images.size(3));
  const at::Tensor moments = patch_moments(images.to(at::kFloat).contiguous(), kernel);
  const auto [values, vectors] = at::linalg_eigh(moments, "L");  // vectors in columns
  const at::Tensor filters = (vectors.t() / (values + epsilon).sqrt().unsqueeze(1))
                                 .reshape({moments.size(0), images.size(1), kernel, kernel})
                                 .to(at::kFloat);
  return at::cat({filters, -filters});
}

}  // namespace sparsight
