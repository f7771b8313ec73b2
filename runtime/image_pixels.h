// From an image to the pixels that a model takes.
#pragma once

#include "sparsight/core/bytes.h"
#include "sparsight/engine/byte_image.h"
#include "sparsight/engine/images/planes.h"
#include "sparsight/engine/program.h"

namespace sparsight::runtime {

// Whether this library was built with decoders (decode_image.cpp, else decode_nothing.cpp).
bool decodes_image_files();

// channels: 1 or 3. Raises StatusError for bytes that are not an image, or where decodes_image_files() is false.
engine::ByteImage decode_image(ByteView bytes, int64_t channels);

// The channels of the images that become pixels of the model, 1 or 3. Raises StatusError where the model does not say
// how they do.
int64_t image_channels(const engine::Program& program);

// Raises StatusError for an image in the caller's memory that is not one.
void check_image(const engine::InterleavedView& image);

}  // namespace sparsight::runtime
