#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/mobile_vmoe/figures/mobile_figures.h"

namespace sparsight::mobile_vmoe {

Figure mobile_figure(const std::string& name, const std::string& title) {
  Figure figure;
  figure.name = name;
  figure.title = title;
  figure.needs = "CIFAR-100";
  figure.data = {mobile_data()};
  figure.measures = {{"accuracy", "top-1 accuracy (%)", 1, {"images"}},
                     {"difference", "minus dense (points)", 2},
                     {"router_accuracy", "router accuracy (%)", 1, {"images"}},
                     {"entropy", "usage entropy / ln E", 3},
                     {"busiest", "choices of the most used expert (%)"},
                     {"unused", "experts without any", 1},
                     {"distinct", "experts of an image, mean", 2},
                     {"distinct_most", "the most", 1},
                     {"touched", "parameters that an image uses (thousands)"},
                     {"parameters", "all parameters (thousands)"},
                     {"mflop", "MFLOP of an image", 2},
                     {"train_accuracy", "accuracy on the training images (%)"}};
  figure.notes = {
      "MFLOP: two for each multiply-add, and elementwise operations, which is the count that gives the paper's numbers "
      "for its own models. \"Parameters that an image uses\" counts shared ones and every expert that some token of "
      "the image goes to. The usage of each expert, a histogram, is in trials.jsonl under \"usage\".",
      "Router accuracy: test images whose most probable expert is that of their super-class; not defined where the "
      "router is not trained towards super-classes.",
      "Differs from the paper: small transformers on 32 x 32 images of 100 or fewer classes instead of ImageNet-1k, "
      "and a light recipe. The paper gives single runs; here intervals are over seeds, and rows with the same seed "
      "share the order of the images.",
      "Trained models are kept in the folder `models` beside the run folders, for all six figures: rows that several "
      "of them have are trained once."};
  return figure;
}

int64_t job_seed(const Json& job) { return job.at("seed").get<int64_t>(); }

Statistic between(const std::string& axis, const Json& at, const Json& other, const std::string& measure) {
  return row_difference({{axis, at}}, {{axis, other}}, measure);
}

std::string at_value(const Json& value) {
  return cat("at ", value.is_string() ? value.get<std::string>() : shown(value));
}

}  // namespace sparsight::mobile_vmoe
