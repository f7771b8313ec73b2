// How another library names the tensors of a family of models, declared once and used in both directions: to read its
// files, and to write files that it reads.
#pragma once

#include <string>
#include <vector>

#include "sparsight/io/safetensors.h"

namespace sparsight {

// One line of a naming. In names "#" stands for any number and a "*" at the end for the rest; a rule has the same ones
// in the same order on both sides.
struct NameRule {
  enum class Shape { same, channels };  // channels: [C,1,1] there, [C] here

  // Their name; or those of several tensors of one shape, which are one tensor here, along the first axis.
  std::vector<std::string> theirs;
  std::string ours;
  Shape shape = Shape::same;
  // Further names under which they save the same tensor: read where there is none under their name, written again when
  // writing.
  std::vector<std::string> copies = {};
};

struct WeightNaming {
  std::string library;              // "torchvision"
  std::string model;                // "VisionTransformer", for messages
  std::vector<std::string> theirs;  // names that a file of theirs has, all of them; as in rules, with "#" and "*"
  std::vector<std::string> ours;    // the same of ours
  std::vector<NameRule> rules;      // the first that fits a name counts, in both directions
};

// The rule of a tensor that has the same name on both sides.
NameRule same_name(const std::string& name);
// Rules whose names, theirs and ours, are under these prefixes.
std::vector<NameRule> under(const std::string& theirs, const std::string& ours, std::vector<NameRule> rules);
void append(std::vector<NameRule>& rules, const std::vector<NameRule>& more);

bool is_named_by_them(const WeightNaming& naming, const NamedTensors& tensors);
bool is_named_by_us(const WeightNaming& naming, const NamedTensors& tensors);

// Their tensors under our names; names that no rule fits stay. Raises Error where a part of a joined tensor is missing,
// there twice or of another shape or type, and where two tensors get one name.
NamedTensors to_our_names(const WeightNaming& naming, const NamedTensors& theirs);

// Our tensors under their names. Raises Error for a tensor that their model does not have.
NamedTensors to_their_names(const WeightNaming& naming, const NamedTensors& ours);

}  // namespace sparsight
