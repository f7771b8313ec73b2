#include "sparsight/io/names/weight_naming.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

using NameParts = std::vector<std::string>;  // what the "#"s and the "*" of a pattern stand for, in order

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<NameParts> parts_of_name(std::string_view pattern, std::string_view name) {
  NameParts parts;
  size_t at = 0;
  for (const char c : pattern) {
    if (c == '*') {
      parts.emplace_back(name.substr(at));
      return parts;
    }
    const size_t begin = at;
    if (c == '#')
      while (at < name.size() && is_digit(name[at])) ++at;
    else if (at < name.size() && name[at] == c)
      ++at;
    if (at == begin) return std::nullopt;
    if (c == '#') parts.emplace_back(name.substr(begin, at - begin));
  }
  return at == name.size() ? std::optional(parts) : std::nullopt;
}

std::string with_parts(std::string_view pattern, const NameParts& parts) {
  std::string name;
  size_t next = 0;
  for (const char c : pattern) {
    if (c == '#' || c == '*')
      name += parts.at(next++);
    else
      name += c;
  }
  return name;
}

bool has_names(const std::vector<std::string>& patterns, const NamedTensors& tensors) {
  return std::ranges::all_of(patterns, [&](const std::string& pattern) {
    return std::ranges::any_of(tensors,
                               [&](const auto& entry) { return parts_of_name(pattern, entry.first).has_value(); });
  });
}

// A name of theirs in the rules: which part of a joined tensor it is, or that it is a copy.
struct TheirName {
  const NameRule* rule = nullptr;
  size_t part = 0;
  bool is_copy = false;
  NameParts parts;
};

std::optional<TheirName> find_their_name(const WeightNaming& naming, const std::string& name) {
  for (const NameRule& rule : naming.rules) {
    for (size_t i = 0; i < rule.theirs.size(); ++i)
      if (auto parts = parts_of_name(rule.theirs[i], name)) return TheirName{&rule, i, false, std::move(*parts)};
    for (const std::string& copy : rule.copies)
      if (auto parts = parts_of_name(copy, name)) return TheirName{&rule, 0, true, std::move(*parts)};
  }
  return std::nullopt;
}

// A tensor of ours that is in several of theirs.
struct JoinedTensor {
  std::vector<std::string> names;  // of theirs
  std::vector<at::Tensor> tensors;
};

at::Tensor joined_tensor(const std::string& name, const JoinedTensor& parts) {
  const at::Tensor& first = parts.tensors.front();
  const auto fits = [&](const at::Tensor& part) {
    return part.defined() && part.dim() > 0 && part.sizes() == first.sizes() &&
           part.scalar_type() == first.scalar_type();
  };
  if (!first.defined() || !std::ranges::all_of(parts.tensors, fits))
    fail(printable(name), " needs ", printable(join(parts.names)), ", of one shape and type; use another copy");
  return at::cat(parts.tensors);
}

at::Tensor in_our_shape(const NameRule& rule, const at::Tensor& theirs) {
  const bool of_channels = theirs.dim() == 3 && theirs.size(1) == 1 && theirs.size(2) == 1;
  return rule.shape == NameRule::Shape::channels && of_channels ? theirs.flatten() : theirs;
}

at::Tensor in_their_shape(const NameRule& rule, const at::Tensor& ours) {
  return rule.shape == NameRule::Shape::channels && ours.dim() == 1 ? ours.view({-1, 1, 1}) : ours;
}

void check_no_name_twice(const NamedTensors& tensors) {
  std::set<std::string> seen;
  for (const auto& [name, tensor] : tensors)
    if (!seen.insert(name).second) fail("two tensors of the file are ", printable(name), "; use another copy");
}

}  // namespace

NameRule same_name(const std::string& name) { return {{name}, name}; }

std::vector<NameRule> under(const std::string& theirs, const std::string& ours, std::vector<NameRule> rules) {
  for (NameRule& rule : rules) {
    for (std::string& name : rule.theirs) name.insert(0, theirs);
    rule.ours.insert(0, ours);
  }
  return rules;
}

void append(std::vector<NameRule>& rules, const std::vector<NameRule>& more) {
  rules.insert(rules.end(), more.begin(), more.end());
}

bool is_named_by_them(const WeightNaming& naming, const NamedTensors& tensors) {
  return has_names(naming.theirs, tensors);
}

bool is_named_by_us(const WeightNaming& naming, const NamedTensors& tensors) { return has_names(naming.ours, tensors); }

NamedTensors to_our_names(const WeightNaming& naming, const NamedTensors& theirs) {
  NamedTensors ours;
  std::map<std::string, JoinedTensor> all_joined;  // by our name
  NamedTensors copies;                             // under our names
  for (const auto& [name, tensor] : theirs) {
    const auto found = find_their_name(naming, name);
    const std::string our_name = found ? with_parts(found->rule->ours, found->parts) : name;
    if (found && found->is_copy) {
      copies.emplace_back(our_name, in_our_shape(*found->rule, tensor));
      continue;
    }
    if (!found || found->rule->theirs.size() == 1) {
      ours.emplace_back(our_name, found ? in_our_shape(*found->rule, tensor) : tensor);
      continue;
    }
    const auto [entry, is_new] = all_joined.try_emplace(our_name);
    JoinedTensor& parts = entry->second;
    if (is_new) {
      ours.emplace_back(our_name, at::Tensor());
      parts.tensors.resize(found->rule->theirs.size());
      for (const std::string& part : found->rule->theirs) parts.names.push_back(with_parts(part, found->parts));
    }
    if (found->part >= parts.tensors.size() || parts.tensors[found->part].defined())
      fail("two tensors of the file are one part of ", printable(our_name), ", the second is ", printable(name),
           "; use another copy");
    parts.tensors[found->part] = tensor;
  }
  for (auto& [name, tensor] : ours)
    if (const auto entry = all_joined.find(name); entry != all_joined.end() && !tensor.defined())
      tensor = joined_tensor(name, entry->second);
  for (const auto& copy : copies)
    if (std::ranges::find(ours, copy.first, &NamedTensors::value_type::first) == ours.end()) ours.push_back(copy);
  check_no_name_twice(ours);
  return ours;
}

NamedTensors to_their_names(const WeightNaming& naming, const NamedTensors& ours) {
  NamedTensors theirs;
  for (const auto& [name, tensor] : ours) {
    const NameRule* rule = nullptr;
    std::optional<NameParts> parts;
    for (const NameRule& each : naming.rules)
      if (!rule && (parts = parts_of_name(each.ours, name))) rule = &each;
    if (!rule)
      fail(printable(name), " has no name in ", naming.library, ": its ", naming.model, " has no such weights");
    const auto count = static_cast<int64_t>(rule->theirs.size());
    if (count > 1 && (tensor.dim() == 0 || tensor.size(0) % count != 0))
      fail(printable(name), " has no ", count, " equal parts along its first axis, as ", naming.library, " has it");
    for (int64_t i = 0; i < count; ++i)
      theirs.emplace_back(with_parts(rule->theirs[static_cast<size_t>(i)], *parts),
                          count == 1 ? in_their_shape(*rule, tensor)
                                     : tensor.narrow(0, i * (tensor.size(0) / count), tensor.size(0) / count));
    for (const std::string& copy : rule->copies)
      theirs.emplace_back(with_parts(copy, *parts), in_their_shape(*rule, tensor));
  }
  check_no_name_twice(theirs);
  return theirs;
}

}  // namespace sparsight
