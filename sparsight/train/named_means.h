// Named numbers that updates report and the Trainer averages without knowing what they mean.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/options.h"

namespace sparsight {

// The mean of a name is its sum divided by its count, such as a loss over batches or correct answers over images.
class NamedMeans {
 public:
  void add(const std::string& name, double sum, double count);
  void add(const NamedMeans& other);

  bool empty() const { return entries_.empty(); }
  // The first mean as "loss 0.123"; "" if there is none.
  std::string headline() const;
  // Puts the means into `line`, in the order in which they were added; "losses/load" becomes {"losses": {"load": ...}}.
  void write_to(Json& line) const;

  // {name: [sum, count]}
  Json to_json() const;
  static NamedMeans from_json(const Json& json);  // throws nlohmann's exceptions for anything else

 private:
  struct Entry {
    std::string name;
    double sum = 0, count = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace sparsight
