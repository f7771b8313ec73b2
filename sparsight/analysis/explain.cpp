#include "sparsight/analysis/explain.h"

#include <algorithm>
#include <map>
#include <set>

#include "sparsight/analysis/image_parts.h"
#include "sparsight/analysis/patch_routing_report.h"
#include "sparsight/analysis/patch_tint.h"
#include "sparsight/analysis/router_accuracy.h"
#include "sparsight/analysis/routing_accumulator.h"
#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/progress.h"

namespace sparsight {

namespace {

// [C,H,W] fp32 of 0..1 -> [3,H,W] uint8
at::Tensor to_picture(const at::Tensor& shown) {
  const at::Tensor bytes = (shown.detach().to(at::kCPU) * 255).round().clamp(0, 255).to(at::kByte);
  return (bytes.size(0) == 3 ? bytes : bytes.narrow(0, 0, 1).expand({3, bytes.size(1), bytes.size(2)})).contiguous();
}

// "blocks.1.mlp, blocks.3.mlp (class token: experts 3, 0)"
std::string make_caption(const std::vector<Routing>& routings, int64_t index) {
  std::string layers, tokens;
  for (const Routing& routing : routings) {
    if (!can_tint(routing)) continue;
    layers += (layers.empty() ? "" : ", ") + routing.layer;
    const std::vector<int64_t> experts = first_experts(routing, index);
    for (int64_t s = 0; s < routing.layout.prefix; ++s)
      tokens += (tokens.empty() ? "" : ", ") + (experts[s] < 0 ? std::string("none") : std::to_string(experts[s]));
  }
  return layers + (tokens.empty() ? "" : " (class token: expert " + tokens + ")");
}

// A report for each layer and each attribute that contains cell numbers.
class CellReports {
 public:
  explicit CellReports(const ExplainOptions& options) : grid_(options.cell_grid) {
    if (grid_.size() != 2) return;
    for (size_t i = 0; i < options.attributes.size(); ++i)
      if (options.attributes[i] == "cell" || options.attributes[i].ends_with("_cell"))
        cells_.push_back({i, options.attributes[i]});
  }

  // labels: [B]. attributes: of each of the images.
  void add(const std::vector<Routing>& routings, const at::Tensor& labels,
           const std::vector<std::vector<float>>& attributes, int64_t classes) {
    for (const auto& [index, name] : cells_) {
      std::vector<int64_t> cells;
      for (const std::vector<float>& of_image : attributes)
        cells.push_back(index < of_image.size() ? static_cast<int64_t>(of_image[index]) : -1);
      for (const Routing& routing : routings)
        if (routing.layout.grid_height > 0 && routing.layout.grid_width > 0)
          reports_[{routing.layer, name}].add(patch_routing_report(
              routing, labels, patches_of_cells(at::tensor(cells, at::kLong), grid_, routing.layout), classes));
    }
  }

  Json json() const {
    Json list = Json::array();
    for (const auto& [key, report] : reports_) {
      if (std::all_of(report.images.begin(), report.images.end(), [](int64_t images) { return images == 0; })) continue;
      list.push_back(to_json(report));
      list.back()["of"] = key.second;
    }
    return list;
  }

