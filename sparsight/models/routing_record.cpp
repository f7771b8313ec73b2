#include "sparsight/models/routing_record.h"

#include <cstring>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/models/routing_file.h"
#include "sparsight/models/routing_format.h"

namespace sparsight {
namespace {

Json routing_sizes(const Routing& r) {
  const TokenLayout& l = r.layout;
  return {{"per_image", l.per_image},           {"prefix", l.prefix},   {"grid_height", l.grid_height},
          {"grid_width", l.grid_width},         {"experts", r.experts}, {"per_token", r.per_token},
          {"slots", r.soft ? r.soft->slots : 0}};
}

const std::map<std::string, const char*>& meanings() {
  static const std::map<std::string, const char*> all{
      {"token", "position in the batch of all images: image * S + position in the image"},
      {"expert", "the chosen expert"},
      {"rank", "0 for the first choice"},
      {"gate", "weight of the expert's output"},
      {"kept", "whether the expert had capacity for it"},
      {kCleanLogits, "the router's logits of all experts, without noise"},
      {"logits", "the router's logits of all slots"},
      {"dispatch", "weights of the tokens in each slot"},
      {"combine", "weights of the slots in each token"},
      {kImageLabels, "class by its number in classes; of several labels the first; -1: unknown"},
      {kImageDomains, "domain by its number in domains; -1: unknown"},
      {kImageIds, "ids concatenated, as UTF-8"},
      {kImageIdEnds, "where each id ends"}};
  return all;
}

Json described(const std::string& tensor, const std::string& shape, const std::string& field) {
  return {{"tensor", tensor}, {"shape", shape}, {"holds", meanings().at(field)}};
}

std::vector<std::string> split_ids(const at::Tensor& bytes, const at::Tensor& ends) {
  std::vector<std::string> ids;
  int64_t begin = 0;
  for (int64_t i = 0; i < ends.numel(); ++i) {
    const int64_t end = ends.const_data_ptr<int64_t>()[i];
    if (end < begin || end > bytes.numel()) fail("the ends of its ids are not in order; it is damaged");
    ids.emplace_back(reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>()) + begin, end - begin);
    begin = end;
  }
  return ids;
}

}  // namespace

void RoutingRecordWriter::add_layer(const std::string& name, const Routing& routing) {
  Layer& layer = layers_[name];
  const Json sizes = routing_sizes(routing);
  if (layer.sizes.is_null()) layer.sizes = sizes;
  if (layer.sizes != sizes)
    fail("cannot record the routing of ", printable(name), ": its sizes are ", sizes.dump(),
         ", those of the batch before ", layer.sizes.dump());
  const int64_t images = routing.layout.images;
  const auto append = [&](const char* field, const at::Tensor& rows) {
    if (layer.images == 0) layer.fields.push_back(field);
    columns_.append(cat(name, "/", field), rows.detach());
  };
  if (routing.soft) {
    for (const auto& [field, tensor] : soft_fields()) append(field, (*routing.soft).*tensor);
  } else {
    for (const auto& [field, tensor] : choice_fields())
      append(field, tensor == &Routing::token ? routing.token + layer.tokens : routing.*tensor);
    layer.full &= routing.per_token > 0 && routing.expert.numel() == routing.tokens * routing.per_token &&
                  routing.tokens == images * routing.layout.per_image;
    for (const auto& [field, tensor] : choice_fields())
      layer.full &= (routing.*tensor).numel() == routing.expert.numel();
    if (routing.clean_logits.defined() && routing.clean_logits.size(0) == images * routing.layout.per_image)
      append(kCleanLogits, routing.clean_logits.reshape({images, routing.layout.per_image, routing.experts}));
  }
  layer.images += images;
  layer.tokens += routing.tokens;
}

void RoutingRecordWriter::add_images(const std::vector<RoutedImage>& images) {
  std::vector<int64_t> labels, domains, ends;
  std::string ids;
  for (const RoutedImage& image : images) {
    labels.push_back(image.label);
    domains.push_back(image.domain);
    ids += printable(image.id);
    ends.push_back(id_bytes_ + std::ssize(ids));
  }
  id_bytes_ += std::ssize(ids);
  at::Tensor bytes = at::empty({std::ssize(ids)}, at::kByte);
  if (!ids.empty()) std::memcpy(bytes.mutable_data_ptr(), ids.data(), ids.size());
  columns_.append(kImageLabels, at::tensor(labels, at::kLong));
  columns_.append(kImageDomains, at::tensor(domains, at::kLong));
  columns_.append(kImageIds, bytes);
  columns_.append(kImageIdEnds, at::tensor(ends, at::kLong));
  images_ += std::ssize(images);
}

