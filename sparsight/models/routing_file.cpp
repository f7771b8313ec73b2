#include "sparsight/models/routing_file.h"

#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/moe/finish_routing.h"

namespace sparsight {
namespace {

constexpr char kFormat[] = "sparsight.routings", kVersion[] = "1";
constexpr int64_t kMost = int64_t{1} << 40, kMostExperts = 65536;  // tokens; experts, and slots of each

// The fields that a file holds of a routing that chose.
std::vector<std::pair<const char*, at::Tensor Routing::*>> choice_fields() {
  return {{"token", &Routing::token},
          {"expert", &Routing::expert},
          {"rank", &Routing::rank},
          {"gate", &Routing::gate},
          {"kept", &Routing::kept}};
}

std::vector<std::pair<const char*, at::Tensor SoftRouting::*>> soft_fields() {
  return {{"logits", &SoftRouting::logits}, {"dispatch", &SoftRouting::dispatch}, {"combine", &SoftRouting::combine}};
}

Json sizes_of(const Routing& r) {
  const TokenLayout& l = r.layout;
  return {{"images", l.images},           {"per_image", l.per_image},           {"prefix", l.prefix},
          {"grid_height", l.grid_height}, {"grid_width", l.grid_width},         {"experts", r.experts},
          {"per_token", r.per_token},     {"slots", r.soft ? r.soft->slots : 0}};
}

// The sizes of a layer, without its tensors.
Routing sized(const std::string& layer, const Json& sizes) {
  const auto count = [&](const char* name) {
    const Json value = sizes.value(name, Json());
    if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > kMost)
      fail(printable(name), " of layer \"", printable(layer), "\" must be an integer from 0 to ", kMost);
    return value.get<int64_t>();
  };
  Routing r;
  r.layer = layer;
  r.layout = {count("images"), count("per_image"), count("prefix"), count("grid_height"), count("grid_width")};
  r.experts = count("experts");
  r.per_token = count("per_token");
  if (r.layout.per_image > 0 && r.layout.images > kMost / r.layout.per_image) fail("it has too many tokens");
  r.tokens = r.layout.images * r.layout.per_image;
  if (r.experts == 0 || r.experts > kMostExperts || r.per_token > r.experts || count("slots") > kMostExperts)
    fail("layer \"", printable(layer), "\" has ", r.experts, " experts, ", r.per_token, " for each token, and ",
         count("slots"), " slots; experts and slots are at most ", kMostExperts);
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
  if (!at::isfinite(values).all().item<bool>()) fail(name, " holds NaN or infinite numbers");
}

void check_choices(Routing& r) {
  const int64_t assignments = r.token.numel();
  for (const auto& [name, field] : choice_fields())
    if ((r.*field).sizes() != at::IntArrayRef({assignments}))
      fail(name, " has the shape ", (r.*field).sizes(), ", expected [", assignments, "] as token");
  check_indices(r.token, "token", r.tokens);
  check_indices(r.expert, "expert", r.experts);
  check_indices(r.rank, "rank", std::max<int64_t>(1, std::max(r.tokens, r.experts)));
  check_finite(r.gate, "gate");
  if (r.kept.scalar_type() != torch::kBool) fail("kept must be bool, got ", r.kept.scalar_type());
  if (std::get<0>(at::_unique(r.token * r.experts + r.expert)).numel() != assignments)
    fail("a token goes to the same expert twice");
  if (r.per_token > 0) {
    const at::Tensor place = r.token * r.per_token + r.rank;
    if ((r.rank >= r.per_token).any().item<bool>() || (place.diff() <= 0).any().item<bool>())
      fail("assignments must be in order of token and then of rank, ranks below ", r.per_token);
  }
  finish_routing(r);
}

void check_soft(const Routing& r, const SoftRouting& soft) {
  const std::vector<int64_t> sizes{r.layout.images, r.layout.per_image, r.experts * soft.slots};
  for (const auto& [name, field] : soft_fields()) {
    if ((soft.*field).sizes() != at::IntArrayRef(sizes))
      fail(name, " has the shape ", (soft.*field).sizes(), ", expected ", at::IntArrayRef(sizes));
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
  for (const auto& [name, field] : choice_fields()) r.*field = tensor(name);
  check_choices(r);
  return r;
}

void check_alike(const Routing& a, const Routing& b) {
  const bool alike = a.layer == b.layer && a.experts == b.experts && a.layout.per_image == b.layout.per_image &&
                     a.per_token == b.per_token && !a.soft == !b.soft && (!a.soft || a.soft->slots == b.soft->slots);
  if (!alike) fail("decisions of ", printable(a.layer), " and ", printable(b.layer), " cannot be joined: they differ");
}

// Without what only the pass that made the decision needs.
Routing replayable(const Routing& from) {
  Routing r;
  r.layer = from.layer;
  r.layout = from.layout;
  r.tokens = from.tokens;
  r.experts = from.experts;
  r.per_token = from.per_token;
  return r;
}

std::shared_ptr<const SoftRouting> soft_of(const SoftRouting& like, const Routing& r,
                                           const std::function<at::Tensor(at::Tensor SoftRouting::*)>& tensor) {
  SoftRouting soft;
  soft.layer = r.layer;
  soft.layout = r.layout;
  soft.experts = like.experts;
  soft.slots = like.slots;
  for (const auto& [name, field] : soft_fields()) soft.*field = tensor(field);
  return std::make_shared<const SoftRouting>(std::move(soft));
}

}  // namespace

Routings routings_of(const ModelOutput& output) {
  Routings routings;
  for (const Routing& routing : output.routings) routings[routing.layer] = detached(routing);
  for (const SoftRouting& soft : output.soft_routings) {
    Routing& routing = routings[soft.layer];
    routing.layer = soft.layer;
    routing.layout = soft.layout;
    routing.tokens = soft.layout.images * soft.layout.per_image;
    routing.experts = soft.experts;
    routing.soft = std::make_shared<const SoftRouting>(soft);
  }
  return routings;
}

Routing joined(const std::vector<Routing>& parts) {
  SPARSIGHT_CHECK(!parts.empty());
  Routing r = replayable(parts.front());
  std::vector<int64_t> first;  // token of each part
  r.tokens = r.layout.images = 0;
  for (const Routing& part : parts) {
    check_alike(parts.front(), part);
    first.push_back(r.tokens);
    r.tokens += part.tokens;
    r.layout.images += part.layout.images;
  }
  if (parts.front().soft) {
    r.soft = soft_of(*parts.front().soft, r, [&](at::Tensor SoftRouting::*field) {
      std::vector<at::Tensor> all;
      for (const Routing& part : parts) all.push_back((*part.soft.*field).detach());
      return at::cat(all);
    });
    return r;
  }
  for (const auto& [name, field] : choice_fields()) {
    std::vector<at::Tensor> all;
    for (size_t i = 0; i < parts.size(); ++i) {
      const at::Tensor values = (parts[i].*field).detach();
      all.push_back(field == &Routing::token ? values + first[i] : values);
    }
    r.*field = at::cat(all);
  }
  finish_routing(r);
  return r;
}

Routing of_images(const Routing& routing, const at::Tensor& image) {
  if (image.numel() > 0 && (image.min().item<int64_t>() < 0 || image.max().item<int64_t>() >= routing.layout.images))
    fail("the routing of ", printable(routing.layer), " is of ", routing.layout.images,
         " images, asked for image number ", image.max().item<int64_t>());
  Routing r = replayable(routing);
  r.layout.images = image.numel();
  r.tokens = r.layout.images * r.layout.per_image;
  if (routing.soft) {
    r.soft = soft_of(*routing.soft, r,
                     [&](at::Tensor SoftRouting::*field) { return ((*routing.soft).*field).index_select(0, image); });
    return r;
  }
  // moved[b]: where image b comes to stand; -1: nowhere.
  at::Tensor moved = torch::full({routing.layout.images}, -1, torch::kLong);
  moved.index_copy_(0, image, torch::arange(image.numel(), torch::kLong));
  const int64_t per_image = std::max<int64_t>(1, routing.layout.per_image);
  const at::Tensor now = moved.index_select(0, routing.token.floor_divide(per_image));
  at::Tensor wanted = at::nonzero(now >= 0).squeeze(1);
  at::Tensor token = (now * per_image + routing.token.remainder(per_image)).index_select(0, wanted);
  if (routing.per_token > 0) {  // in order of token and then of rank
    const auto [sorted, place] = at::sort(token, /*stable=*/std::optional<bool>(true), 0, /*descending=*/false);
    token = sorted;
    wanted = wanted.index_select(0, place);
  }
  for (const auto& [name, field] : choice_fields()) r.*field = (routing.*field).index_select(0, wanted);
  r.token = token;
  finish_routing(r);
  return r;
}

Routings of_images(const Routings& routings, const at::Tensor& image) {
  Routings some;
  for (const auto& [layer, routing] : routings) some.emplace(layer, of_images(routing, image));
  return some;
}

void write_routings(const std::string& path, const Routings& routings) {
  TensorFile file;
  Json layers = Json::object();
  for (const auto& [layer, routing] : routings) {
    layers[layer] = sizes_of(routing);
    const auto add = [&, &name = layer](const char* field, const at::Tensor& tensor) {
      file.tensors.emplace_back(name + "/" + field, tensor.detach().contiguous());
    };
    if (routing.soft)
      for (const auto& [name, field] : soft_fields()) add(name, (*routing.soft).*field);
    else
      for (const auto& [name, field] : choice_fields()) add(name, routing.*field);
  }
  file.metadata = {{"format", kFormat}, {"version", kVersion}, {"layers", layers.dump()}};
  write_safetensors(path, file);
}

Routings read_routings(const std::string& path) {
  const TensorFile file = read_safetensors(path);
  const auto text = [&](const char* key) {
    const auto found = file.metadata.find(key);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  if (text("format") != kFormat) fail(printable(path), " is no file of routings; --save-routing writes one");
  if (text("version") != kVersion)
    fail(printable(path), " is of version ", printable(text("version")), " of the format; this program reads version ",
         kVersion);
  try {
    const Json layers = Json::parse(text("layers"));
    const std::map<std::string, at::Tensor> tensors(file.tensors.begin(), file.tensors.end());
    Routings routings;
    for (const auto& [layer, sizes] : layers.items()) routings.emplace(layer, read_layer(layer, sizes, tensors));
    return routings;
  } catch (const nlohmann::json::exception&) {
    fail(printable(path), ": its list of layers is damaged");
  } catch (const Error& error) {
    fail(printable(path), ": ", error.what());
  }
}

}  // namespace sparsight