 private:
  std::vector<int64_t> grid_;
  std::vector<std::pair<size_t, std::string>> cells_;                          // attributes
  std::map<std::pair<std::string, std::string>, PatchRoutingReport> reports_;  // by layer and attribute
};

std::string class_name(const std::vector<std::string>& classes, int64_t k) {
  if (k < 0) return "";
  return k < static_cast<int64_t>(classes.size()) ? classes[k] : std::to_string(k);
}

// A batch of images with their labels, ids and attributes.
struct ReadImages {
  std::vector<at::Tensor> images;  // the model's input
  std::vector<at::Tensor> shown;   // pictures for examples, else undefined
  std::vector<std::string> ids;
  std::vector<std::vector<float>> attributes;
  std::vector<int64_t> labels, domains;
  std::vector<MapSize> sizes;  // as read, before `pixels`
};

ReadImages read_images(const std::vector<ExplainItem>& items, int64_t begin, int64_t end, const ImagePixels& pixels,
                       const std::set<size_t>& pictured) {
  ReadImages read;
  for (int64_t i = begin; i < end; ++i) {
    const Sample sample = items[i].read();
    try {
      read.images.push_back(pixels(sample.image));
      read.shown.push_back(pictured.count(i) ? to_picture(read.images.back()) : at::Tensor());
    } catch (const Error& error) {
      fail("image ", sample.id, ": ", error.what());
    }
    read.ids.push_back(sample.id);
    read.attributes.push_back(sample.attributes);
    read.labels.push_back(items[i].label);
    read.domains.push_back(items[i].domain);
    read.sizes.push_back({sample.image.size(1), sample.image.size(2)});
    const at::Tensor &image = read.images.back(), &first = read.images.front();
    if (image.sizes() != first.sizes())
      fail("image ", sample.id, " is ", image.size(1), " x ", image.size(2), " after the transforms, others are ",
           first.size(1), " x ", first.size(2), "; a resize to [height, width] in transforms.eval makes them equal");
  }
  return read;
}

std::vector<RoutedImage> routed_images(const ReadImages& read) {
  std::vector<RoutedImage> images;
  for (size_t i = 0; i < read.ids.size(); ++i) images.push_back({read.ids[i], read.labels[i], read.domains[i]});
  return images;
}

class DomainsAndParts {
 public:
  explicit DomainsAndParts(const ExplainOptions& options)
      : domains_(options.domains), parts_(options.keypoints, options.domains) {}

  // Returns the parts of each image, in pixels of the model's input.
  std::vector<std::vector<PicturePoint>> add(const std::vector<Routing>& routings, const ReadImages& read) {
    const int64_t domains = std::ssize(domains_);
    if (domains > 1) by_domain_.add(routings, at::tensor(read.domains, at::kLong), domains);
    std::vector<std::vector<PicturePoint>> points;
    for (size_t b = 0; b < read.images.size(); ++b)
      points.push_back(parts_.add(routings, static_cast<int64_t>(b), read.ids[b], read.domains[b], read.sizes[b],
                                  {read.images[b].size(1), read.images[b].size(2)}));
    return points;
  }

  void put_into(Explanation& result) const {
    result.domains = domains_;
    result.domain_expert = by_domain_.class_expert();
    for (const Json& layer : by_domain_.layers())
      if (layer.contains("class_information"))
        result.domain_information[layer["layer"].get<std::string>()] = layer["class_information"];
    result.parts = parts_.names();
    result.part_experts = parts_.json();
  }

