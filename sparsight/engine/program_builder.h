// Collects the steps of a program, in the order in which they run. Models, blocks and MoE layers add theirs in their
// compile().
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sparsight/engine/experts.h"
#include "sparsight/engine/program.h"
#include "sparsight/kernels/types.h"

namespace sparsight::engine {

// The pixels of a model: C planes of H x W, and how they are normalised, [C] each or empty.
struct PixelInput {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<double> mean, std;
};

class ProgramBuilder {
 public:
  // Routers, norms and the head stay fp32.
  ProgramBuilder(PixelInput pixels, const WeightForm& form);

  const WeightForm& form() const { return form_; }
  WeightType type() const { return form_.type; }
  Value new_value(const Shape& shape);
  // Appends Kind(arguments...); returns what it writes.
  template <class Kind, class... Arguments>
  Value add(Arguments&&... arguments) {
    steps_.push_back(std::make_unique<Kind>(std::forward<Arguments>(arguments)...));
    return steps_.back()->to();
  }

  // The normalised pixels, as planes or as a map (channels last).
  Value planes() { return normalised(false); }
  Value map() { return normalised(true); }

  // Appends the decision of a router; returns its number.
  int64_t add_route(const std::string& layer, Value tokens, std::unique_ptr<Router> router, RoutePolicy policy);
  // The layers follow a decision that is not their own router's.
  void share_routing(int64_t number, const std::vector<std::string>& layers);
  // The number of the decision that the layer follows. Raises an internal error if there is none.
  int64_t find_routing(const std::string& layer) const;

  Program finish(Value features, Value logits);

 private:
  Value normalised(bool to_map);

  PixelInput pixels_;
  WeightForm form_;
  int64_t values_ = 1, routings_ = 0;
  std::vector<std::unique_ptr<Step>> steps_;
  std::map<std::string, int64_t> routing_of_layer_;
};

}  // namespace sparsight::engine
