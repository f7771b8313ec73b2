// What CNNs and vision transformers make of images by their architecture, on models that are trained for minutes.
#pragma once

#include "sparsight/reproduce/figure.h"

namespace sparsight::gmoe {

Figure example1_figure();   // gmoe/example1: shape or colour, where colour goes with the shape in training
Figure frequency_figure();  // gmoe/frequency: attention is a low-pass filter, convolution a high-pass one

}  // namespace sparsight::gmoe
