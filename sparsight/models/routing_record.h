// A routing file that grows batch by batch, in constant memory: each token's experts and gates, the routers' logits,
// and which image of which class and domain it was. docs/file_formats.md has the tensors. Letters: moe/axes.md; n
// images.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/io/safetensors_rows.h"
#include "sparsight/models/routings.h"

namespace sparsight {

struct RoutedImage {
  std::string id;
  int64_t label = -1, domain = -1;  // by number, -1 if unknown
};

// On the disk the record takes twice its size while it is written.
class RoutingRecordWriter {
 public:
  explicit RoutingRecordWriter(const std::string& path) : columns_(path) {}
  // Adds one batch, whose images are `images`: given for all batches or none. Raises Error where the routings of a
  // layer differ in kind or sizes between batches.
  void add(const Routings& routings, const std::vector<RoutedImage>& images);
  // Writes the file. source: what the manifest says about the images and the model, {"data", "split", "classes",
  // "domains", "checkpoint", ...} as far as it is known.
  void commit(const Json& source);

 private:
  struct Layer {
    Json sizes;  // without the number of images
    int64_t images = 0, tokens = 0;
    bool full = true;  // every token has as many choices as the router allows
    std::vector<const char*> fields;
  };
  void add_layer(const std::string& name, const Routing& routing);
  void add_images(const std::vector<RoutedImage>& images);
  Json layer_manifest(const std::string& name, const Layer& layer);

  SafetensorsRowWriter columns_;
  std::map<std::string, Layer> layers_;
  int64_t images_ = 0, id_bytes_ = 0;
};

// All of such a file.
struct RoutingRecord {
  Routings routings;                               // without logits
  std::map<std::string, at::Tensor> clean_logits;  // [n,S,E] by layer
  std::vector<RoutedImage> images;                 // [n], or {} where the writer did not know them
  Json manifest;
};

// Raises Error as read_routings() does.
RoutingRecord read_routing_record(const std::string& path);

}  // namespace sparsight
