// How much of a feature map is in its high frequencies, as Park and Kim 2022, "How Do Vision Transformers Work?",
// section 2 and figure 2, measure it: the relative log amplitude of its Fourier transform.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// maps: [B,C,S,S] of a floating-point type, finite, S >= 2; Error otherwise. Entry k of the result, k = 0 .. S/2, is
//
//   A_k = mean over images and channels of ln(|F(k,k)| + 1e-6),  F(k,l) = sum_yx f(y,x) exp(-2 pi i (k y + l x) / S)
//
// the log amplitude on the diagonal of the spectrum at the frequency 2 k/S pi, minus A_0. So the first entry is 0. The
// constant is that of the authors' code.
// Differs from the paper: of an even S the last entry is at the frequency pi itself; the authors' code ends at the one
// before.
std::vector<double> relative_log_amplitudes(const at::Tensor& maps);

// The last of them: the high frequencies against the constant part. An operation that lowers it is a low-pass filter,
// one that raises it a high-pass filter.
double high_frequency_amplitude(const at::Tensor& maps);

}  // namespace sparsight
