#include "sparsight/serve/served_model.h"

#include <algorithm>
#include <cctype>

#include "sparsight/engine/images/decode.h"
#include "sparsight/serve/http_error.h"

namespace sparsight::serve {

bool ServedModel::takes_images() const {
  const auto& preprocessing = program->info.preprocessing;
  return preprocessing && (preprocessing->channels == 1 || preprocessing->channels == 3);
}

std::string ServedModel::class_name(int64_t label) const {
  const std::vector<std::string>& names = program->info.classes;
  return names.empty() ? std::to_string(label) : names.at(static_cast<size_t>(label));
}

std::string model_name(const std::string& wanted) {
  constexpr size_t kMaxName = 100;
  std::string name = wanted.substr(0, kMaxName);
  std::ranges::replace_if(
      name, [](unsigned char c) { return !(c < 128 && (std::isalnum(c) || c == '.' || c == '_' || c == '-')); }, '-');
  return name.empty() ? "model" : name;
}

PreparedImage prepare_image(const ServedModel& model, ByteView file, int64_t max_pixels) {
  const engine::Program& program = *model.program;
  if (!model.takes_images())
    fail_http(400, "the model ", model.name, " does not say how a picture becomes its pixels; send the input pixels");
  const engine::Preprocessing& preprocessing = *program.info.preprocessing;
  try {
    const engine::ByteImage image = engine::decode_byte_image(
        file, "the picture", {.channels = static_cast<int>(preprocessing.channels), .max_pixels = max_pixels});
    PreparedImage prepared{std::vector<float>(static_cast<size_t>(program.pixels().numbers())), image.width,
                           image.height};
    preprocessing.run(image.view(), prepared.pixels.data());
    return prepared;
  } catch (const Error& error) {
    throw HttpError(400, error.what());
  }
}

}  // namespace sparsight::serve