void RoutingRecordWriter::add(const Routings& routings, const std::vector<RoutedImage>& images) {
  for (const auto& [name, routing] : routings) add_layer(name, routing);
  if (!images.empty()) add_images(images);
}

// Where every token has K choices, the columns become [n,S,K].
Json RoutingRecordWriter::layer_manifest(const std::string& name, const Layer& layer) {
  const int64_t per_image = layer.sizes["per_image"], per_token = layer.sizes["per_token"];
  const bool soft = layer.sizes["slots"] > 0, full = !soft && layer.full;
  Json tensors = Json::array();
  for (const char* field : layer.fields) {
    const std::string tensor = cat(name, "/", field);
    const bool logits = field == std::string(kCleanLogits);
    if (full && !logits) columns_.reshape(tensor, {layer.images, per_image, per_token});
    tensors.push_back(described(tensor, soft ? "n,S,P" : logits ? "n,S,E" : full ? "n,S,K" : "A", field));
  }
  return tensors;
}

void RoutingRecordWriter::commit(const Json& source) {
  Json layers = Json::object(), manifest = source.is_null() ? Json::object() : source;
  manifest["images"] = images_;
  manifest["tensors"] = Json::array();
  if (images_ > 0) {
    for (const auto& [tensor, shape] : {std::pair{kImageLabels, "n"}, std::pair{kImageDomains, "n"},
                                        std::pair{kImageIds, "bytes"}, std::pair{kImageIdEnds, "n"}})
      manifest["tensors"].push_back(described(tensor, shape, tensor));
  }
  for (const auto& [name, layer] : layers_) {
    if (images_ > 0 && layer.images != images_)
      fail("the routing of ", printable(name), " is of ", layer.images, " images, but ", images_, " were recorded");
    layers[name] = layer.sizes;
    layers[name]["images"] = layer.images;
    for (const Json& tensor : layer_manifest(name, layer)) manifest["tensors"].push_back(tensor);
  }
  columns_.commit({{"format", kRoutingFormat},
                   {"version", kRoutingVersion},
                   {"layers", layers.dump()},
                   {"manifest", manifest.dump(-1, ' ', false, Json::error_handler_t::replace)}});
}

RoutingRecord read_routing_record(const std::string& path) {
  RoutingRecord record;
  record.routings = read_routings(path);
  const TensorFile file = read_safetensors(path, [](const std::string& name) {
    return name.starts_with("images/") || name.ends_with(cat("/", kCleanLogits));
  });
  try {
    const std::map<std::string, at::Tensor> tensors(file.tensors.begin(), file.tensors.end());
    const auto manifest = file.metadata.find("manifest");
    if (manifest == file.metadata.end()) return record;  // of version 1
    record.manifest = parse_json_object(manifest->second, "its manifest");
    for (const auto& [name, routing] : record.routings) {
      const auto found = tensors.find(cat(name, "/", kCleanLogits));
      if (found == tensors.end()) continue;
      const std::vector<int64_t> shape{routing.layout.images, routing.layout.per_image, routing.experts};
      if (found->second.sizes() != at::IntArrayRef(shape))
        fail(printable(found->first), " has shape ", found->second.sizes(), ", expected ", at::IntArrayRef(shape));
      record.clean_logits.emplace(name, found->second);
    }
    if (!tensors.contains(kImageIdEnds)) return record;
    const std::vector<std::string> ids = split_ids(tensors.at(kImageIds), tensors.at(kImageIdEnds));
    const at::Tensor labels = tensors.at(kImageLabels), domains = tensors.at(kImageDomains);
    for (const at::Tensor& numbers : {labels, domains, tensors.at(kImageIdEnds)})
      if (numbers.scalar_type() != at::kLong || numbers.sizes() != at::IntArrayRef({std::ssize(ids)}))
        fail("the tensors of its images do not match; it is damaged");
    for (size_t i = 0; i < ids.size(); ++i)
      record.images.push_back({ids[i], labels.const_data_ptr<int64_t>()[i], domains.const_data_ptr<int64_t>()[i]});
    return record;
  } catch (const std::out_of_range&) {
    fail(printable(path), " lacks tensors of its images; it is damaged, write it again with --save-routing");
  } catch (const Error& error) {
    fail(printable(path), ": ", error.what());
  }
}

}  // namespace sparsight
