#include "sparsight/models/routing_file.h"

#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/models/routing_format.h"
#include "sparsight/models/routing_record.h"
#include "sparsight/moe/finish_routing.h"

namespace sparsight {
namespace {

constexpr int64_t kMax = int64_t{1} << 40, kMaxExperts = 65536;  // tokens; experts, and slots per expert

// The sizes of a layer, without its tensors.
Routing sized(const std::string& layer, const Json& sizes) {
  const auto count = [&](const char* name) {
    const Json value = sizes.value(name, Json());
    if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > kMax)
      fail(printable(name), " of layer \"", printable(layer), "\" must be an integer from 0 to ", kMax);
    return value.get<int64_t>();
  };
  Routing r;
  r.layer = layer;
  r.layout = {count("images"), count("per_image"), count("prefix"), count("grid_height"), count("grid_width")};
  r.experts = count("experts");
  r.per_token = count("per_token");
  if (r.layout.per_image > 0 && r.layout.images > kMax / r.layout.per_image)
    fail("layer \"", printable(layer), "\" has more than ", kMax, " tokens");
  r.tokens = r.layout.images * r.layout.per_image;
  if (r.experts == 0 || r.experts > kMaxExperts || r.per_token > r.experts || count("slots") > kMaxExperts)
    fail("layer \"", printable(layer), "\" has ", r.experts, " experts, ", r.per_token, " per token, and ",
         count("slots"), " slots; allowed are 1 to ", kMaxExperts,
         " experts, at most all of them per token, and at most ", kMaxExperts, " slots");
  return r;
}

void check_indices(const at::Tensor& index, const char* name, int64_t size) {
  if (index.scalar_type() != torch::kLong) fail(name, " must be int64, got ", index.scalar_type());
  if (index.numel() > 0 && (index.min().item<int64_t>() < 0 || index.max().item<int64_t>() >= size))
    fail(name, " must be from 0 to ", size - 1, ", got ", index.min().item<int64_t>(), " to ",
         index.max().item<int64_t>());
}

void check_finite(const at::Tensor& values, const char* name) {
  if (!values.is_floating_point()) fail(name, " must be floating-point numbers, got ", values.scalar_type());
  if (!at::isfinite(values).all().item<bool>()) fail(name, " has NaN or infinite values");
}

void check_choices(Routing& r) {
  const int64_t assignments = r.token.numel();
  for (const auto& [name, field] : choice_fields())
    if ((r.*field).sizes() != at::IntArrayRef({assignments}))
      fail(name, " has shape ", (r.*field).sizes(), ", expected [", assignments, "], that of token");
  check_indices(r.token, "token", r.tokens);
  check_indices(r.expert, "expert", r.experts);
  check_indices(r.rank, "rank", std::max<int64_t>(1, std::max(r.tokens, r.experts)));
  check_finite(r.gate, "gate");
  if (r.kept.scalar_type() != torch::kBool) fail("kept must be bool, got ", r.kept.scalar_type());
  if (std::get<0>(at::_unique(r.token * r.experts + r.expert)).numel() != assignments)
    fail("a token is assigned to the same expert twice");
  if (r.per_token > 0) {
    const at::Tensor position = r.token * r.per_token + r.rank;
    if ((r.rank >= r.per_token).any().item<bool>() || (position.diff() <= 0).any().item<bool>())
      fail("assignments must be sorted by token, then by rank, with ranks below ", r.per_token);
  }
  finish_routing(r);
}

void check_soft(const Routing& r, const SoftRouting& soft) {
  const std::vector<int64_t> sizes{r.layout.images, r.layout.per_image, r.experts * soft.slots};
  for (const auto& [name, field] : soft_fields()) {
    if ((soft.*field).sizes() != at::IntArrayRef(sizes))
      fail(name, " has shape ", (soft.*field).sizes(), ", expected ", at::IntArrayRef(sizes));
    check_finite(soft.*field, name);
  }
}

Routing read_layer(const std::string& layer, const Json& sizes, const std::map<std::string, at::Tensor>& tensors) {
  const auto tensor = [&](const char* field) {
    const auto found = tensors.find(layer + "/" + field);
    if (found == tensors.end()) fail("the tensor \"", printable(layer), "/", field, "\" is missing");
    return found->second;
  };
  Routing r = sized(layer, sizes);
  const int64_t slots = sizes.value("slots", int64_t{0});
  if (slots > 0) {
    SoftRouting soft;
    soft.layer = layer;
    soft.layout = r.layout;
    soft.experts = r.experts;
    soft.slots = slots;
    for (const auto& [name, field] : soft_fields()) soft.*field = tensor(name);
    check_soft(r, soft);
    r.soft = std::make_shared<const SoftRouting>(std::move(soft));
    return r;
  }
  const std::vector<int64_t> by_image{r.layout.images, r.layout.per_image, r.per_token};
  for (const auto& [name, field] : choice_fields()) {
    const at::Tensor values = tensor(name);
    r.*field = values.sizes() == at::IntArrayRef(by_image) ? values.flatten() : values;
  }
  check_choices(r);
  return r;
}

}  // namespace

void write_routings(const std::string& path, const Routings& routings) {
  RoutingRecordWriter writer(path);
  writer.add(routings, {});
  writer.commit({});
}

Routings read_routings(const std::string& path) {
  const TensorFile file = read_safetensors(path, [](const std::string& name) {
    return !name.starts_with("images/") && !name.ends_with(cat("/", kCleanLogits));
  });
  const auto text = [&](const char* key) {
    const auto found = file.metadata.find(key);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  if (text("format") != kRoutingFormat) fail(printable(path), " is not a routing file; write one with --save-routing");
  if (text("version") != kRoutingVersion && text("version") != kFlatRoutingVersion)
    fail(printable(path), " has format version \"", printable(text("version")), "\", this program reads versions ",
         kFlatRoutingVersion, " and ", kRoutingVersion, "; write it again with --save-routing");
  try {
    const Json layers = parse_json_object(text("layers"), "its list of layers");
    const std::map<std::string, at::Tensor> tensors(file.tensors.begin(), file.tensors.end());
    if (layers.empty()) fail("it has no layers; write it again with --save-routing");
    Routings routings;
    for (const auto& [layer, sizes] : layers.items()) routings.emplace(layer, read_layer(layer, sizes, tensors));
    return routings;
  } catch (const nlohmann::json::exception&) {
    fail(printable(path), ": its list of layers is damaged; write it again with --save-routing");
  } catch (const Error& error) {
    fail(printable(path), ": ", error.what());
  }
}

RoutingReplay read_replay(const std::string& path, int64_t images, const std::string& counted) {
  if (path.empty()) return {};
  const Routings routings = read_routings(path);
  for (const auto& [layer, routing] : routings)
    if (routing.layout.images != images)
      fail(printable(path), " has routings for ", routing.layout.images, " images, but ", counted,
           "; save it again for the same images");
  return RoutingReplay(routings);
}

}  // namespace sparsight
