#include "sparsight/report/run/confused_file.h"

#include <algorithm>
#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/readers/jpeg_write.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/data/transforms/resize.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"
#include "sparsight/report/charts/prediction_charts.h"
#include "sparsight/report/html.h"
#include "sparsight/report/run/read_explanation.h"

namespace sparsight {
namespace {

constexpr const char* kConfusedName = "confused.json";
constexpr int64_t kThumbnailSide = 96;   // in pixels, the longer one
constexpr int64_t kLosslessSide = 64;    // images up to here are PNG files as they are
constexpr int kThumbnailQuality = 80;    // of JPEG
constexpr size_t kMaxThumbnails = 1000;  // images that are read again after an evaluation

// image: [C,H,W] uint8; of other than 1 and 3 channels the first one is shown.
std::string thumbnail_uri(at::Tensor image) {
  if (image.size(0) != 1 && image.size(0) != 3) image = image.narrow(0, 0, 1);
  const int64_t height = image.size(1), width = image.size(2), longer = std::max(height, width);
  if (longer <= kLosslessSide) return data_uri("image/png", encode_png(image));
  const int64_t side = std::min(longer, kThumbnailSide);
  const at::Tensor small = resize_image(image, std::max<int64_t>(1, height * side / longer),
                                        std::max<int64_t>(1, width * side / longer), "bilinear");
  return data_uri("image/jpeg", encode_jpeg(small, kThumbnailQuality));
}

// "" if it cannot be read: the evaluation has said so.
std::string picture_of_image(const DataSet& data, int64_t index) {
  try {
    return thumbnail_uri(data.get(index).image);
  } catch (const Error&) {
    return "";
  }
}

// The end of a path says more than its beginning. The result is valid UTF-8.
std::string shortened_id(const std::string& id) {
  const std::string whole = printable(id);
  if (whole.size() <= kMaxConfusedIdBytes) return whole;
  size_t begin = whole.size() - kMaxConfusedIdBytes;
  while (begin < whole.size() && (static_cast<unsigned char>(whole[begin]) & 0xC0) == 0x80) ++begin;
  return "..." + whole.substr(begin);
}

Json cells_without_pictures(const std::vector<ConfusedCell>& cells, const DataInfo& info) {
  const auto name = [&](int64_t k) {
    return k < std::ssize(info.classes) ? info.classes[static_cast<size_t>(k)] : std::to_string(k);
  };
  Json list = Json::array();
  for (const ConfusedCell& cell : cells) {
    Json confused = Json::array();
    for (const ConfusedImage& image : cell.worst)
      confused.push_back({{"index", image.index}, {"probability", image.probability}, {"id", shortened_id(image.id)}});
    list.push_back({{"true", name(cell.truth)},
                    {"predicted", name(cell.predicted)},
                    {"images", cell.images},
                    {"confused", std::move(confused)}});
  }
  return list;
}

void add_thumbnails(Json& cells, const DataSet& data) {
  size_t bytes = 0, read = 0;
  for (size_t rank = 0; rank < ConfusedImages::kMaxImages; ++rank)
    for (Json& cell : cells) {
      Json& confused = cell["confused"];
      if (rank >= confused.size()) continue;
      if (read++ == kMaxThumbnails) return;
      const std::string picture = picture_of_image(data, confused[rank]["index"].get<int64_t>());
      bytes += picture.size();
      if (bytes > kMaxConfusedPictureBytes) return;
      if (!picture.empty()) confused[rank]["picture"] = picture;
    }
}

// Whether it is a PNG or JPEG file as data_uri() writes it: nothing else reaches the attribute of an image.
bool is_picture_uri(const std::string& uri) {
  for (const std::string prefix : {"data:image/png;base64,iVBORw0KGgo", "data:image/jpeg;base64,/9j/"})
    if (uri.starts_with(prefix))
      return std::ranges::all_of(uri.substr(uri.find(',') + 1), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/' ||
               c == '=';
      });
  return false;
}

Json checked_image(const Json& image, size_t& bytes) {
  Json checked{{"index", number(image, "index").value_or(0)},
               {"probability", std::clamp(number(image, "probability").value_or(0), 0.0, 1.0)},
               {"id", shortened_id(text(image, "id"))}};
  const std::string picture = text(image, "picture");
  if (!is_picture_uri(picture) || bytes + picture.size() > kMaxConfusedPictureBytes) return checked;
  bytes += picture.size();
  checked["picture"] = picture;
  return checked;
}

Json checked_cells(const Json& cells) {
  Json list = Json::array();
  size_t bytes = 0;
  for (size_t i = 0; cells.is_array() && i < std::min(cells.size(), kMaxConfusedCells); ++i) {
    const Json& images = member(cells[i], "confused");
    Json confused = Json::array();
    for (size_t j = 0; images.is_array() && j < std::min(images.size(), ConfusedImages::kMaxImages); ++j)
      confused.push_back(checked_image(images[j], bytes));
    if (confused.empty()) continue;
    list.push_back({{"true", text(cells[i], "true")},
                    {"predicted", text(cells[i], "predicted")},
                    {"images", number(cells[i], "images").value_or(0)},
                    {"confused", std::move(confused)}});
  }
  return list;
}

bool is_of_evaluation(const Json& confused, const Json& eval) {
  return text(confused, "split") == text(eval, "split") && text(confused, "weights") == text(eval, "weights") &&
         number(confused, "step") == number(eval, "step") && number(confused, "images") == number(eval, "images");
}

}  // namespace

void write_confused(const std::string& file, const ConfusedImages& images, const DataSet& data, const Json& eval) {
  std::vector<ConfusedCell> cells = images.cells();
  const size_t most = data.info().classes.size() > kMaxConfusionClasses ? kListedConfusionsOnPage : kMaxConfusedCells;
  if (cells.size() > most) cells.resize(most);
  Json json{{"format", "sparsight-confused"}, {"version", 1}, {"data", data.info().name}};
  for (const char* const key : {"split", "step", "weights", "images"}) json[key] = member(eval, key);
  json["cells"] = cells_without_pictures(cells, data.info());
  add_thumbnails(json["cells"], data);
  write_file_atomically(file, checked_json_file(json));
}

Json read_confused(const std::string& run, const Json& eval, std::vector<std::string>& warnings) {
  std::error_code none;
  if (!std::filesystem::exists(std::filesystem::symlink_status(run + "/" + kConfusedName, none))) return Json();
  Json confused;
  attempt(warnings, [&] { confused = read_object(run, kConfusedName); });
  if (confused.is_null()) return Json();
  if (!is_of_evaluation(confused, eval)) {
    warnings.push_back(cat(kConfusedName,
                           " is left out: it is of another evaluation than the one shown; "
                           "`sparsight eval RUN --confused` writes it again"));
    return Json();
  }
  return checked_cells(member(confused, "cells"));
}

}  // namespace sparsight
