// What each attention, MLP and convolution block of a model does to the frequencies of its feature maps.
#pragma once

#include <string>
#include <vector>

#include "sparsight/models/image_model.h"

namespace sparsight::gmoe {

inline const char *const kAttention = "attention", *const kMlp = "MLP", *const kConvolution = "convolution";

// high_frequency_amplitude() (analysis/spectrum.h) of the feature maps before and after.
struct BlockSpectrum {
  std::string operation;
  int64_t layer = 0;         // number of the block in the model
  double before = 0;         // of the residual stream that the operation adds to
  double after = 0;          // of that with the operation's output
  double operation_in = 0;   // of what the operation itself takes: the stream, of a transformer normalised
  double operation_out = 0;  // of its output, before it is added
  double change() const { return after - before; }
  double operation_change() const { return operation_out - operation_in; }
};

// images: [B,C,H,W], pixels in 0..1. Of a ViT the attention and the MLP (or MoE layer) of each block, on the patch
// tokens; of a CNN the residual blocks that keep the shape of their map, whose operation is their first convolution. In
// order of the blocks. Raises Error for other models, and for maps that are not square.
std::vector<BlockSpectrum> block_spectra(ImageModel& model, const at::Tensor& images);

}  // namespace sparsight::gmoe
