// Images as tensors (engine/images/decode.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "sparsight/engine/images/decode.h"

namespace sparsight {

using engine::check_image_file;
using engine::has_image_ending;
using engine::image_kinds;
using engine::ImageDecoding;

// uint8 [C,H,W].
at::Tensor decode_image(ByteView bytes, const std::string& name, const ImageDecoding& decoding = {});
at::Tensor read_image(const std::string& path, const ImageDecoding& decoding = {});

}  // namespace sparsight
