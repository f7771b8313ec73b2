// The model that a server answers with. Letters: moe/axes.md; K classes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/core/bytes.h"
#include "sparsight/engine/program.h"

namespace sparsight::serve {

struct ServedModel {
  std::string name;                                // in addresses: letters, digits, ".", "_" and "-"
  std::shared_ptr<const engine::Program> program;  // never null
  bool mixes_images = false;                       // experts of an image depend on the others of its batch

  bool takes_images() const;
  std::string class_name(int64_t label) const;  // its number where the program names no classes
};

// `wanted` with "-" for each character that a name may not have; "model" instead of nothing.
std::string model_name(const std::string& wanted);

struct PreparedImage {
  std::vector<float> pixels;                      // [C,H,W] in 0..1
  int64_t picture_width = 0, picture_height = 0;  // of the file, upright
};

// Decodes a file and makes the program's pixels of it. Raises HttpError: 400 for what is no picture of at most
// `max_pixels` pixels or does not fit, and where the model takes no files.
PreparedImage prepare_image(const ServedModel& model, ByteView file, int64_t max_pixels);

}  // namespace sparsight::serve