 private:
  std::vector<std::string> domains_;
  RoutingAccumulator by_domain_;
  ImageParts parts_;
};

struct ClassNames {
  std::string label, predicted;
};

// Image `b` of the batch as an example: its patches coloured by expert, if the routings can be shown that way.
Example make_example(const ReadImages& read, int64_t b, const ClassNames& names, double probability,
                     const std::vector<Routing>& routings, const std::vector<PicturePoint>& points) {
  Example example{read.ids[b], names.label, names.predicted, probability, read.shown[b], {}, ""};
  if (std::any_of(routings.begin(), routings.end(), can_tint)) {
    example.panels = routing_panels(example.picture, routings, b, 224, points);
    example.caption = make_caption(routings, b);
  }
  return example;
}

// Images without a label have no super-class that could be found, and a batch with one of them is left out.
void add_labelled(RouterAccuracy& accuracy, const std::vector<Routing>& routings, const at::Tensor& labels) {
  if (labels.ge(0).all().item<bool>()) accuracy.add(routings, labels);
}

}  // namespace

std::vector<size_t> spread_over_classes(const std::vector<ExplainItem>& items, size_t count) {
  std::map<int64_t, std::vector<size_t>> by_class;
  for (size_t i = 0; i < items.size(); ++i) by_class[items[i].label].push_back(i);
  std::map<int64_t, size_t> taken;  // of each class
  size_t left = std::min(count, items.size());
  for (size_t turn = 0; left > 0; ++turn)
    for (const auto& [label, members] : by_class)
      if (turn < members.size() && left > 0) ++taken[label], --left;
  std::vector<size_t> chosen;
  for (const auto& [label, number] : taken)
    for (size_t i = 0; i < number; ++i) {
      const std::vector<size_t>& members = by_class.at(label);
      chosen.push_back(members[(2 * i + 1) * members.size() / (2 * number)]);  // the middle of the i-th part
    }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

Explanation explain_images(const Predictor& model, const std::vector<ExplainItem>& items, const ImagePixels& pixels,
                           const std::vector<std::string>& classes, const ExplainOptions& options) {
  if (items.empty()) fail("there are no images to explain");
  const auto spread = spread_over_classes(items, static_cast<size_t>(std::max<int64_t>(0, options.examples)));
  const std::set<size_t> pictured(spread.begin(), spread.end());
  const int64_t total = static_cast<int64_t>(items.size());
  const bool any_label = std::ranges::any_of(items, [](const ExplainItem& item) { return item.label >= 0; });

  at::NoGradGuard no_grad;
  Explanation result;
  result.classes = classes;
  RoutingAccumulator routing;
  RouterAccuracy accuracy(any_label ? options.super_class_of : std::vector<int64_t>());
  CellReports cells(options);
  DomainsAndParts domains_and_parts(options);
  Progress progress("explain", total, "image");
  for (int64_t begin = 0; begin < total; begin += options.batch) {
    if (interrupted()) fail("interrupted after ", begin, " of ", total, " images; nothing was written");
    const int64_t end = std::min(total, begin + options.batch);
    const ReadImages read = read_images(items, begin, end, pixels, pictured);
    const at::Tensor numbers = at::arange(begin, end);
    const ModelOutput output =
        model({.images = at::stack(read.images), .info = {.image = numbers}, .routings = options.replay.of(numbers)});
    if (options.record) options.record->add(to_routings(output), routed_images(read));
    const at::Tensor logits = output.logits.to(at::kCPU, at::kDouble),
                     probabilities = options.sigmoid ? logits.sigmoid() : logits.softmax(1);
    if (!at::isfinite(probabilities).all().item<bool>())
      fail(
          "the model's outputs are not finite; its checkpoint is damaged or its training failed; try --checkpoint "
          "best");
    const at::Tensor predicted = probabilities.argmax(1);
    const at::Tensor labels = at::tensor(read.labels, at::kLong);
    const std::vector<std::vector<PicturePoint>> points = domains_and_parts.add(output.routings, read);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t guess = predicted[i - begin].item<int64_t>(), label = items[i].label;
      if (label >= 0) {
        ++result.labelled;
        result.correct += label == guess;
      }
      if (!pictured.count(i)) continue;
      result.examples.push_back(make_example(read, i - begin, {class_name(classes, label), class_name(classes, guess)},
                                             probabilities[i - begin][guess].item<double>(), output.routings,
                                             points[static_cast<size_t>(i - begin)]));
    }
    routing.add(output.routings, any_label ? labels : predicted, output.logits.size(1));
    add_labelled(accuracy, output.routings, labels);
    cells.add(output.routings, labels, read.attributes, output.logits.size(1));
    result.images += end - begin;
    progress.add(end - begin);
  }
  result.layers = routing.layers();
  accuracy.put_into(result.layers);
  if (!any_label)
    for (Json& layer : result.layers) layer.erase("class_information");
  result.class_expert = routing.class_expert();
  result.patch_routing = cells.json();
  domains_and_parts.put_into(result);
  return result;
}

}  // namespace sparsight
