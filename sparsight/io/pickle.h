// Reads a Python pickle as plain data. Nothing in it is run or looked up: classes and functions are only names, and
// what they would construct is an opaque object, except for the few that PyTorch state dicts are made of.
//
// Values are stored in one list and refer to each other by index, so that no depth, cycle or repetition can exhaust the
// stack, or memory beyond a fixed multiple of the pickle's size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sparsight {

struct PickleValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,     // number
    kInteger,  // number
    kReal,     // not kept
    kText,     // text
    kList,     // items
    kTuple,    // items; torch.Size too
    kDict,     // items: key, value, key, value ...; OrderedDict too
    kGlobal,   // text: "module.name"
    kStorage,  // items of the persistent id: "storage", type, key, device, count
    kTensor,   // items: arguments of torch._utils._rebuild_tensor_v2
    kObject,   // text: "module.name" of the class or function that makes it
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;
  std::string text;
  std::vector<uint32_t> items;  // indices into Pickle::values
};

struct Pickle {
  std::vector<PickleValue> values;
  uint32_t root = 0;

  const PickleValue& at(uint32_t index) const { return values[index]; }
};

// Raises Error if `bytes` is truncated, damaged or uses what Python's torch.save never writes. `path` is for errors.
Pickle parse_pickle(std::string_view bytes, const std::string& path);

}  // namespace sparsight
